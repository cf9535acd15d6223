// The workloads of dreamer_bench.cc with libtorch, on one thread: the same networks, losses and
// schedule, written with its modules and operations. What does not depend on the step before is
// done for all steps at once; imagination keeps no graph. The optimiser is libtorch's Adam: less
// work than LaProp with clipping by tensor.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

#include "bench/dreamer_workload.h"
#include "msrl/nn/runtime.h"

namespace msrl::bench {
namespace {

using torch::Tensor;
using torch::indexing::Slice;

void OneThread() {
  torch::set_num_threads(1);
  UseOneThread();
}

Tensor NormSilu(const Tensor& x, const Tensor& scale) {
  return torch::silu(x * torch::rsqrt((x * x).mean(-1, true) + 1e-4) * scale);
}

struct DenseImpl : torch::nn::Module {
  DenseImpl(int in, int out)
      : linear(register_module("linear", torch::nn::Linear(in, out))),
        scale(register_parameter("scale", torch::ones({out}))) {}
  Tensor forward(const Tensor& x) { return NormSilu(linear->forward(x), scale); }

  torch::nn::Linear linear;
  Tensor scale;
};
TORCH_MODULE(Dense);

torch::nn::Sequential Net(int in, int width, int layers, int out) {
  torch::nn::Sequential net;
  for (int i = 0; i < layers; ++i) net->push_back(Dense(i == 0 ? in : width, width));
  if (out > 0) net->push_back(torch::nn::Linear(layers == 0 ? in : width, out));
  return net;
}

Tensor Symlog(const Tensor& x) { return torch::sign(x) * torch::log1p(torch::abs(x)); }

struct DreamerModules : torch::nn::Module {
  explicit DreamerModules(const DreamerConfig& config)
      : c(config),
        features(c.deter + c.stoch * c.classes),
        encoder(register_module("encoder", Net(kDreamerObservation, c.units, c.layers, 0))),
        core_h(register_module("core_h", Dense(c.deter, c.hidden))),
        core_z(register_module("core_z", Dense(c.stoch * c.classes, c.hidden))),
        core_a(register_module("core_a", Dense(kDreamerActions, c.hidden))),
        mix(register_parameter("mix",
                               Blocks(3 * c.hidden + c.deter / c.blocks, c.deter / c.blocks))),
        mix_bias(register_parameter("mix_bias", torch::zeros({c.deter}))),
        mix_scale(register_parameter("mix_scale", torch::ones({c.deter}))),
        gates(register_parameter("gates", Blocks(c.deter / c.blocks, 3 * c.deter / c.blocks))),
        gates_bias(register_parameter("gates_bias", torch::zeros({3 * c.deter}))),
        posterior(
            register_module("posterior", Net(c.deter + c.units, c.hidden, 1, c.stoch * c.classes))),
        prior(register_module("prior", Net(c.deter, c.hidden, 2, c.stoch * c.classes))),
        decoder(register_module("decoder", Net(features, c.units, c.layers, kDreamerObservation))),
        reward(register_module("reward", Net(features, c.units, 1, kDreamerBins))),
        continues(register_module("continues", Net(features, c.units, 1, 1))),
        actor(register_module("actor", Net(features, c.units, c.layers, 2 * kDreamerActions))),
        critic(register_module("critic", Net(features, c.units, c.layers, kDreamerBins))),
        slow(Net(features, c.units, c.layers, kDreamerBins)) {
    const Tensor even = torch::linspace(-20.0, 20.0, kDreamerBins);
    bins = torch::sign(even) * torch::expm1(torch::abs(even));
  }

  Tensor Blocks(int in, int out) const {
    return torch::randn({c.blocks, in, out}) / std::sqrt(static_cast<double>(in));
  }

  Tensor BlockLinear(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    return torch::bmm(x.transpose(0, 1), weight).transpose(0, 1).reshape({x.size(0), -1}) + bias;
  }

  // x_h, x_z, x_a and each block's part of h; h' = u tanh(r c) + (1 - u) h
  Tensor Core(const Tensor& h, const Tensor& z, const Tensor& action_input) {
    const auto n = h.size(0);
    const Tensor x = torch::cat({core_h(h), core_z(z), action_input}, 1)
                         .unsqueeze(1)
                         .expand({n, c.blocks, 3 * c.hidden});
    const Tensor both = torch::cat({x, h.view({n, c.blocks, -1})}, 2);
    const Tensor y = NormSilu(BlockLinear(both, mix, mix_bias), mix_scale);
    const Tensor parts =
        BlockLinear(y.view({n, c.blocks, -1}), gates, gates_bias).view({n, c.blocks, 3, -1});
    const auto part = [&](int i) { return parts.index({Slice(), Slice(), i}).reshape({n, -1}); };
    const Tensor candidate = torch::tanh(torch::sigmoid(part(0)) * part(1));
    const Tensor u = torch::sigmoid(part(2) - 1.0);
    return u * candidate + (1.0 - u) * h;
  }

  Tensor Mixed(const Tensor& logits) const {
    return 0.99 * torch::softmax(logits.view({-1, c.stoch, c.classes}), -1) + 0.01 / c.classes;
  }
  // Straight through.
  Tensor Sample(const Tensor& p) const {
    const Tensor index = p.detach().view({-1, c.classes}).multinomial(1);
    const Tensor one =
        torch::zeros({index.size(0), c.classes}).scatter_(1, index, 1.0).view(p.sizes());
    return (one + p - p.detach()).view({p.size(0), -1});
  }

  Tensor Mean(const Tensor& logits) const { return torch::softmax(logits, -1).matmul(bins); }
  Tensor TwoHotLoss(const Tensor& logits, const Tensor& x) const {
    const Tensor below = (torch::searchsorted(bins, x, /*out_int32=*/false, /*right=*/true) - 1)
                             .clamp(0, kDreamerBins - 2);
    const Tensor low = bins.index_select(0, below);
    const Tensor above = (x - low) / (bins.index_select(0, below + 1) - low);
    const Tensor log_p = torch::log_softmax(logits, -1);
    const auto at = [&](const Tensor& i) { return log_p.gather(1, i.unsqueeze(1)).squeeze(1); };
    return -((1.0 - above) * at(below) + above * at(below + 1));
  }

  // R_t from the last time back; [times, n] of the times t + 1.
  Tensor LambdaReturns(const Tensor& r, const Tensor& continuing, const Tensor& l,
                       const Tensor& bootstrap) const {
    std::vector<Tensor> returns(static_cast<std::size_t>(r.size(0)));
    Tensor next = bootstrap[r.size(0) - 1];
    for (auto t = r.size(0); t-- > 0;) {
      next = r[t] + continuing[t] * ((1.0 - l[t]) * bootstrap[t] + l[t] * next);
      returns[static_cast<std::size_t>(t)] = next;
    }
    return torch::stack(returns);
  }

  struct Policy {
    Tensor mean, deviation;
  };
  Policy PolicyOf(const Tensor& head) const {
    const std::vector<Tensor> parts = head.chunk(2, 1);
    return {torch::tanh(parts[0]), 0.9 * torch::sigmoid(parts[1] + 2.0) + 0.1};
  }

  // [T, B, ...] of everything; returns the loss.
  Tensor Loss(const Tensor& observation, const Tensor& action, const Tensor& keep,
              const Tensor& rewards, const Tensor& terminal, Tensor h, Tensor z) {
    const int steps = c.sequence_length;
    const int batch = c.sequences;
    const Tensor o = Symlog(observation).view({-1, kDreamerObservation});
    const Tensor tokens = encoder->forward(o).view({steps, batch, -1});
    const Tensor inputs = core_a(action.view({-1, kDreamerActions})).view({steps, batch, -1});
    std::vector<Tensor> hs;
    std::vector<Tensor> zs;
    std::vector<Tensor> qs;
    for (int t = 0; t < steps; ++t) {
      h = Core(h * keep[t], z * keep[t], inputs[t]);
      const Tensor q = Mixed(posterior->forward(torch::cat({h, tokens[t]}, 1)));
      z = Sample(q);
      hs.push_back(h);
      zs.push_back(z);
      qs.push_back(q);
    }
    const Tensor all_h = torch::cat(hs);
    const Tensor f = torch::cat({all_h, torch::cat(zs)}, 1);
    const Tensor q = torch::cat(qs);
    const Tensor p = Mixed(prior->forward(all_h));
    const auto kl = [](const Tensor& s, const Tensor& t) {
      return (s * (s.log() - t.log())).sum({1, 2}).clamp_min(1.0).mean();
    };
    const Tensor logit = continues->forward(f).squeeze(1);
    const Tensor label = (1.0 - terminal.view({-1})) * c.gamma;
    Tensor loss = (decoder->forward(f) - o).square().sum(1).mean() +
                  TwoHotLoss(reward->forward(f), rewards.view({-1})).mean() +
                  torch::binary_cross_entropy_with_logits(logit, label) + kl(q.detach(), p) +
                  0.1 * kl(q, p.detach());

    // imagination
    const int starts = c.start_steps * batch;
    const Tensor replayed = f.slice(0, f.size(0) - starts);
    std::vector<Tensor> states;
    std::vector<Tensor> actions;
    {
      const torch::NoGradGuard guard;
      Tensor now = replayed.detach();
      states.push_back(now);
      for (int t = 0; t < c.horizon; ++t) {
        const auto [mean, deviation] = PolicyOf(actor->forward(now));
        actions.push_back(mean + deviation * torch::randn_like(mean));
        const Tensor next = Core(now.slice(1, 0, c.deter), now.slice(1, c.deter),
                                 core_a(actions.back().clamp(-1.0, 1.0)));
        now = torch::cat({next, Sample(Mixed(prior->forward(next)))}, 1);
        states.push_back(now);
      }
    }
    const Tensor imagined = torch::cat(states);
    const Tensor before = imagined.slice(0, 0, c.horizon * starts);
    const Tensor logits = critic->forward(imagined);
    Tensor returns;
    Tensor weight;
    Tensor advantage;
    Tensor slow_value;
    {
      const torch::NoGradGuard guard;
      const Tensor value = Mean(logits).view({-1, starts});
      const Tensor continuing = torch::sigmoid(continues->forward(imagined)).view({-1, starts});
      const Tensor r = Mean(reward->forward(imagined.slice(0, starts))).view({-1, starts});
      returns = LambdaReturns(r, continuing.slice(0, 1), torch::full_like(r, c.lambda),
                              value.slice(0, 1));
      const Tensor sorted = std::get<0>(returns.view({-1}).sort());
      const auto at = [&](double share) {
        return sorted[static_cast<std::int64_t>(share * static_cast<double>(sorted.size(0) - 1))]
            .item<double>();
      };
      p5 += 0.01 * (at(0.05) - p5);
      p95 += 0.01 * (at(0.95) - p95);
      advantage = ((returns - value.slice(0, 0, c.horizon)) / std::max(1.0, p95 - p5)).view({-1});
      weight = continuing.slice(0, 0, c.horizon).cumprod(0).view({-1});
      slow_value = Mean(slow->forward(before));
    }
    const auto [mean, deviation] = PolicyOf(actor->forward(before));
    const Tensor error = (torch::cat(actions) - mean) / deviation;
    const Tensor log_prob = -(0.5 * error * error + deviation.log()).sum(1);
    const Tensor entropy = deviation.log().sum(1);
    loss = loss - (weight * (advantage * log_prob + c.entropy_weight * entropy)).mean();
    const Tensor learned = logits.slice(0, 0, c.horizon * starts);
    loss = loss +
           (weight * (TwoHotLoss(learned, returns.view({-1})) + TwoHotLoss(learned, slow_value)))
               .mean();

    // replayed values
    const Tensor boot = returns[0].view({c.start_steps, batch});
    const Tensor real =
        LambdaReturns(rewards.slice(0, steps - c.start_steps + 1),
                      c.gamma * (1.0 - terminal.slice(0, steps - c.start_steps + 1)),
                      torch::full({c.start_steps - 1, batch}, c.lambda), boot.slice(0, 1));
    const auto count = starts - batch;
    const Tensor replay_logits = critic->forward(replayed.slice(0, 0, count));
    return loss + 0.3 * (TwoHotLoss(replay_logits, real.view({-1})) +
                         TwoHotLoss(replay_logits, slow_value.slice(0, 0, count)))
                            .mean();
  }

  void FollowCritic() {
    const torch::NoGradGuard guard;
    const auto from = critic->parameters();
    const auto to = slow->parameters();
    for (std::size_t i = 0; i < to.size(); ++i) to[i].lerp_(from[i], c.slow_rate);
  }

  DreamerConfig c;
  int features;
  torch::nn::Sequential encoder;
  Dense core_h, core_z, core_a;
  Tensor mix, mix_bias, mix_scale, gates, gates_bias;
  torch::nn::Sequential posterior, prior, decoder, reward, continues, actor, critic, slow;
  Tensor bins;
  double p5 = 0.0, p95 = 0.0;  // of returns
};

void DreamerModulesUpdate(benchmark::State& state) {
  OneThread();
  torch::manual_seed(0);
  const DreamerConfig config = DreamerWorkload();
  DreamerModules modules(config);
  torch::optim::Adam adam(modules.parameters(), torch::optim::AdamOptions(config.learning_rate));
  const int steps = config.sequence_length;
  const int batch = config.sequences;
  const Tensor observation = torch::rand({steps, batch, kDreamerObservation}) * 2.0 - 1.0;
  const Tensor action = torch::rand({steps, batch, kDreamerActions}) * 2.0 - 1.0;
  const Tensor keep = torch::ones({steps, batch, 1});
  const Tensor rewards = torch::randn({steps, batch});
  const Tensor terminal = torch::zeros({steps, batch});
  const Tensor h = torch::rand({batch, config.deter}) * 2.0 - 1.0;
  const Tensor z = torch::zeros({batch, config.stoch * config.classes});
  std::int64_t count = 0;
  for (const Tensor& p : modules.parameters()) count += p.numel();
  for (auto _ : state) {
    adam.zero_grad();
    const Tensor loss = modules.Loss(observation, action, keep, rewards, terminal, h, z);
    loss.backward();
    adam.step();
    modules.FollowCritic();
    benchmark::DoNotOptimize(loss.item<float>());
  }
  state.counters["parameters"] = static_cast<double>(count);
}
BENCHMARK(DreamerModulesUpdate)->Unit(benchmark::kMillisecond);

void DreamerModulesAct(benchmark::State& state) {
  OneThread();
  torch::manual_seed(0);
  const torch::NoGradGuard guard;
  const DreamerConfig config = DreamerWorkload();
  DreamerModules modules(config);
  const Tensor observation = torch::full({1, kDreamerObservation}, 0.3);
  Tensor h = torch::zeros({1, config.deter});
  Tensor z = torch::zeros({1, config.stoch * config.classes});
  Tensor action = torch::zeros({1, kDreamerActions});
  for (auto _ : state) {
    h = modules.Core(h, z, modules.core_a(action));
    const Tensor tokens = modules.encoder->forward(Symlog(observation));
    z = modules.Sample(modules.Mixed(modules.posterior->forward(torch::cat({h, tokens}, 1))));
    action = modules.PolicyOf(modules.actor->forward(torch::cat({h, z}, 1))).mean;
    benchmark::DoNotOptimize(action.data_ptr<float>());
  }
}
BENCHMARK(DreamerModulesAct)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace msrl::bench
