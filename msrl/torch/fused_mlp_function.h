// The bridge between our matrices and libtorch's tensors, and a Mlp as a differentiable function.
//
// Our features x batch, stored column by column, and libtorch's contiguous [batch, features] are
// the same bytes: all conversions here are views without a copy.
#ifndef MSRL_TORCH_FUSED_MLP_FUNCTION_H_
#define MSRL_TORCH_FUSED_MLP_FUNCTION_H_

#include <torch/torch.h>

#include <span>

#include "msrl/nn/mlp.h"

namespace msrl {

// A [columns, rows] view of a whole matrix; the matrix must outlive it.
torch::Tensor AsTensor(Eigen::MatrixXf& matrix);
// A [size] view.
torch::Tensor AsTensor(std::span<float> values);
// A [rows, columns] view of a part of a parameter or gradient buffer (columns is 1 for vectors).
torch::Tensor AsTensor(std::span<float> buffer, const NamedTensor& tensor);

// The features x batch view of a contiguous float [batch, features] tensor on the CPU; UserError
// for any other. The tensor must outlive it.
Eigen::Map<Eigen::MatrixXf> AsMatrix(const torch::Tensor& tensor);

// mlp(input) as part of a libtorch graph: gradients reach the input and the parameters. The input
// is [batch, spec.input] (or [batch, members * spec.input]), the output [batch, members * output].
// `parameters` is AsTensor(mlp.parameters()), usually with requires_grad, so that an optimiser of
// libtorch can step it. The network must outlive the graph. Makes a tape for every call.
torch::Tensor FusedMlp(const Mlp& mlp, const torch::Tensor& input, const torch::Tensor& parameters);

}  // namespace msrl

#endif  // MSRL_TORCH_FUSED_MLP_FUNCTION_H_
