#include "msrl/torch/fused_mlp_function.h"

#include "msrl/core/check.h"

namespace msrl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What a forward pass leaves for its backward pass.
struct Pass : torch::CustomClassHolder {
  Pass(const Mlp& network, int batch) : mlp(network), tape(network.spec(), batch) {}
  const Mlp& mlp;
  MlpTape tape;
};

class FusedMlpFunction : public torch::autograd::Function<FusedMlpFunction> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input,
                               const torch::Tensor& /*parameters*/, const Mlp* mlp) {
    const torch::Tensor rows = input.contiguous();
    const auto x = AsMatrix(rows);
    auto pass = c10::make_intrusive<Pass>(*mlp, static_cast<int>(x.cols()));
    const ConstMatrixMap y = mlp->Forward(x, pass->tape);
    torch::Tensor output = torch::empty({y.cols(), y.rows()});
    AsMatrix(output) = y;
    context->saved_data["pass"] = torch::IValue::make_capsule(std::move(pass));
    context->saved_data["input_rows"] = static_cast<std::int64_t>(x.rows());
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_outputs) {
    auto capsule = context->saved_data["pass"].toCapsule();
    auto& pass = static_cast<Pass&>(*capsule);
    const torch::Tensor d_rows = d_outputs[0].contiguous();
    const auto d_output = AsMatrix(d_rows);
    torch::Tensor gradients = torch::empty({static_cast<std::int64_t>(pass.mlp.parameter_count())});
    torch::Tensor d_input =
        torch::empty({d_output.cols(), context->saved_data["input_rows"].toInt()});
    pass.mlp.Backward(d_output, pass.tape,
                      {gradients.data_ptr<float>(), pass.mlp.parameter_count()}, 0,
                      AsMatrix(d_input));
    return {d_input, gradients, torch::Tensor()};
  }
};

}  // namespace

torch::Tensor AsTensor(Eigen::MatrixXf& matrix) {
  return torch::from_blob(matrix.data(), {matrix.cols(), matrix.rows()});
}

torch::Tensor AsTensor(std::span<float> values) {
  return torch::from_blob(values.data(), {static_cast<std::int64_t>(values.size())});
}

torch::Tensor AsTensor(std::span<float> buffer, const NamedTensor& tensor) {
  MSRL_CHECK_LE(tensor.offset + tensor.size(), buffer.size());
  float* const data = buffer.data() + tensor.offset;
  return torch::from_blob(data, {tensor.rows, tensor.columns}, {1, tensor.rows});
}

Eigen::Map<Eigen::MatrixXf> AsMatrix(const torch::Tensor& tensor) {
  if (tensor.dim() != 2 || tensor.scalar_type() != torch::kFloat || !tensor.is_contiguous() ||
      !tensor.device().is_cpu()) {
    throw UserError(
        "a tensor must be a contiguous float [batch, features] on the CPU; use "
        ".to(torch::kFloat).contiguous()");
  }
  return {tensor.data_ptr<float>(), tensor.size(1), tensor.size(0)};
}

torch::Tensor FusedMlp(const Mlp& mlp, const torch::Tensor& input,
                       const torch::Tensor& parameters) {
  MSRL_CHECK(parameters.data_ptr<float>() == mlp.parameters().data() &&
                 parameters.numel() == static_cast<std::int64_t>(mlp.parameter_count()),
             "the parameters must be a view of the network's");
  return FusedMlpFunction::apply(input, parameters, &mlp);
}

}  // namespace msrl
