// The update and the planning step of tdmpc_bench.cc as one writes them with libtorch's modules and
// optimisers. Only the two value networks that are drawn are asked, as the agent does.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <array>
#include <cmath>
#include <vector>

#include "bench/tdmpc_workload.h"
#include "msrl/nn/runtime.h"

namespace msrl::bench {
namespace {

using torch::Tensor;
using torch::indexing::Slice;
using torch::nn::LayerNorm;
using torch::nn::LayerNormOptions;
using torch::nn::Linear;

// Linear layers with norm and Mish between them; to a latent state if `latent`.
struct NetImpl : torch::nn::Module {
  NetImpl(int input, const std::vector<int>& hidden, int output, bool latent_output)
      : latent(latent_output) {
    int in = input;
    for (const int width : hidden) {
      layers.push_back(register_module("layer" + std::to_string(layers.size()), Linear(in, width)));
      norms.push_back(register_module("norm" + std::to_string(norms.size()),
                                      LayerNorm(LayerNormOptions({width}))));
      in = width;
    }
    layers.push_back(register_module("last", Linear(in, output)));
    if (latent) {
      norms.push_back(register_module("last_norm", LayerNorm(LayerNormOptions({output}))));
    }
  }

  Tensor forward(Tensor x) {
    for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
      x = torch::mish(norms[i](layers[i](x)));
    }
    x = layers.back()(x);
    if (!latent) return x;
    x = norms.back()(x);
    return torch::softmax(x.view({x.size(0), -1, LatentModel::kGroup}), -1).view_as(x);
  }

  std::vector<Linear> layers;
  std::vector<LayerNorm> norms;
  bool latent;
};
TORCH_MODULE(Net);

class ModuleTdMpc {
 public:
  ModuleTdMpc() {
    for (std::size_t k = 0; k < q_.size(); ++k) {
      const torch::NoGradGuard no_grad;
      std::vector<Tensor> to = q_target_[k]->parameters();
      const std::vector<Tensor> from = q_[k]->parameters();
      for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
    }
  }

  void Update(const Tensor& observation, const Tensor& action, const Tensor& reward,
              const Tensor& continues) {
    Tensor next;
    Tensor y;
    {
      const torch::NoGradGuard no_grad;
      next = encoder_(observation.slice(0, batch_));
      const Tensor x = torch::cat({next, Act(next).first}, 1);
      const auto [i, j] = Pair();
      y = reward +
          config_.gamma * continues * torch::min(Decode(q_target_[i](x)), Decode(q_target_[j](x)));
    }
    std::vector<Tensor> states{encoder_(observation.slice(0, 0, batch_))};
    std::vector<Tensor> inputs;
    for (int t = 0; t < horizon_; ++t) {
      inputs.push_back(
          torch::cat({states.back(), action.slice(0, t * batch_, (t + 1) * batch_)}, 1));
      states.push_back(dynamics_(inputs.back()));
    }
    const Tensor x = torch::cat(inputs);
    const Tensor predicted = torch::cat(std::vector<Tensor>(states.begin() + 1, states.end()));
    const Tensor weight = Weights(horizon_);
    const auto mean = [&](const Tensor& row) { return (row * weight).sum(); };
    const Tensor y_two_hot = TwoHot(y);
    Tensor value_loss = torch::zeros({1});
    for (Net& q : q_) value_loss = value_loss + mean(CrossEntropy(q(x), y_two_hot));
    const Tensor logit = termination_(predicted);
    Tensor loss =
        config_.consistency_weight * mean((predicted - next).square().mean(1, true)) +
        config_.reward_weight * mean(CrossEntropy(reward_(x), TwoHot(reward))) +
        config_.value_weight / config_.q_count * value_loss +
        config_.termination_weight * mean(torch::binary_cross_entropy_with_logits(
                                         logit, 1 - continues, {}, {}, torch::Reduction::None));
    world_adam_.zero_grad();
    loss.backward();
    torch::nn::utils::clip_grad_norm_(WorldParameters(), config_.max_gradient_norm);
    world_adam_.step();

    const Tensor z = torch::cat(states).detach();
    const auto [i, j] = Pair();
    for (const std::size_t k : {i, j}) Train(q_[k], false);
    const auto [chosen, entropy] = Act(z);
    const Tensor xz = torch::cat({z, chosen}, 1);
    const Tensor q = 0.5 * (Decode(q_[i](xz)) + Decode(q_[j](xz)));
    const Tensor first = q.detach().slice(0, 0, batch_).flatten();
    const Tensor range = torch::quantile(first, 0.95) - torch::quantile(first, 0.05);
    scale_ += 0.01 * (std::max(1.0, range.item<double>()) - scale_);
    const Tensor policy_loss =
        -(Weights(horizon_ + 1) * (q / scale_ + config_.entropy_weight * kTdMpcAction * entropy))
             .sum();
    policy_adam_.zero_grad();
    policy_loss.backward();
    torch::nn::utils::clip_grad_norm_(policy_->parameters(), config_.max_gradient_norm);
    policy_adam_.step();
    for (const std::size_t k : {i, j}) Train(q_[k], true);

    const torch::NoGradGuard no_grad;
    for (std::size_t k = 0; k < q_.size(); ++k) {
      std::vector<Tensor> to = q_target_[k]->parameters();
      const std::vector<Tensor> from = q_[k]->parameters();
      for (std::size_t p = 0; p < to.size(); ++p) to[p].lerp_(from[p], config_.tau);
    }
  }

  Tensor Plan(const Tensor& observation) {
    const torch::NoGradGuard no_grad;
    const MppiSettings& mppi = config_.mppi;
    const Tensor start = encoder_(observation);
    Tensor actions = torch::empty({horizon_, mppi.samples, kTdMpcAction});
    Tensor z = start.repeat({mppi.policy_samples, 1});
    for (int t = 0; t < horizon_; ++t) {
      const Tensor a = Act(z).first;
      actions.index_put_({t, Slice(0, mppi.policy_samples)}, a);
      if (t + 1 < horizon_) z = dynamics_(torch::cat({z, a}, 1));
    }
    Tensor mean = torch::zeros({horizon_, 1, kTdMpcAction});
    mean.slice(0, 0, horizon_ - 1).copy_(mean_.slice(0, 1));
    Tensor std = torch::full_like(mean, mppi.max_std);
    Tensor elite_actions;
    Tensor weights;
    for (int iteration = 0; iteration < mppi.iterations; ++iteration) {
      const Tensor noise =
          torch::randn({horizon_, mppi.samples - mppi.policy_samples, kTdMpcAction});
      actions.index_put_({Slice(), Slice(mppi.policy_samples)},
                         (mean + std * noise).clamp(-1.0, 1.0));
      const Tensor values = Values(start.repeat({mppi.samples, 1}), actions).squeeze(1);
      const auto [best, index] = values.topk(mppi.elites);
      elite_actions = actions.index_select(1, index);
      weights = torch::softmax(mppi.temperature * best, 0);
      const Tensor w = weights.view({1, -1, 1});
      mean = (w * elite_actions).sum(1, true);
      std = (w * (elite_actions - mean).square())
                .sum(1, true)
                .sqrt()
                .clamp(mppi.min_std, mppi.max_std);
    }
    mean_ = mean;
    const auto chosen = torch::multinomial(weights, 1).item<std::int64_t>();
    return (elite_actions.index({0, chosen}) + std[0][0] * torch::randn({kTdMpcAction}))
        .clamp(-1.0, 1.0);
  }

 private:
  const TdMpcConfig config_ = TdMpcWorkload();
  const int batch_ = config_.batch_size;
  const int horizon_ = config_.mppi.horizon;
  const int latent_ = config_.latent_groups * LatentModel::kGroup;

  Net Head(int input, int output) const {
    return Net(input, std::vector<int>{config_.model_width, config_.model_width}, output, false);
  }
  std::vector<Net> Heads() const {
    std::vector<Net> heads;
    for (int k = 0; k < config_.q_count; ++k) {
      heads.push_back(Head(latent_ + kTdMpcAction, config_.bins));
    }
    return heads;
  }
  static void Train(Net& net, bool on) {
    for (Tensor& parameter : net->parameters()) parameter.set_requires_grad(on);
  }
  std::vector<Tensor> WorldParameters() {
    std::vector<Tensor> all = encoder_->parameters();
    const auto add = [&all](const Net& net) {
      for (const Tensor& parameter : net->parameters()) all.push_back(parameter);
    };
    for (const Net& net : {dynamics_, reward_, termination_}) add(net);
    for (const Net& q : q_) add(q);
    return all;
  }
  std::pair<std::size_t, std::size_t> Pair() {
    const auto first = static_cast<std::size_t>(rng_.Index(config_.q_count));
    const auto other = static_cast<std::size_t>(rng_.Index(config_.q_count - 1));
    return {first, other < first ? other : other + 1};
  }
  Tensor Weights(int times) const {
    return torch::pow(config_.rho, torch::arange(times, torch::kFloat))
               .repeat_interleave(batch_)
               .unsqueeze(1) /
           (times * batch_);
  }

  std::pair<Tensor, Tensor> Act(const Tensor& z) {
    const std::vector<Tensor> parts = policy_(z).chunk(2, 1);
    const Tensor log_std = -10.0 + 6.0 * (torch::tanh(parts[1]) + 1.0);
    const Tensor noise = torch::randn_like(parts[0]);
    const Tensor entropy = (log_std + 0.5 * noise.square() + 0.9189385332046727).sum(1, true);
    return {torch::tanh(parts[0] + torch::exp(log_std) * noise), entropy};
  }
  Tensor Decode(const Tensor& logits) const {
    const Tensor mean = (torch::softmax(logits, 1) * points_).sum(1, true);
    return torch::sign(mean) * torch::expm1(torch::abs(mean));
  }
  Tensor TwoHot(const Tensor& x) const {
    const double width = 2.0 * LatentModel::kBinLimit / (config_.bins - 1);
    const Tensor at = (torch::clamp(torch::sign(x) * torch::log1p(torch::abs(x)),
                                    -LatentModel::kBinLimit, LatentModel::kBinLimit) +
                       LatentModel::kBinLimit) /
                      width;
    const Tensor below = torch::clamp(torch::floor(at), 0, config_.bins - 2);
    const Tensor index = below.to(torch::kLong);
    Tensor two_hot = torch::zeros({x.size(0), config_.bins});
    two_hot.scatter_(1, index, 1.0 - (at - below));
    two_hot.scatter_(1, index + 1, at - below);
    return two_hot;
  }
  static Tensor CrossEntropy(const Tensor& logits, const Tensor& target) {
    return -(target * torch::log_softmax(logits, 1)).sum(1, true);
  }
  Tensor Values(Tensor z, const Tensor& actions) {
    Tensor value = torch::zeros({z.size(0), 1});
    Tensor alive = torch::ones_like(value);
    double discount = 1.0;
    for (int t = 0; t < horizon_; ++t) {
      const Tensor x = torch::cat({z, actions[t]}, 1);
      value = value + discount * alive * Decode(reward_(x));
      z = dynamics_(x);
      discount *= config_.gamma;
      alive = alive * torch::sigmoid(-termination_(z));
    }
    const Tensor x = torch::cat({z, Act(z).first}, 1);
    const auto [i, j] = Pair();
    return value + discount * alive * 0.5 * (Decode(q_[i](x)) + Decode(q_[j](x)));
  }

  Net encoder_{kTdMpcObservation, std::vector<int>{config_.encoder_width}, latent_, true};
  Net dynamics_{latent_ + kTdMpcAction, std::vector<int>{config_.model_width, config_.model_width},
                latent_, true};
  Net reward_ = Head(latent_ + kTdMpcAction, config_.bins);
  Net termination_ = Head(latent_, 1);
  Net policy_ = Head(latent_, 2 * kTdMpcAction);
  std::vector<Net> q_ = Heads(), q_target_ = Heads();
  torch::optim::Adam world_adam_{WorldParameters(),
                                 torch::optim::AdamOptions(config_.learning_rate)};
  torch::optim::Adam policy_adam_{policy_->parameters(),
                                  torch::optim::AdamOptions(config_.learning_rate)};
  Tensor points_ = torch::linspace(-LatentModel::kBinLimit, LatentModel::kBinLimit, config_.bins);
  Tensor mean_ = torch::zeros({horizon_, 1, kTdMpcAction});
  double scale_ = 1.0;
  Rng rng_{0, "pair"};
};

void OneThread() {
  torch::set_num_threads(1);
  UseOneThread();
  torch::manual_seed(0);
}

void TdMpcModulesUpdate(benchmark::State& state) {
  OneThread();
  ModuleTdMpc modules;
  const TdMpcConfig config = TdMpcWorkload();
  const int steps = config.mppi.horizon * config.batch_size;
  const Tensor observation = torch::rand({steps + config.batch_size, kTdMpcObservation}) * 2 - 1;
  const Tensor action = torch::rand({steps, kTdMpcAction}) * 2 - 1;
  const Tensor reward = torch::rand({steps, 1}) * 2 - 1;
  const Tensor continues = torch::ones({steps, 1});
  for (auto _ : state) modules.Update(observation, action, reward, continues);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(TdMpcModulesUpdate)->Unit(benchmark::kMillisecond);

void TdMpcModulesPlan(benchmark::State& state) {
  OneThread();
  ModuleTdMpc modules;
  const Tensor observation = torch::full({1, kTdMpcObservation}, 0.3);
  for (auto _ : state) benchmark::DoNotOptimize(modules.Plan(observation).data_ptr<float>());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(TdMpcModulesPlan)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace msrl::bench
