#include "msrl/agents/tdmpc/tdmpc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "msrl/agents/tdmpc/pretrained_model.h"
#include "msrl/nn/random.h"
#include "msrl/testing/agent_update.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas

constexpr int kBatch = 6;
constexpr int kHorizon = 2;
constexpr int kActions = 2;
constexpr int kLatent = 8;
constexpr int kWidth = 4;
constexpr std::size_t kQ = 3;
constexpr std::size_t kTransitionTensors = 12;  // of d, in the order of its networks
const EnvSpec kSpec = SmallSpec(ActionKind::kContinuous, kActions);

TdMpcConfig SmallConfig() {
  TdMpcConfig config;
  config.encoder_width = 5;
  config.latent_groups = kLatent / LatentModel::kGroup;
  config.model_width = kWidth;
  config.q_count = kQ;
  config.bins = 7;
  config.batch_size = kBatch;
  config.replay_size = 100;
  config.learning_rate = 0.003;
  config.encoder_learning_rate = 0.001;
  config.tau = 0.05;
  config.gamma = 0.9;
  config.rho = 0.7;
  config.consistency_weight = 2.0;
  config.reward_weight = 0.5;
  config.value_weight = 0.3;
  config.termination_weight = 0.8;
  config.entropy_weight = 0.02;
  config.mppi = {.horizon = kHorizon, .samples = 5, .policy_samples = 2, .elites = 3};
  return config;
}

// What the first TD-MPC does otherwise.
TdMpcConfig FirstConfig() {
  TdMpcConfig config = SmallConfig();
  config.bins = 0;
  config.consistency_target = ConsistencyTarget::kSlow;
  config.pair_value = PairValue::kMin;
  config.termination = false;
  return config;
}

EnvView ViewOf(const Eigen::VectorXd& values) { return {values.data(), values.size()}; }

// ---- the networks in double ----

double Mish(double x) { return x * std::tanh(std::log1p(std::exp(x))); }
double Symlog(double x) { return std::copysign(std::log1p(std::abs(x)), x); }

Doubles Norm(const Doubles& x, const double* scale, const double* shift) {
  double mean = 0.0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  double variance = 0.0;
  for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
  Doubles y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    y.push_back((x[i] - mean) / std::sqrt(variance + 1e-5) * scale[i] + shift[i]);
  }
  return y;
}

// Layers of weight, bias and, if hidden, norm; `at` moves behind them.
Doubles Net(const double*& at, const std::vector<int>& sizes, Doubles x) {
  for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
    const auto in = static_cast<std::size_t>(sizes[l]);
    const auto out = static_cast<std::size_t>(sizes[l + 1]);
    Doubles y(out);
    for (std::size_t o = 0; o < out; ++o) {
      y[o] = at[in * out + o];
      for (std::size_t i = 0; i < in; ++i) y[o] += at[i * out + o] * x[i];
    }
    at += (in + 1) * out;
    if (l + 2 < sizes.size()) {
      y = Norm(y, at, at + out);
      at += 2 * out;
      for (double& v : y) v = Mish(v);
    }
    x = std::move(y);
  }
  return x;
}

Doubles SimNorm(Doubles x) {
  double sum = 0.0;
  for (double& v : x) sum += v = std::exp(v);
  for (double& v : x) v /= sum;
  return x;
}

struct Weights {
  Doubles encoder, dynamics, values, policy, native, task;
};

// All networks of a small agent, or of a small model that is taught by source episodes. States and
// actions are those of a column of a batch, which says the sequence.
class Plain {
 public:
  // actuators: the entry of the action code that each dimension of an action goes into.
  explicit Plain(const TdMpcConfig& config, std::vector<std::size_t> actuators = {0, 1},
                 const SourceLesson* lesson = nullptr)
      : config_(config),
        outputs_(config.bins > 0 ? config.bins : 1),
        shared_(config.aligned ? kStateChannels : 3),
        native_(config.aligned && lesson == nullptr ? 3 : 0),
        code_(config.aligned ? kActionCodeSize : kActions),
        task_(config.aligned ? config.task_size : 0),
        actuators_(std::move(actuators)),
        lesson_(lesson) {}

  std::size_t actions() const { return actuators_.size(); }
  // How many actions the task has.
  double active(Eigen::Index column) const {
    double sum = 0.0;
    for (std::size_t j = 0; j < actions(); ++j) sum += Mask(j, column);
    return sum;
  }
  double Mask(std::size_t j, Eigen::Index column) const {
    return lesson_ == nullptr ? 1.0 : lesson_->mask(static_cast<Eigen::Index>(j), column % kBatch);
  }

  Doubles Encode(const Weights& w, const Doubles& o, Eigen::Index column) const {
    const double* at = w.encoder.data();
    const Doubles x{o.begin(), o.begin() + shared_};
    Doubles z = Net(at, {shared_ + task_, config_.encoder_width, kLatent}, WithTask(w, x, column));
    z = Norm(z, at, at + kLatent);
    if (native_ > 0) {
      at = w.native.data();
      const Doubles own =
          Net(at, {native_, config_.encoder_width, kLatent}, {o.begin() + shared_, o.end()});
      for (std::size_t i = 0; i < own.size(); ++i) z[i] += own[i];
    }
    return SimNorm(z);
  }
  // Next state, reward head and termination's logit (of the next state).
  struct Step {
    Doubles z, reward;
    double termination = 0.0;
  };
  Step Next(const Weights& w, const Doubles& z, const Doubles& a, Eigen::Index column) const {
    const double* at = w.dynamics.data();
    const int input = kLatent + code_ + task_;
    const Doubles x = Input(w, z, a, column);
    Step step;
    const Doubles before = Net(at, {input, kWidth, kWidth, kLatent}, x);
    step.z = SimNorm(Norm(before, at, at + kLatent));
    at += 2 * kLatent;
    step.reward = Net(at, {input, kWidth, kWidth, outputs_}, x);
    if (config_.termination) {
      step.termination =
          Net(at, {kLatent + task_, kWidth, kWidth, 1}, WithTask(w, step.z, column))[0];
    }
    return step;
  }
  Doubles Q(const Weights& w, const Doubles& z, const Doubles& a, std::size_t member,
            Eigen::Index column) const {
    const double* at = w.values.data() + member * (w.values.size() / kQ);
    return Net(at, {kLatent + code_ + task_, kWidth, kWidth, outputs_}, Input(w, z, a, column));
  }
  struct Choice {
    Doubles action, mu, std;
    double entropy = 0.0;
  };
  Choice Act(const Weights& w, const Doubles& z, const Eigen::MatrixXf& noise,
             Eigen::Index column) const {
    const double* at = w.policy.data();
    const auto m = static_cast<int>(actions());
    const Doubles state = WithTask(w, z, column);
    const Doubles slots = Net(at, {kLatent + task_, kWidth, kWidth, 2 * code_}, state);
    Doubles own(2 * actions());
    if (Share()) own = Net(at, {kLatent + task_, kWidth, kWidth, 2 * m}, state);
    Choice choice;
    for (std::size_t j = 0; j < actions(); ++j) {
      const double mask = Mask(j, column);
      const double raw =
          slots[static_cast<std::size_t>(code_) + actuators_[j]] + own[actions() + j];
      const double std = std::exp(mask * (-10.0 + 6.0 * (std::tanh(raw) + 1.0)));
      const double mu = mask * (slots[actuators_[j]] + own[j]);
      const double u = mu + std * mask * noise(static_cast<Eigen::Index>(j), column);
      choice.action.push_back(std::tanh(u));
      choice.mu.push_back(mu);
      choice.std.push_back(std);
      choice.entropy -= mask * LogNormal(u, mu, std);
    }
    return choice;
  }

  double Decode(const Doubles& head) const {
    if (config_.bins == 0) return head[0];
    const Doubles p = SimNorm(head);
    double mean = 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) mean += p[i] * Point(i);
    return std::copysign(std::expm1(std::abs(mean)), mean);
  }
  double HeadLoss(const Doubles& head, double target) const {
    if (config_.bins == 0) return (head[0] - target) * (head[0] - target);
    const Doubles p = SimNorm(head);
    const double width = Point(1) - Point(0);
    const double x = std::clamp(Symlog(target), Point(0), Point(p.size() - 1));
    double loss = 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      loss -= std::max(0.0, 1.0 - std::abs(x - Point(i)) / width) * std::log(p[i]);
    }
    return loss;
  }

 private:
  double Point(std::size_t i) const {
    return -10.0 + 20.0 * static_cast<double>(i) / (config_.bins - 1);
  }
  bool Share() const {
    return std::set(actuators_.begin(), actuators_.end()).size() < actuators_.size();
  }
  Doubles WithTask(const Weights& w, Doubles x, Eigen::Index column) const {
    if (task_ == 0) return x;
    const auto index = lesson_ == nullptr ? 0 : std::lround(lesson_->task[column % kBatch]);
    const auto begin = w.task.begin() + index * task_;
    x.insert(x.end(), begin, begin + task_);
    return x;
  }
  Doubles Input(const Weights& w, const Doubles& z, const Doubles& a, Eigen::Index column) const {
    Doubles code(static_cast<std::size_t>(code_));
    for (std::size_t j = 0; j < a.size(); ++j) {
      code[actuators_[j]] +=
          a[j] / static_cast<double>(std::ranges::count(actuators_, actuators_[j]));
    }
    return WithTask(w, Join(z, code), column);
  }

  TdMpcConfig config_;
  int outputs_, shared_, native_, code_, task_;
  std::vector<std::size_t> actuators_;
  const SourceLesson* lesson_;
};

// Heads start at zero, where too much is equal: all parameters are drawn anew.
void Scatter(LatentModel& model) {
  Rng rng(4, "scatter");
  for (Parameters* part : {&model.encoder(), &model.dynamics(), &model.values(), &model.policy(),
                           &model.native(), &model.task()}) {
    if (part->size() == 0) continue;
    for (float& v : part->values()) v = static_cast<float>(rng.Normal());
    for (float& v : part->target()) v = static_cast<float>(rng.Normal());
  }
  model.BoundTasks();
}

Weights WeightsOf(LatentModel& model) {
  return {AsDoubles(model.encoder().values()), AsDoubles(model.dynamics().values()),
          AsDoubles(model.values().values()),  AsDoubles(model.policy().values()),
          AsDoubles(model.native().values()),  AsDoubles(model.task().values())};
}

// Every third sequence has one step only, every second ends by a termination.
SequenceBatch RandomSequences(SequenceBatch batch, Rng& rng) {
  for (float& v : batch.observation.reshaped()) v = static_cast<float>(rng.Normal());
  for (float& v : batch.action.reshaped()) v = static_cast<float>(rng.Uniform(-1.0, 1.0));
  for (float& v : batch.reward) v = static_cast<float>(3.0 * rng.Normal());
  batch.continues.setOnes();
  batch.inside.setOnes();
  for (int b = 0; b < kBatch; ++b) {
    const bool is_short = b % 3 == 2;
    if (is_short) batch.inside[batch.Column(1) + b] = 0.0F;
    if (b % 2 == 0) batch.continues[batch.Column(is_short ? 0 : 1) + b] = 0.0F;
  }
  return batch;
}

// As a graph fills its inputs.
Eigen::MatrixXf NoiseOf(int columns, Rng& rng, std::size_t actions = kActions) {
  StaticGraph graph;
  const Node node = graph.Input(static_cast<int>(actions), columns);
  graph.Finish();
  graph.FillNormal(node, rng);
  return graph.value(node);
}

std::array<std::size_t, 2> PairOf(Rng& rng) {
  const auto first = static_cast<std::size_t>(rng.Index(kQ));
  const auto other = static_cast<std::size_t>(rng.Index(kQ - 1));
  return {first, other < first ? other : other + 1};
}

double Largest(const Doubles& values) {
  double most = 0.0;
  for (const double v : values) most = std::max(most, std::abs(v));
  return most;
}

// Scales gradients that belong together; returns their norm before.
double ClipTogether(std::initializer_list<Doubles*> gradients, double most) {
  double squares = 0.0;
  for (const Doubles* d : gradients) {
    for (const double v : *d) squares += v * v;
  }
  const double norm = std::sqrt(squares);
  if (norm <= most) return norm;
  for (Doubles* d : gradients) {
    for (double& v : *d) v *= most / norm;
  }
  return norm;
}

// The mean of gradients that Adam keeps.
void ExpectGradient(Parameters& part, const std::string& what, const PlainAdam& adam) {
  ExpectNear(AsDoubles(part.adam().mean()), adam.mean, what + " gradient",
             1e-4 * Largest(adam.mean));
}

// Parameters after a step, where more than rounding decides it.
void ExpectStep(const PlainAdam& adam, std::span<const float> got, const Doubles& expected,
                const std::string& what) {
  const double least = 0.02 * Largest(adam.mean);
  int compared = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::abs(adam.mean[i]) < least) continue;
    ++compared;
    ASSERT_NEAR(got[i], expected[i], Tol(1e-5)) << what << "[" << i << "]";
  }
  EXPECT_GT(compared, 20) << what;
}

struct Case {
  std::string name;
  TdMpcConfig config;
  std::vector<std::size_t> actuators = {0, 1};
  bool lessons = false;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

constexpr double kCloneWeight = 0.1;
constexpr int kTasks = 2;

LatentSizes SizesOf(const TdMpcConfig& config) {
  return {config.encoder_width, config.latent_groups, config.model_width, config.q_count,
          config.bins,          config.termination,   config.task_size};
}

// What learns: an agent, or a model with lessons.
struct Subject {
  explicit Subject(const Case& c) {
    if (!c.lessons) {
      EnvSpec spec = kSpec;
      spec.action_code.assign(c.actuators.begin(), c.actuators.end());
      agent.emplace(spec, c.config, 5);
      return;
    }
    own_model.emplace(SlotModel(SizesOf(c.config), kTasks), Rng(5, "init"));
    LatentLossSettings settings{c.config};
    settings.batch_size = kBatch;
    settings.horizon = kHorizon;
    settings.gamma = c.config.gamma;
    settings.lessons = true;
    settings.clone_weight = kCloneWeight;
    own_learner.emplace(*own_model, settings, Rng(5, "noise"));
  }
  LatentModel& model() { return agent ? agent->model() : *own_model; }
  double scale() { return agent ? agent->scale() : own_learner->scale(); }
  SequenceBatch MakeBatch() const {
    if (agent) return agent->MakeBatch();
    return Replay({.capacity = 100, .observation_size = kStateChannels, .action_size = 10})
        .MakeSequences(kBatch, kHorizon);
  }
  void Update(const SequenceBatch& batch, const SourceLesson& lesson) {
    agent ? agent->UpdateOn(batch) : own_learner->UpdateOn(batch, lesson);
  }
  MetricMap Metrics() { return agent ? MetricMap(*agent) : MetricMap(*own_learner); }

  std::optional<TdMpc> agent;
  std::optional<LatentModel> own_model;
  std::optional<LatentLearner> own_learner;
};

// Two tasks in turn, one with three slots, the other with slots 0 and 4; what a task has not is
// zero in what was done there.
SourceLesson RandomLesson(SequenceBatch& batch, Rng& rng) {
  SourceLesson lesson;
  lesson.task.setZero(kBatch);
  lesson.mask.setZero(kActionCodeSize, kBatch);
  lesson.label.setZero(kHorizon * kBatch);
  lesson.label_share = 0.3;
  for (int b = 0; b < kBatch; ++b) {
    lesson.task[b] = static_cast<float>(b % kTasks);
    if (b % kTasks == 0) {
      lesson.mask.col(b).head(3).setOnes();
    } else {
      lesson.mask(0, b) = lesson.mask(4, b) = 1.0F;
    }
  }
  for (float& v : lesson.label) v = static_cast<float>(2.0 * rng.Normal());
  for (Eigen::Index c = 0; c < batch.action.cols(); ++c) {
    batch.action.col(c).array() *= lesson.mask.col(c % kBatch).array();
  }
  batch.action(0, 0) = 1.0F;  // a category: the tanh never gets there
  return lesson;
}

class TdMpcUpdate : public ::testing::TestWithParam<Case> {};

TEST_P(TdMpcUpdate, IsThatOfTheFormulas) {
  const TdMpcConfig& config = GetParam().config;
  const bool lessons = GetParam().lessons;
  const bool slow = config.consistency_target == ConsistencyTarget::kSlow;
  Subject subject(GetParam());
  LatentModel& model = subject.model();
  Scatter(model);
  SourceLesson lesson;
  const Plain plain(config, GetParam().actuators, lessons ? &lesson : nullptr);
  PlainAdam encoder_adam;
  PlainAdam dynamics_adam;
  PlainAdam values_adam;
  PlainAdam native_adam;
  PlainAdam task_adam;
  PlainAdam policy_adam{.epsilon = LatentModel::kPolicyAdamEpsilon};
  Rng noise_rng(5, "noise");
  Rng rng(1, "batch");
  double scale = 1.0;
  int smaller[2] = {0, 0};
  bool clipped = false;
  for (int update = 0; update < 4; ++update) {
    SCOPED_TRACE(update);
    SequenceBatch batch = RandomSequences(subject.MakeBatch(), rng);
    if (lessons) lesson = RandomLesson(batch, rng);
    const Eigen::MatrixXf noise = NoiseOf(kHorizon * kBatch, noise_rng, plain.actions());
    const auto pair = PairOf(noise_rng);
    Weights w = WeightsOf(model);
    Weights target = w;  // with the networks that follow slowly
    target.values = AsDoubles(model.values().target());
    if (slow) target.encoder = AsDoubles(model.encoder().target());
    if (slow && config.aligned) target.native = AsDoubles(model.native().target());

    // targets are constants
    Doubles y;
    std::vector<Doubles> wanted;
    for (Eigen::Index c = 0; c < kHorizon * kBatch; ++c) {
      const Doubles later = Column(batch.observation, c + kBatch);
      const Doubles next = plain.Encode(w, later, c);
      wanted.push_back(slow ? plain.Encode(target, later, c) : next);
      const Doubles a = plain.Act(w, next, noise, c).action;
      const double q1 = plain.Decode(plain.Q(target, next, a, pair[0], c));
      const double q2 = plain.Decode(plain.Q(target, next, a, pair[1], c));
      ++smaller[q1 < q2 ? 0 : 1];
      y.push_back(batch.reward[c] + config.gamma * batch.continues[c] * std::min(q1, q2));
      if (lessons) y.back() = 0.7 * y.back() + 0.3 * lesson.label[c];
    }
    struct Parts {
      double consistency = 0.0, reward = 0.0, value = 0.0, termination = 0.0;
    };
    std::vector<Doubles> states((kHorizon + 1) * kBatch);
    const auto parts_of = [&](const Weights& at) {
      Parts parts;
      for (Eigen::Index b = 0; b < kBatch; ++b) {
        Doubles z = plain.Encode(at, Column(batch.observation, b), b);
        states[static_cast<std::size_t>(b)] = z;
        for (Eigen::Index t = 0; t < kHorizon; ++t) {
          const Eigen::Index c = t * kBatch + b;
          const double weight = std::pow(config.rho, t) * batch.inside[c] / (kHorizon * kBatch);
          const Doubles a = Column(batch.action, c);
          const Plain::Step step = plain.Next(at, z, a, c);
          parts.reward += weight * plain.HeadLoss(step.reward, batch.reward[c]);
          for (std::size_t k = 0; k < kQ; ++k) {
            parts.value += weight / kQ *
                           plain.HeadLoss(plain.Q(at, z, a, k, c), y[static_cast<std::size_t>(c)]);
          }
          z = step.z;
          states[static_cast<std::size_t>(c + kBatch)] = z;
          for (std::size_t i = 0; i < kLatent; ++i) {
            const double error = z[i] - wanted[static_cast<std::size_t>(c)][i];
            parts.consistency += weight * error * error / kLatent;
          }
          const double p = 1.0 / (1.0 + std::exp(-step.termination));
          parts.termination -= weight * std::log(batch.continues[c] == 0.0F ? p : 1.0 - p);
        }
      }
      return parts;
    };
    const auto loss_of = [&](const Weights& at) {
      const Parts parts = parts_of(at);
      return config.consistency_weight * parts.consistency + config.reward_weight * parts.reward +
             config.value_weight * parts.value +
             (config.termination ? config.termination_weight * parts.termination : 0.0);
    };
    const auto gradient_of = [&](Doubles Weights::*part) {
      Weights at = w;
      return NumericGradient(w.*part, [&](const Doubles& values) {
        at.*part = values;
        return loss_of(at);
      });
    };
    const Parts expected = parts_of(w);
    const std::vector<Doubles> z = states;
    Doubles d_encoder = gradient_of(&Weights::encoder);
    Doubles d_dynamics = gradient_of(&Weights::dynamics);
    Doubles d_values = gradient_of(&Weights::values);
    Doubles d_native = gradient_of(&Weights::native);
    Doubles d_task = gradient_of(&Weights::task);
    if (config.frozen) {
      std::ranges::fill(d_encoder, 0.0);
      // d is the first of three networks: up to the reward's
      const std::size_t transition = model.dynamics().tensors()[kTransitionTensors].offset;
      std::fill_n(d_dynamics.begin(), transition, 0.0);
    }
    const double norm = ClipTogether({&d_encoder, &d_dynamics, &d_values, &d_native, &d_task},
                                     config.max_gradient_norm);
    clipped |= norm > config.max_gradient_norm;
    const Weights before = w;
    encoder_adam.Step(w.encoder, d_encoder, config.encoder_learning_rate);
    dynamics_adam.Step(w.dynamics, d_dynamics, config.learning_rate);
    values_adam.Step(w.values, d_values, config.learning_rate);
    native_adam.Step(w.native, d_native, config.encoder_learning_rate);
    task_adam.Step(w.task, d_task, config.learning_rate);
    for (auto task = w.task.begin(); task != w.task.end(); task += config.task_size) {
      const double length = std::sqrt(std::inner_product(task, task + config.task_size, task, 0.0));
      for (int i = 0; i < config.task_size; ++i) task[i] /= std::max(1.0, length);
    }

    subject.Update(batch, lesson);
    if (config.frozen) {
      EXPECT_EQ(AsDoubles(model.encoder().values()), before.encoder);
      const Doubles now = AsDoubles(model.dynamics().values());
      const std::size_t transition = model.dynamics().tensors()[kTransitionTensors].offset;
      EXPECT_TRUE(std::equal(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(transition),
                             before.dynamics.begin()));
    } else {
      ExpectGradient(model.encoder(), "encoder", encoder_adam);
      ExpectStep(encoder_adam, model.encoder().values(), w.encoder, "encoder");
    }
    ExpectGradient(model.dynamics(), "dynamics", dynamics_adam);
    ExpectGradient(model.values(), "values", values_adam);
    ExpectStep(dynamics_adam, model.dynamics().values(), w.dynamics, "dynamics");
    ExpectStep(values_adam, model.values().values(), w.values, "values");
    if (!w.native.empty()) {
      ExpectGradient(model.native(), "native", native_adam);
      ExpectStep(native_adam, model.native().values(), w.native, "native");
    }
    if (config.aligned) {
      ExpectGradient(model.task(), "task", task_adam);
      ExpectStep(task_adam, model.task().values(), w.task, "task");
    }
    const Weights now = WeightsOf(model);
    Doubles expected_target = target.values;
    PlainPolyak(expected_target, now.values, config.tau);
    ExpectNear(AsDoubles(model.values().target()), expected_target, "target");
    if (slow) {
      expected_target = target.encoder;
      PlainPolyak(expected_target, now.encoder, config.tau);
      ExpectNear(AsDoubles(model.encoder().target()), expected_target, "slow encoder");
    }

    // the policy learns against the new values, from the old states
    constexpr int kStates = (kHorizon + 1) * kBatch;
    const Eigen::MatrixXf policy_noise = NoiseOf(kStates, noise_rng, plain.actions());
    const auto policy_pair = PairOf(noise_rng);
    Weights learned = now;
    const auto at = [&](const Doubles& pi) -> const Weights& {
      learned.policy = pi;
      return learned;
    };
    const auto q_of = [&](const Doubles& pi, Eigen::Index c) {
      const Weights& networks = at(pi);
      const Doubles& state = z[static_cast<std::size_t>(c)];
      const Doubles a = plain.Act(networks, state, policy_noise, c).action;
      const double q1 = plain.Decode(plain.Q(networks, state, a, policy_pair[0], c));
      const double q2 = plain.Decode(plain.Q(networks, state, a, policy_pair[1], c));
      return config.pair_value == PairValue::kMin ? std::min(q1, q2) : 0.5 * (q1 + q2);
    };
    Doubles first;
    for (Eigen::Index b = 0; b < kBatch; ++b) first.push_back(q_of(w.policy, b));
    std::sort(first.begin(), first.end());
    // six values: 0.95 of the way from first to last is at 4.75, 0.05 at 0.25
    const double high = first[4] + 0.75 * (first[5] - first[4]);
    const double low = first[0] + 0.25 * (first[1] - first[0]);
    scale += 0.01 * (std::max(1.0, high - low) - scale);
    EXPECT_NEAR(subject.scale(), scale, Tol(1e-5) * scale);
    const auto policy_loss = [&](const Doubles& pi) {
      double loss = 0.0;
      for (Eigen::Index c = 0; c < kStates; ++c) {
        const Eigen::Index t = c / kBatch;
        const double inside = t == 0 ? 1.0 : batch.inside[c - kBatch];
        const double weight = std::pow(config.rho, t) * inside / kStates;
        const Plain::Choice choice =
            plain.Act(at(pi), z[static_cast<std::size_t>(c)], policy_noise, c);
        loss -= weight *
                (q_of(pi, c) / scale + config.entropy_weight * plain.active(c) * choice.entropy);
        if (!lessons || t == kHorizon) continue;
        for (std::size_t j = 0; j < plain.actions(); ++j) {
          const double done = std::atanh(
              std::clamp<double>(batch.action(static_cast<Eigen::Index>(j), c), -0.99, 0.99));
          loss -= kCloneWeight * weight * batch.inside[c] * plain.Mask(j, c) *
                  LogNormal(done, choice.mu[j], choice.std[j]);
        }
      }
      return loss;
    };
    const double expected_policy_loss = policy_loss(w.policy);
    Doubles d_policy = NumericGradient(w.policy, policy_loss);
    ClipTogether({&d_policy}, config.max_gradient_norm);
    policy_adam.Step(w.policy, d_policy, config.learning_rate);
    ExpectGradient(model.policy(), "policy", policy_adam);
    ExpectStep(policy_adam, model.policy().values(), w.policy, "policy");

    const MetricMap metrics = subject.Metrics();
    const auto near = [&](const std::string& name, double value) {
      EXPECT_NEAR(metrics[name], value, Tol(2e-5) * (1.0 + std::abs(value))) << name;
    };
    near("loss/consistency", expected.consistency);
    near("loss/reward", expected.reward);
    near("loss/value", expected.value);
    if (config.termination) near("loss/termination", expected.termination);
    near("loss/policy", expected_policy_loss);
    near("gradient/norm", norm);
  }
  EXPECT_GT(smaller[0], 5);
  EXPECT_GT(smaller[1], 5);
  EXPECT_EQ(clipped, config.max_gradient_norm < 1.0);
}

// Over slots, with the vector of a task as long as the networks are wide.
TdMpcConfig AlignedConfig() {
  TdMpcConfig config = SmallConfig();
  config.aligned = true;
  config.task_size = 30;
  return config;
}

std::vector<Case> Cases() {
  TdMpcConfig clipped = SmallConfig();
  clipped.max_gradient_norm = 0.05;
  TdMpcConfig frozen = AlignedConfig();
  frozen.frozen = true;
  TdMpcConfig first = FirstConfig();
  first.aligned = true;
  first.task_size = 30;
  return {{"TdMpc2", SmallConfig()},
          {"First", FirstConfig()},
          {"Clipped", clipped},
          {"Aligned", AlignedConfig(), {2, 7}},
          {"AlignedFirst", first},
          {"Shared", AlignedConfig(), {3, 3}},
          {"Frozen", frozen},
          {"Lessons", AlignedConfig(), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, true}};
}

INSTANTIATE_TEST_SUITE_P(Losses, TdMpcUpdate, ::testing::ValuesIn(Cases()),
                         [](const auto& c) { return c.param.name; });

TEST(TdMpcTest, PlansAreWorthWhatTheFormulasSay) {
  for (const bool termination : {true, false}) {
    TdMpcConfig config = SmallConfig();
    config.termination = termination;
    TdMpc agent(kSpec, config, 5);
    Scatter(agent.model());
    const Plain plain(config);
    const Weights w = WeightsOf(agent.model());
    Rng rng(1, "plan");
    const int samples = config.mppi.samples;
    const Eigen::VectorXd observation = Eigen::Vector3d(0.3, -1.2, 0.7);
    Eigen::MatrixXf actions(kActions, kHorizon * samples);
    for (float& v : actions.reshaped()) v = static_cast<float>(rng.Uniform(-1.0, 1.0));
    Rng same = rng;
    const std::span<const float> values = agent.ValuesOfPlans(ViewOf(observation), actions, rng);
    const Eigen::MatrixXf noise = NoiseOf(samples, same);
    const auto pair = PairOf(same);
    for (Eigen::Index i = 0; i < samples; ++i) {
      Doubles z = plain.Encode(w, {observation.begin(), observation.end()}, i);
      double value = 0.0;
      double factor = 1.0;
      for (Eigen::Index t = 0; t < kHorizon; ++t) {
        const Plain::Step step = plain.Next(w, z, Column(actions, t * samples + i), i);
        value += factor * plain.Decode(step.reward);
        factor *= config.gamma;
        if (termination) factor *= 1.0 - 1.0 / (1.0 + std::exp(-step.termination));
        z = step.z;
      }
      const Doubles a = plain.Act(w, z, noise, i).action;
      value +=
          factor * 0.5 *
          (plain.Decode(plain.Q(w, z, a, pair[0], i)) + plain.Decode(plain.Q(w, z, a, pair[1], i)));
      EXPECT_NEAR(values[static_cast<std::size_t>(i)], value, Tol(2e-5) * (1.0 + std::abs(value)));
    }
  }
}

TEST(TdMpcTest, NothingIsWorthAnythingAtFirst) {
  TdMpcConfig config = SmallConfig();
  config.bins = 101;
  TdMpc agent(kSpec, config, 5);
  Rng rng(1, "plan");
  Eigen::MatrixXf actions = Eigen::MatrixXf::Constant(kActions, kHorizon * 5, 0.5F);
  const Eigen::VectorXd observation = Eigen::Vector3d(1.0, 2.0, 3.0);
  for (const float value : agent.ValuesOfPlans(ViewOf(observation), actions, rng)) {
    EXPECT_EQ(value, 0.0F);
  }
}

// A turn of an agent in a given state, without an environment.
struct Scene {
  explicit Scene(TdMpc& agent) : carry(agent.MakeCarry()) {}
  Doubles Act(TdMpc& agent, ActMode mode) {
    agent.Act({{ViewOf(observation), ViewOf(geometry), matrix, 0}, *carry, rng, action}, mode);
    return {action.values().begin(), action.values().end()};
  }

  Eigen::VectorXd observation = Eigen::Vector3d(0.3, -1.2, 0.7);
  Eigen::VectorXd geometry = Eigen::VectorXd::Zero(kGeometrySize);
  SegmentMatrix matrix{CompactLift()};
  std::unique_ptr<Carry> carry;
  Rng rng{1, "act"};
  ActionBuffer action{kSpec.action};
};

TEST(TdMpcTest, WithoutAPlanThePolicyActs) {
  TdMpcConfig config = SmallConfig();
  config.plan = false;
  TdMpc agent(kSpec, config, 5);
  Scatter(agent.model());
  const Plain plain(config);
  const Weights w = WeightsOf(agent.model());
  Scene scene(agent);
  const Doubles z = plain.Encode(w, {0.3, -1.2, 0.7}, 0);
  const Doubles mode = plain.Act(w, z, Eigen::MatrixXf::Zero(kActions, 1), 0).action;
  ExpectNear(scene.Act(agent, ActMode::kEvaluate), mode, "mode");
}

// The next plan starts where the last one is after a step; a new episode starts from nothing.
TEST(TdMpcTest, ThePlanGoesOn) {
  TdMpc agent(kSpec, SmallConfig(), 5);
  Scatter(agent.model());
  Scene scene(agent);
  scene.Act(agent, ActMode::kEvaluate);
  const Doubles mean = Saved(*scene.carry, "mean", kActions * kHorizon);
  EXPECT_GT(Largest({mean.begin(), mean.begin() + kActions}), 1e-3);
  EXPECT_EQ(Largest({mean.end() - kActions, mean.end()}), 0.0);
  scene.carry->Begin();
  EXPECT_EQ(Largest(Saved(*scene.carry, "mean", kActions * kHorizon)), 0.0);
}

TEST(TdMpcTest, DiscountsOfLengths) {
  EXPECT_NEAR(DiscountOfLength(1000), 0.995, 1e-12);
  EXPECT_NEAR(DiscountOfLength(200), 0.975, 1e-12);
  EXPECT_NEAR(DiscountOfLength(100), 0.95, 1e-12);
  EXPECT_NEAR(DiscountOfLength(50), 0.95, 1e-12);
  TdMpcConfig config = SmallConfig();
  config.gamma = 0.0;
  EXPECT_NEAR(TdMpc(kSpec, config, 1).gamma(), 0.95, 1e-12);  // 100 steps
  config.gamma = 0.8;
  EXPECT_EQ(TdMpc(kSpec, config, 1).gamma(), 0.8);
}

TEST(TdMpcTest, SimNormGroupsAreDistributions) {
  StaticGraph graph;
  const Node x = graph.Input(8, 1);
  const Node z = graph.Softmax(x, LatentModel::kGroup);
  graph.Finish();
  graph.input(x) << 0, 1, 2, 3, 0, 0, 0, 0;
  graph.Forward();
  const std::vector<double> expected{.02841, .07724, .20996, .57073,
                                     .02841, .02841, .02841, .02841};
  for (int i = 0; i < 8; ++i) {
    EXPECT_NEAR(graph.value(z)(i, 0), expected[static_cast<std::size_t>(i)], Tol(5e-6));
  }
}

TEST(TdMpcTest, SettingsChangeThePreset) {
  TdMpcConfig config;
  SetField(config, "preset=reference");
  EXPECT_EQ(config.model_width, 512);
  EXPECT_EQ(config.mppi.samples, 512);
  SetField(config, "model_width=64");
  EXPECT_EQ(config.model_width, 64);
  EXPECT_EQ(config.latent_groups, 64);
  SetField(config, "preset=reference");  // it is already: nothing is lost
  EXPECT_EQ(config.model_width, 64);
  EXPECT_NE(UserErrorText([] {
              TdMpcConfig wrong = SmallConfig();
              wrong.mppi.elites = 6;
              TdMpc(kSpec, wrong, 1);
            }).find("'plan_elites'"),
            std::string::npos);
}

// The first update comes after the random steps, then one every second step.
TEST(TdMpcTest, UpdatesWhenTheyAreDue) {
  TdMpcConfig config = SmallConfig();
  config.random_steps = 6;
  config.first_updates = 3;
  config.update_every = 2;
  TdMpc agent(kSpec, config, 5);
  const std::unique_ptr<Carry> carry = agent.MakeCarry();
  const SegmentMatrix matrix(CompactLift());
  Eigen::VectorXd before = Eigen::Vector3d::Zero();
  const Eigen::VectorXd geometry = Eigen::VectorXd::Zero(kGeometrySize);
  std::vector<std::int64_t> updates;
  for (int t = 0; t < 11; ++t) {
    const Eigen::VectorXd after = before.array() + 0.1;
    const std::vector<double> action{0.1, -0.2};
    agent.Observe({.before = {ViewOf(before), ViewOf(geometry), matrix, t},
                   .action = Action::Continuous(action),
                   .action_code = {},
                   .reward = 1.0,
                   .scaled_reward = 1.0,
                   .psi = {},
                   .after = {ViewOf(after), ViewOf(geometry), matrix, t + 1}},
                  *carry);
    agent.Update();
    before = after;
    updates.push_back(agent.model().values().adam().step_count());
  }
  EXPECT_EQ(updates, (std::vector<std::int64_t>{0, 0, 0, 0, 0, 3, 3, 4, 4, 5, 5}));
}

}  // namespace
}  // namespace msrl
