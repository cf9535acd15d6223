#include "msrl/agents/dreamer/dreamer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "msrl/agents/common/aligned_channels.h"
#include "msrl/nn/random.h"
#include "msrl/testing/agent_update.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas
using Eigen::Index;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr int kObservation = 3;
constexpr int kActions = 2;
constexpr int kBins = 255;

DreamerConfig SmallConfig() {
  DreamerConfig config;
  config.deter = 4;
  config.blocks = 2;
  config.stoch = 2;
  config.classes = 3;
  config.hidden = 3;
  config.units = 3;
  config.layers = 1;
  config.sequences = 3;
  config.sequence_length = 4;
  config.start_steps = 3;
  config.horizon = 2;
  config.replay_size = 100;
  config.normalize_observations = false;
  config.learning_rate = 0.02;
  config.warm_up = 4;
  config.gamma = 0.9;
  config.lambda = 0.8;
  config.entropy_weight = 0.03;
  config.free_nats = 0.6;
  config.dynamics_weight = 0.7;
  config.representation_weight = 0.2;
  config.replay_value_weight = 0.4;
  config.slow_rate = 0.1;
  return config;
}

// ---- the networks in double, from their tensors ----

using Tensors = std::vector<NamedTensor>;

// Tensors of several buffers, as if they were one after another.
Tensors TensorsOf(std::initializer_list<const Parameters*> parts) {
  Tensors tensors;
  std::size_t before = 0;
  for (const Parameters* part : parts) {
    for (NamedTensor tensor : part->tensors()) {
      tensor.offset += before;
      tensors.push_back(tensor);
    }
    before += part->size();
  }
  return tensors;
}
Doubles Joined(std::span<const float> first, std::span<const float> second) {
  Doubles values = AsDoubles(first);
  const Doubles more = AsDoubles(second);
  values.insert(values.end(), more.begin(), more.end());
  return values;
}
// World model and heads of an agent; without `aligned` the first is empty.
Tensors ModelTensors(Dreamer& agent) { return TensorsOf({&agent.world(), &agent.model()}); }
Doubles ModelValues(Dreamer& agent) {
  return Joined(agent.world().values(), agent.model().values());
}

class Weights {
 public:
  Weights(const Tensors& tensors, const Doubles& values) : tensors_(tensors), values_(values) {}
  bool Has(const std::string& name) const { return Find(name) != nullptr; }
  Eigen::Map<const Matrix> operator()(const std::string& name) const {
    const NamedTensor& t = *Find(name);
    return {values_.data() + t.offset, t.rows, t.columns};
  }

 private:
  const NamedTensor* Find(const std::string& name) const {
    const auto found = std::ranges::find(tensors_, name, &NamedTensor::name);
    return found == tensors_.end() ? nullptr : &*found;
  }
  const Tensors& tensors_;
  const Doubles& values_;
};

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double SymlogOf(double x) { return std::copysign(std::log1p(std::abs(x)), x); }

// silu(x / sqrt(mean x^2 + 1e-4) * scale)
Vector NormSilu(const Vector& x, const Vector& scale) {
  const Vector y = x / std::sqrt(x.squaredNorm() / static_cast<double>(x.size()) + 1e-4);
  return y.cwiseProduct(scale).unaryExpr([](double v) { return v * Sigmoid(v); });
}

Vector LinearOf(const Weights& w, const std::string& name, const Vector& x) {
  return w(name + ".weight") * x + w(name + ".bias");
}

Vector DenseOf(const Weights& w, const std::string& name, const Vector& x) {
  return NormSilu(LinearOf(w, name, x), w(name + ".norm.weight"));
}

Vector HiddenOf(const Weights& w, const std::string& name, Vector x) {
  for (int i = 0; w.Has(StrCat(name, ".", i, ".weight")); ++i) {
    x = DenseOf(w, StrCat(name, ".", i), x);
  }
  return x;
}

Vector NetOf(const Weights& w, const std::string& name, const Vector& x) {
  return LinearOf(w, name + ".output", HiddenOf(w, name, x));
}

Vector Softmax(const Vector& x) {
  const Vector e = (x.array() - x.maxCoeff()).exp();
  return e / e.sum();
}

// 99 % softmax of each group and 1 % uniform.
Vector Mixed(const Vector& logits, Index classes) {
  Vector p(logits.size());
  for (Index i = 0; i < logits.size(); i += classes) {
    p.segment(i, classes) =
        0.99 * Softmax(logits.segment(i, classes)).array() + 0.01 / static_cast<double>(classes);
  }
  return p;
}

Vector Stack(const Vector& a, const Vector& b) {
  Vector both(a.size() + b.size());
  both << a, b;
  return both;
}

// What a model over slots is given of an action: its code, and the bits of what there is.
Vector CodeOf(const Vector& a, const std::vector<int>& entries) {
  Vector code = Vector::Zero(kActionChannels);
  for (Index i = 0; i < a.size(); ++i) {
    const Index entry = entries.empty() ? i : entries[static_cast<std::size_t>(i)];
    code[entry] = a[i];
    code[kActionCodeSize + entry] = 1.0;
  }
  return code;
}

Vector CoreOf(const Weights& w, const Vector& h, const Vector& z, const Vector& a) {
  const Vector x =
      Stack(Stack(DenseOf(w, "core.h", h), DenseOf(w, "core.z", z)), DenseOf(w, "core.a", a));
  const Index n = h.size();
  const Index block = w("core.gates.weight").cols();
  Vector mix(n);
  for (Index i = 0; i < n; ++i) {
    // every block sees all of x and its own part of h
    mix[i] = w("core.mix.weight").row(i).dot(Stack(x, h.segment(i / block * block, block))) +
             w("core.mix.bias")(i, 0);
  }
  mix = NormSilu(mix, w("core.mix.norm.weight"));
  const auto gate = [&](Index part, Index i) {
    return w("core.gates.weight").row(part * n + i).dot(mix.segment(i / block * block, block)) +
           w("core.gates.bias")(part * n + i, 0);
  };
  Vector next(n);
  for (Index i = 0; i < n; ++i) {
    const double u = Sigmoid(gate(2, i) - 1.0);
    next[i] = u * std::tanh(Sigmoid(gate(0, i)) * gate(1, i)) + (1.0 - u) * h[i];
  }
  return next;
}

Vector PosteriorOf(const Weights& w, const Vector& h, const Vector& o, Index classes) {
  // an observation of the task's own is below the slots
  const bool own = w.Has("native.0.weight");
  const Vector seen = o.unaryExpr(&SymlogOf);
  Vector x = HiddenOf(w, "encoder", seen.head(own ? kStateChannels : o.size()));
  if (own) x += NetOf(w, "native", seen.tail(o.size() - kStateChannels));
  x = DenseOf(w, "posterior.0", Stack(h, x));
  return Mixed(LinearOf(w, "posterior.output", x), classes);
}

Vector PriorOf(const Weights& w, const Vector& h, Index classes) {
  return Mixed(NetOf(w, "prior", h), classes);
}

double KlOf(const Vector& p, const Vector& q) {
  return (p.array() * (p.array() / q.array()).log()).sum();
}

Vector DrawOf(const Vector& p, const Eigen::MatrixXf& uniform, Index column, Index classes) {
  Vector one = Vector::Zero(p.size());
  for (Index i = 0; i * classes < p.size(); ++i) {
    double left = uniform(i, column);
    Index chosen = 0;
    while (chosen + 1 < classes && left >= p[i * classes + chosen]) {
      left -= p[i * classes + chosen++];
    }
    one[i * classes + chosen] = 1.0;
  }
  return one;
}

// ---- two-hot ----

double Bin(int i) {
  const double even = -20.0 + 40.0 * i / (kBins - 1);
  return std::copysign(std::expm1(std::abs(even)), even);
}
double MeanOf(const Vector& logits) {
  const Vector p = Softmax(logits);
  double sum = 0.0;
  for (int i = 0; i < kBins; ++i) sum += p[i] * Bin(i);
  return sum;
}
double TwoHotLoss(const Vector& logits, double x) {
  int below = 0;
  while (below + 2 < kBins && Bin(below + 1) <= x) ++below;
  const double above = (x - Bin(below)) / (Bin(below + 1) - Bin(below));
  const double log_sum =
      std::log((logits.array() - logits.maxCoeff()).exp().sum()) + logits.maxCoeff();
  return log_sum - (1.0 - above) * logits[below] - above * logits[below + 1];
}

// ---- policy ----

struct Choice {
  Vector action;  // as drawn
  double log_prob = 0.0;
  double entropy = 0.0;
};

// Without an action one is drawn.
Choice PolicyOf(const Vector& head, bool discrete, const Eigen::MatrixXf* noise, Index column,
                const Vector& action) {
  Choice choice{action};
  if (discrete) {
    const Vector p = Mixed(head, head.size());
    if (noise != nullptr) choice.action = DrawOf(p, *noise, column, head.size());
    choice.log_prob = (choice.action.array() * p.array().log()).sum();
    choice.entropy = -(p.array() * p.array().log()).sum();
    return choice;
  }
  if (noise != nullptr) choice.action = Vector(kActions);
  for (Index i = 0; i < kActions; ++i) {
    const double mean = std::tanh(head[i]);
    const double std = 0.9 * Sigmoid(head[kActions + i] + 2.0) + 0.1;
    if (noise != nullptr) choice.action[i] = mean + std * (*noise)(i, column);
    choice.log_prob += LogNormal(choice.action[i], mean, std);
    choice.entropy += 0.5 * std::log(2.0 * std::numbers::pi * std::numbers::e * std * std);
  }
  return choice;
}

// ---- an update ----

class PlainUpdate {
 public:
  PlainUpdate(Dreamer& agent, const EnvSpec& spec, const DreamerConfig& config, RecordBatch batch)
      : config_(config),
        discrete_(spec.action.kind == ActionKind::kDiscrete),
        entries_(spec.action_code),
        batch_(std::move(batch)),
        model_(ModelTensors(agent)),
        critic_(TensorsOf({&agent.critic()})),
        slow_(AsDoubles(agent.critic().target())) {}

  // Draws as the agent does, and fixes all that has no gradient.
  void Draw(const Doubles& model, const Doubles& critic, Rng& rng) {
    const int starts = config_.start_steps * config_.sequences;
    const auto uniform = [&](Index rows, Index columns) {
      Eigen::MatrixXf noise(rows, columns);
      FillUniform(rng, Flat(noise));
      return noise;
    };
    const Eigen::MatrixXf z_noise =
        uniform(config_.stoch, config_.sequences * config_.sequence_length);
    Sequence(model, &z_noise);
    const Weights w(model_, model);
    const Weights v(critic_, critic);
    const Weights slow(critic_, slow_);
    std::vector<Vector> h;
    std::vector<Vector> z;
    for (std::size_t i = h_.size() - static_cast<std::size_t>(starts); i < h_.size(); ++i) {
      h.push_back(h_[i]);
      z.push_back(z_[i]);
    }
    std::vector<double> reward;
    std::vector<double> continues;
    std::vector<double> value;
    const auto see = [&](std::size_t i) {
      const Vector f = Stack(h[i], z[i]);
      features_.push_back(f);
      reward.push_back(MeanOf(NetOf(w, "reward", f)));
      continues.push_back(Sigmoid(NetOf(w, "continue", f)[0]));
      value.push_back(MeanOf(NetOf(v, "critic", f)));
      slow_value_.push_back(MeanOf(NetOf(slow, "critic", f)));
    };
    for (std::size_t i = 0; i < h.size(); ++i) see(i);
    for (int t = 0; t < config_.horizon; ++t) {
      Eigen::MatrixXf noise(discrete_ ? 1 : kActions, starts);
      for (Index i = 0; i < starts; ++i) {
        const std::span<float> column(noise.col(i).data(), static_cast<std::size_t>(noise.rows()));
        discrete_ ? FillUniform(rng, column) : FillNormal(rng, column);
      }
      const Eigen::MatrixXf next_noise = uniform(config_.stoch, starts);
      for (std::size_t i = 0; i < h.size(); ++i) {
        const auto column = static_cast<Index>(i);
        const Vector head = NetOf(w, "actor", Stack(h[i], z[i]));
        actions_.push_back(PolicyOf(head, discrete_, &noise, column, {}).action);
        h[i] = CoreOf(w, h[i], z[i], Taken(actions_.back().cwiseMax(-1.0).cwiseMin(1.0)));
        z[i] = DrawOf(PriorOf(w, h[i], config_.classes), next_noise, column, config_.classes);
      }
      for (std::size_t i = 0; i < h.size(); ++i) see(i);
    }
    // R_t = r_{t+1} + c_{t+1} ((1 - lambda) v_{t+1} + lambda R_{t+1})
    const std::size_t n = h.size();
    returns_.assign(n * static_cast<std::size_t>(config_.horizon), 0.0);
    for (std::size_t i = returns_.size(); i-- > 0;) {
      const double next = i + n < returns_.size() ? returns_[i + n] : value[i + n];
      returns_[i] = reward[i + n] + continues[i + n] * ((1.0 - config_.lambda) * value[i + n] +
                                                        config_.lambda * next);
    }
    Doubles sorted = returns_;
    std::ranges::sort(sorted);
    const auto quantile = [&](double share) {
      const double at = share * static_cast<double>(sorted.size() - 1);
      const auto below = static_cast<std::size_t>(at);
      const double rest = at - static_cast<double>(below);
      return sorted[below] + (rest > 0.0 ? rest * (sorted[below + 1] - sorted[below]) : 0.0);
    };
    low_ += 0.01 * (quantile(0.05) - low_);
    high_ += 0.01 * (quantile(0.95) - high_);
    scale = std::max(1.0, high_ - low_);
    for (std::size_t i = 0; i < returns_.size(); ++i) {
      advantage_.push_back((returns_[i] - value[i]) / scale);
      weight_.push_back(continues[i] * (i < n ? 1.0 : weight_[i - n]));
    }
    // real rewards, and the imagined returns of replayed states
    const auto batch = static_cast<std::size_t>(config_.sequences);
    replay_returns_.assign(n - batch, 0.0);
    for (std::size_t i = n - batch; i-- > 0;) {
      const std::size_t next = i + batch;  // the same sequence, one step later
      const double real_continues = config_.gamma * (1.0 - At(batch_.terminal, next));
      const double mixed = config_.lambda * (1.0 - At(batch_.last, next));
      const double boot = returns_[next];
      const double later = next < replay_returns_.size() ? replay_returns_[next] : boot;
      replay_returns_[i] =
          At(batch_.reward, next) + real_continues * ((1.0 - mixed) * boot + mixed * later);
    }
  }

  // The sum of all losses; fills `parts`.
  double Loss(const Doubles& model, const Doubles& critic) {
    Sequence(model, nullptr);
    const Weights w(model_, model);
    const Weights v(critic_, critic);
    const auto columns = static_cast<double>(h_.size());
    const auto first = static_cast<std::size_t>(config_.sequences);
    parts.clear();
    for (std::size_t i = 0; i < h_.size(); ++i) {
      const Vector f = Stack(h_[i], z_[i]);
      const auto column = static_cast<Index>(i + first);
      const Vector o = batch_.observation.col(column).cast<double>();
      parts["loss/reconstruction"] += Reconstruction(w, f, o) / columns;
      parts["loss/reward"] += TwoHotLoss(NetOf(w, "reward", f), batch_.reward[column]) / columns;
      const double c = Sigmoid(NetOf(w, "continue", f)[0]);
      const double label = (1.0 - batch_.terminal[column]) * config_.gamma;
      parts["loss/continue"] -= (label * std::log(c) + (1.0 - label) * std::log(1.0 - c)) / columns;
      const Vector p = PriorOf(w, h_[i], config_.classes);
      const double kl = KlOf(fixed_q_[i], p);
      ++(kl > config_.free_nats ? above_free : below_free);
      parts["loss/dynamics"] += std::max(config_.free_nats, kl) / columns;
      parts["loss/representation"] +=
          std::max(config_.free_nats, KlOf(q_[i], fixed_p_[i])) / columns;
      parts["model/kl"] += kl / columns;
    }
    const auto imagined = static_cast<double>(actions_.size());
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      const Choice choice =
          PolicyOf(NetOf(w, "actor", features_[i]), discrete_, nullptr, 0, actions_[i]);
      parts["loss/actor"] -=
          weight_[i] * (advantage_[i] * choice.log_prob + config_.entropy_weight * choice.entropy) /
          imagined;
      parts["policy/entropy"] += choice.entropy / imagined;
      const Vector logits = NetOf(v, "critic", features_[i]);
      parts["loss/critic"] +=
          weight_[i] * (TwoHotLoss(logits, returns_[i]) + TwoHotLoss(logits, slow_value_[i])) /
          imagined;
      parts["value/return"] += returns_[i] / imagined;
    }
    const std::size_t start = h_.size() - static_cast<std::size_t>(config_.start_steps) * first;
    for (std::size_t i = 0; i < replay_returns_.size(); ++i) {
      const Vector logits = NetOf(v, "critic", Stack(h_[start + i], z_[start + i]));
      parts["loss/replay_critic"] +=
          (1.0 - At(batch_.last, i)) *
          (TwoHotLoss(logits, replay_returns_[i]) + TwoHotLoss(logits, slow_value_[i])) /
          static_cast<double>(replay_returns_.size());
    }
    return parts["loss/reconstruction"] + parts["loss/reward"] + parts["loss/continue"] +
           config_.dynamics_weight * parts["loss/dynamics"] +
           config_.representation_weight * parts["loss/representation"] + parts["loss/actor"] +
           parts["loss/critic"] + config_.replay_value_weight * parts["loss/replay_critic"];
  }

  std::map<std::string, double> parts;
  double scale = 0.0;
  int above_free = 0, below_free = 0;
  const std::vector<Vector>& h() const { return h_; }
  const std::vector<Vector>& z() const { return z_; }

 private:
  // An action as the world model takes it.
  Vector Taken(const Vector& a) const { return config_.aligned ? CodeOf(a, entries_) : a; }

  double Reconstruction(const Weights& w, const Vector& f, const Vector& o) const {
    const Vector seen = o.unaryExpr(&SymlogOf);
    const Vector told = NetOf(w, "decoder", f);
    if (!config_.aligned) return (told - seen).squaredNorm();
    double loss = 0.0;
    for (Index i = 0; i < kGeometrySize; ++i) {
      if (o[kGeometrySize + i] != 0.0) loss += std::pow(told[i] - seen[i], 2);
    }
    const Vector own = NetOf(w, "native_decoder", HiddenOf(w, "decoder", f));
    return loss + (own - seen.tail(kObservation)).squaredNorm();
  }

  // Of a state from which it imagines.
  double At(const Eigen::RowVectorXf& row, std::size_t start) const {
    return row[row.size() - config_.start_steps * config_.sequences + static_cast<Index>(start)];
  }

  // All states. With noise, draws z and fixes it; without, what was drawn plus what has changed of
  // its probabilities: the gradient that goes straight through.
  void Sequence(const Doubles& model, const Eigen::MatrixXf* noise) {
    const Weights w(model_, model);
    const Index classes = config_.classes;
    const bool draws = noise != nullptr;
    h_.clear();
    z_.clear();
    q_.clear();
    for (Index i = 0; i < config_.sequences * config_.sequence_length; ++i) {
      const Index column = i + config_.sequences;
      const auto k = static_cast<std::size_t>(i);
      const bool begins = i < config_.sequences;
      Vector h = begins ? Vector(batch_.features.col(i).head(config_.deter).cast<double>())
                        : h_[k - static_cast<std::size_t>(config_.sequences)];
      Vector z = Vector::Zero(config_.stoch * classes);
      if (begins) {
        for (Index s = 0; s < config_.stoch; ++s) {
          z[s * classes + static_cast<Index>(batch_.features(config_.deter + s, i))] = 1.0;
        }
      } else {
        z = z_[k - static_cast<std::size_t>(config_.sequences)];
      }
      Vector a = Vector::Zero(kActions);
      if (discrete_) {
        a[static_cast<Index>(batch_.action(0, i))] = 1.0;
      } else {
        a = batch_.action.col(i).cast<double>();
      }
      if (batch_.first[column] != 0.0F) {
        h.setZero();
        z.setZero();
        a.setZero();
      }
      h_.push_back(CoreOf(w, h, z, Taken(a)));
      q_.push_back(
          PosteriorOf(w, h_.back(), batch_.observation.col(column).cast<double>(), classes));
      if (draws) {
        fixed_q_.push_back(q_.back());
        fixed_p_.push_back(PriorOf(w, h_.back(), classes));
        drawn_.push_back(DrawOf(q_.back(), *noise, i, classes));
      }
      z_.push_back(drawn_[k] + q_[k] - fixed_q_[k]);
    }
  }

  DreamerConfig config_;
  bool discrete_;
  std::vector<int> entries_;  // of an action's dimensions in its code
  RecordBatch batch_;
  Tensors model_, critic_;
  Doubles slow_;
  double low_ = 0.0, high_ = 0.0;
  std::vector<Vector> h_, z_, q_;                  // of the last pass
  std::vector<Vector> drawn_, fixed_q_, fixed_p_;  // where the gradient is taken
  std::vector<Vector> features_, actions_;         // imagined
  Doubles slow_value_, returns_, advantage_, weight_, replay_returns_;
};

// Episodes end and begin in the middle, one by termination.
RecordBatch RandomRecords(const Dreamer& agent, const DreamerConfig& config, bool discrete,
                          Rng& rng) {
  RecordBatch batch = agent.MakeRecords();
  const auto fill = [&rng](Eigen::MatrixXf& matrix) {
    for (float& v : matrix.reshaped()) v = static_cast<float>(rng.Normal());
  };
  fill(batch.observation);
  if (config.aligned) {
    // which slots are alive
    for (float& v : batch.observation.middleRows(kGeometrySize, kGeometrySize).reshaped()) {
      v = static_cast<float>(rng.Index(2));
    }
  }
  fill(batch.features);
  for (float& v : batch.features.bottomRows(config.stoch).reshaped()) {
    v = static_cast<float>(rng.Index(config.classes));
  }
  for (float& v : batch.action.reshaped()) {
    v = static_cast<float>(discrete ? static_cast<double>(rng.Index(kActions))
                                    : rng.Uniform(-1.0, 1.0));
  }
  for (float& v : batch.reward) v = static_cast<float>(2.0 * rng.Normal());
  batch.first.setZero();
  batch.last.setZero();
  batch.terminal.setZero();
  const auto end = [&](Index time, Index sequence, bool terminal) {
    batch.last[batch.Column(time) + sequence] = 1.0F;
    batch.terminal[batch.Column(time) + sequence] = terminal ? 1.0F : 0.0F;
    if (time + 1 < batch.length()) batch.first[batch.Column(time + 1) + sequence] = 1.0F;
  };
  end(2, 0, true);
  end(3, 1, false);
  end(0, 2, false);
  return batch;
}

struct Case {
  bool discrete = false;
  bool wide = false;     // returns so far apart that they are scaled
  bool aligned = false;  // a world model over slots
};

class DreamerUpdateTest : public ::testing::TestWithParam<Case> {};

TEST_P(DreamerUpdateTest, IsThatOfTheFormulas) {
  const bool discrete = GetParam().discrete;
  const bool wide = GetParam().wide;
  DreamerConfig config = SmallConfig();
  config.aligned = GetParam().aligned;
  // more inputs tell more
  if (config.aligned) config.free_nats = 0.8;
  EnvSpec spec =
      SmallSpec(discrete ? ActionKind::kDiscrete : ActionKind::kContinuous, kActions, kObservation);
  if (!discrete) spec.action_code = {4, 1};
  Dreamer agent(spec, config, 5);
  Rng rng(1, "weights");
  // heads that start at zero would teach nothing below them
  const auto shake = [&](Parameters& parameters, std::span<float> values) {
    for (float& v : values) v += static_cast<float>(0.4 * rng.Normal());
    for (const NamedTensor& tensor : parameters.tensors()) {
      if (tensor.rows != kBins || tensor.columns != 1) continue;
      for (int i = 0; i < kBins; ++i) {
        // probable numbers near zero, or near 1e4
        const double at = (i - (wide ? 185.0 : 130.0)) / 6.0;
        values[tensor.offset + static_cast<std::size_t>(i)] -= static_cast<float>(at * at);
      }
    }
  };
  if (config.aligned) shake(agent.world(), agent.world().values());
  shake(agent.model(), agent.model().values());
  shake(agent.critic(), agent.critic().values());
  shake(agent.critic(), agent.critic().target());

  const RecordBatch batch = RandomRecords(agent, config, discrete, rng);
  const Doubles model = ModelValues(agent);
  const Doubles critic = AsDoubles(agent.critic().values());
  const Doubles slow = AsDoubles(agent.critic().target());
  PlainUpdate plain(agent, spec, config, batch);
  Rng noise(5, "noise");
  plain.Draw(model, critic, noise);
  plain.Loss(model, critic);
  const std::map<std::string, double> parts = plain.parts;
  const std::vector<Vector> h = plain.h();
  const std::vector<Vector> z = plain.z();
  EXPECT_EQ(plain.scale > 1.0, wide);
  EXPECT_GT(plain.above_free, 0) << parts.at("model/kl");
  EXPECT_GT(plain.below_free, 0) << parts.at("model/kl");

  Eigen::MatrixXf latents(config.deter + config.stoch, config.sequences * config.sequence_length);
  agent.UpdateOn(batch, latents);

  // the states that it inferred
  for (Index i = 0; i < latents.cols(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    for (Index j = 0; j < config.deter; ++j) {
      EXPECT_NEAR(latents(j, i), h[k][j], Tol(1e-5)) << j << " of " << i;
    }
    for (Index s = 0; s < config.stoch; ++s) {
      EXPECT_GT(z[k][s * config.classes + static_cast<Index>(latents(config.deter + s, i))], 0.5);
    }
  }
  const MetricMap metrics(agent);
  for (const auto& [name, value] : parts) {
    EXPECT_NEAR(metrics[name], value, Tol(2e-5) * (1.0 + std::abs(value))) << name;
  }
  EXPECT_NEAR(metrics["value/scale"], plain.scale, Tol(1e-4) * plain.scale);

  const auto compare = [](const Tensors& tensors, const Doubles& got, const Doubles& expected) {
    for (const NamedTensor& tensor : tensors) {
      double largest = 0.0;
      for (std::size_t i = tensor.offset; i < tensor.offset + tensor.size(); ++i) {
        ASSERT_NEAR(got[i], expected[i], Tol(2e-5) * (1.0 + std::abs(expected[i])))
            << tensor.name << "[" << i - tensor.offset << "]";
        largest = std::max(largest, std::abs(expected[i]));
      }
      EXPECT_GT(largest, 1e-4) << tensor.name << " has no gradient";
    }
  };
  const Doubles d_model =
      NumericGradient(model, [&](const Doubles& w) { return plain.Loss(w, critic); });
  const Doubles d_critic =
      NumericGradient(critic, [&](const Doubles& w) { return plain.Loss(model, w); });
  const std::span<const float> d_world =
      config.aligned ? agent.world().gradients() : std::span<float>();
  compare(ModelTensors(agent), Joined(d_world, agent.model().gradients()), d_model);
  compare(TensorsOf({&agent.critic()}), AsDoubles(agent.critic().gradients()), d_critic);

  // the first step of LaProp goes as far for every gradient, in what can be pretrained 0.3 of it;
  // the slow critic follows
  const double rate = config.learning_rate / config.warm_up;
  const Doubles moved = ModelValues(agent);
  for (std::size_t i = 0; i < model.size(); ++i) {
    if (std::abs(d_model[i]) < 1e-3) continue;
    const double step = i < agent.world().size() ? 0.3 * rate : rate;
    ASSERT_NEAR(moved[i], model[i] - std::copysign(step, d_model[i]),
                Tol(1e-6) * (1.0 + std::abs(model[i])));
  }
  for (std::size_t i = 0; i < critic.size(); ++i) {
    const double now = agent.critic().values()[i];
    ASSERT_NEAR(agent.critic().target()[i], slow[i] + config.slow_rate * (now - slow[i]),
                Tol(1e-6) * (1.0 + std::abs(slow[i])));
  }
}

INSTANTIATE_TEST_SUITE_P(Actions, DreamerUpdateTest,
                         ::testing::Values(Case{false, false}, Case{true, false}, Case{false, true},
                                           Case{false, false, true}, Case{true, false, true}),
                         [](const auto& c) {
                           return std::string(c.param.discrete ? "Discrete" : "Continuous") +
                                  (c.param.wide ? "Scaled" : "") +
                                  (c.param.aligned ? "OverSlots" : "");
                         });

// ---- parts ----

TEST(DreamerReturns, AreTheGoldenNumbers) {
  const std::vector<float> reward(3, 1.0F);
  const std::vector<float> continues(3, 0.996997F);
  const std::vector<float> value{0.6F, 0.7F, 0.8F};  // of the successors
  std::vector<float> returns(3);
  LambdaReturns(reward, continues, {}, value, 0.95, 1, returns);
  EXPECT_NEAR(returns[0], 3.622710, Tol(1e-6));
  EXPECT_NEAR(returns[1], 2.737484, Tol(1e-6));
  EXPECT_NEAR(returns[2], 1.797598, Tol(1e-6));
}

TEST(DreamerReturns, EndAtTerminationsAndAreCutAtTheLastStep) {
  const std::vector<float> reward{1.0F, 10.0F, 2.0F, 20.0F, 4.0F, 40.0F};  // two columns
  const std::vector<float> bootstrap{7.0F, 70.0F, 8.0F, 80.0F, 9.0F, 90.0F};
  std::vector<float> continues(6, 0.5F);
  continues[2] = 0.0F;  // column 0 terminates in the middle
  std::vector<float> last(6, 0.0F);
  last[3] = 1.0F;  // column 1 is cut there
  std::vector<float> returns(6);
  LambdaReturns(reward, continues, last, bootstrap, 1.0, 2, returns);
  const std::vector<float> expected{1.0F + 0.5F * 2.0F,
                                    10.0F + 0.5F * (20.0F + 0.5F * 80.0F),
                                    2.0F,
                                    20.0F + 0.5F * 80.0F,
                                    4.0F + 0.5F * 9.0F,
                                    40.0F + 0.5F * 90.0F};
  EXPECT_EQ(returns, expected);
}

TEST(DreamerReturns, TheScaleFollowsThePercentiles) {
  ReturnScale scale;
  EXPECT_EQ(scale.scale(), 1.0);
  std::vector<float> returns(101);
  for (int i = 0; i <= 100; ++i)
    returns[static_cast<std::size_t>(i)] = 10.0F * static_cast<float>(i);
  scale.Update(returns);
  EXPECT_NEAR(scale.scale(), 0.01 * 900.0, Tol(1e-6));
  for (int i = 0; i < 2000; ++i) scale.Update(returns);
  EXPECT_NEAR(scale.scale(), 900.0, Tol(1e-3));
  for (float& v : returns) v *= 1e-4F;
  for (int i = 0; i < 3000; ++i) scale.Update(returns);
  EXPECT_EQ(scale.scale(), 1.0);  // small returns are not blown up
}

TEST(DreamerLatents, MixedDivergenceIsTheGoldenNumber) {
  StaticGraph g;
  const Node logits = g.Input(4, 1);
  const Node kl =
      Divergence(g, MixedSoftmax(g, logits, 4), g.Constant(Eigen::MatrixXf::Constant(4, 1, 0.25F)));
  g.Finish();
  g.input(logits)(0, 0) = 2.0F;
  g.Forward();
  EXPECT_NEAR(g.value(kl)(0, 0), 0.458838, Tol(1e-6));
}

// Nothing is expected before anything is known.
TEST(Dreamer, StartsWithReturnsOfZero) {
  const DreamerConfig config = SmallConfig();
  Dreamer agent(SmallSpec(ActionKind::kContinuous, kActions), config, 5);
  Rng rng(1, "batch");
  Eigen::MatrixXf latents(config.deter + config.stoch, config.sequences * config.sequence_length);
  agent.UpdateOn(RandomRecords(agent, config, false, rng), latents);
  const MetricMap metrics(agent);
  EXPECT_NEAR(metrics["value/return"], 0.0, 1e-6);
  // tanh mean near 0, deviation 0.9 sigmoid(2) + 0.1 = 0.8927
  const double entropy =
      kActions * (0.5 * std::log(2.0 * std::numbers::pi * std::numbers::e) + std::log(0.8927));
  EXPECT_NEAR(metrics["policy/entropy"], entropy, Tol(5e-3));
}

// An evaluation draws nothing: the most likely z, and the most likely action in that state.
TEST(Dreamer, EvaluationTakesWhatIsMostLikely) {
  const DreamerConfig config = SmallConfig();
  const SegmentMatrix matrix(CompactLift());
  const Doubles geometry(kGeometrySize);
  for (const ActionKind kind : {ActionKind::kContinuous, ActionKind::kDiscrete}) {
    const bool discrete = kind == ActionKind::kDiscrete;
    const EnvSpec spec = SmallSpec(kind, kActions, kObservation);
    Dreamer agent(spec, config, 5);
    Rng weights(1, "weights");
    for (float& v : agent.model().values()) v += static_cast<float>(0.4 * weights.Normal());
    const Doubles values = AsDoubles(agent.model().values());
    const Tensors tensors = ModelTensors(agent);
    const Weights w(tensors, values);
    const std::unique_ptr<Carry> carry = agent.MakeCarry();
    ActionBuffer action(spec.action);
    Rng rng(1, "policy");
    Vector h = Vector::Zero(config.deter);
    Vector z = Vector::Zero(config.stoch * config.classes);
    Vector a = Vector::Zero(kActions);
    for (int t = 0; t < 20; ++t) {
      const Vector o = Vector::NullaryExpr(kObservation, [&] { return weights.Normal(); });
      agent.Act(
          {{EnvView(o.data(), kObservation), EnvView(geometry.data(), kGeometrySize), matrix, t},
           *carry,
           rng,
           action},
          ActMode::kEvaluate);
      h = CoreOf(w, h, z, a);
      const Vector q = PosteriorOf(w, h, o, config.classes);
      z.setZero();
      for (Index i = 0; i < z.size(); i += config.classes) {
        Index likely = 0;
        q.segment(i, config.classes).maxCoeff(&likely);
        z[i + likely] = 1.0;
      }
      const Vector head = NetOf(w, "actor", Stack(h, z));
      if (discrete) {
        Index likely = 0;
        head.maxCoeff(&likely);
        EXPECT_EQ(action.index(), likely) << t;
        a.setZero();
        a[likely] = 1.0;
      } else {
        a = head.head(kActions).array().tanh();
        for (Index i = 0; i < kActions; ++i) {
          EXPECT_NEAR(action.values()[static_cast<std::size_t>(i)], a[i], Tol(1e-5)) << t;
        }
      }
    }
    EXPECT_EQ(rng.NextU64(), Rng(1, "policy").NextU64());
  }
}

// What was seen in training is what observations are normalised by, in updates and in acting.
TEST(Dreamer, SeesNormalisedObservations) {
  const EnvSpec spec = SmallSpec(ActionKind::kContinuous, kActions, /*observations=*/1);
  const SegmentMatrix matrix(CompactLift());
  const Doubles geometry(kGeometrySize);
  const Doubles code(kActionCodeSize);
  // a choice after two steps through `values`, and the loss of an update
  const auto run = [&](bool normalise, const Doubles& values, double last) {
    DreamerConfig config = SmallConfig();
    config.normalize_observations = normalise;
    config.random_steps = 1;
    Dreamer agent(spec, config, 5);
    const std::unique_ptr<Carry> carry = agent.MakeCarry();
    const auto view = [&](const double& value) {
      return Situation{EnvView(&value, 1), EnvView(geometry.data(), kGeometrySize), matrix, 0};
    };
    ActionBuffer action(spec.action);
    Rng rng(1, "policy");
    for (std::size_t t = 0; t + 1 < values.size(); ++t) {
      agent.Act({view(values[t]), *carry, rng, action}, ActMode::kExplore);
      agent.Observe({.before = view(values[t]),
                     .action = action.view(),
                     .action_code = code,
                     .psi = {},
                     .after = view(values[t + 1])},
                    *carry);
    }
    carry->Begin();
    agent.Act({view(last), *carry, rng, action}, ActMode::kEvaluate);
    RecordBatch batch = agent.MakeRecords();
    for (auto* row : {&batch.reward, &batch.first, &batch.last, &batch.terminal}) row->setZero();
    batch.features.setZero();
    batch.action.setZero();
    batch.observation.setConstant(static_cast<float>(last));
    Eigen::MatrixXf latents(config.deter + config.stoch, config.sequences * config.sequence_length);
    agent.UpdateOn(batch, latents);
    return Doubles{action.values()[0], MetricMap(agent)["loss/reconstruction"]};
  };
  // mean 4 and deviation 2: 7 is 1.5
  ExpectNear(run(true, {2.0, 6.0, 9.0}, 7.0), run(true, {-1.0, 1.0, 9.0}, 1.5), "shifted", 1e-5);
  EXPECT_GT(std::abs(run(false, {2.0, 6.0, 9.0}, 7.0)[1] - run(true, {2.0, 6.0, 9.0}, 7.0)[1]),
            0.1);
}

TEST(Dreamer, PresetsStandForSizesThatSettingsChange) {
  DreamerConfig config;
  SetField(config, "preset=reference");
  EXPECT_EQ(config.deter, 512);
  EXPECT_EQ(config.sequences * config.sequence_length, 1024);
  SetField(config, "deter=64");
  EXPECT_EQ(config.deter, 64);
  SetField(config, "preset=compact");
  EXPECT_EQ(config.deter, DreamerConfig().deter);
}

TEST(Dreamer, SettingsThatDontFitAreUserErrors) {
  const EnvSpec spec = SmallSpec(ActionKind::kContinuous, kActions);
  for (const auto change :
       {+[](DreamerConfig& c) { c.blocks = 3; }, +[](DreamerConfig& c) { c.start_steps = 5; },
        +[](DreamerConfig& c) { c.replay_size = 4; }}) {
    DreamerConfig config = SmallConfig();
    change(config);
    EXPECT_THROW(Dreamer(spec, config, 1), UserError);
  }
}

}  // namespace
}  // namespace msrl
