#include "msrl/transfer/sf_gpi_pretrainer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "msrl/agents/common/networks.h"
#include "msrl/core/check.h"

namespace msrl {
namespace {

constexpr int kLength = ValueModule::kTrainingLength;
constexpr int kColumns = 512;  // of a pass over episodes
constexpr int kUnitSteps = 4096;
constexpr float kWhitenShare = 0.01F;  // of a batch in the running mean and variance of phi
constexpr float kLeastDeviation = 1e-3F;
constexpr float kChangeWeight = 0.1F;
constexpr float kValueWeight = 0.5F;
constexpr float kCloneWeight = 0.1F;

// Steps of source episodes in a graph: column by column.
struct StepInputs {
  StepInputs() = default;
  StepInputs(StaticGraph& g, int columns)
      : x(g.Input(kStateChannels, columns)),
        action(g.Input(kActionChannels, columns)),
        next_x(g.Input(kStateChannels, columns)),
        policy(g.Input(1, columns)) {}

  // Of a state without a step all but the action's bits and the next state is filled in; returns
  // whether there was one.
  bool Fill(StaticGraph& g, int column, const SourceSequence& sequence, Index time) const {
    const bool is_step = time < sequence.horizon();
    g.input(x).col(column) = sequence.x().col(time);
    g.input(policy)(0, column) = static_cast<float>(sequence.task);
    if (is_step) {
      g.input(action).col(column) = sequence.u().col(time);
      g.input(next_x).col(column) = sequence.x().col(time + 1);
    } else {
      g.input(action).col(column).setZero();
      g.input(action).col(column).tail(kActionCodeSize) = sequence.u().col(0).tail(kActionCodeSize);
    }
    return is_step;
  }

  Node x, action, next_x, policy;
};

// What a module says of steps of the sources, with the codes and weights of their own policies.
struct SourceGraph {
  explicit SourceGraph(const SfGpi& module) : in(graph, kColumns) {
    constexpr auto kFrozen = ParameterUse::kFrozen;
    StaticGraph& g = graph;
    taken = g.Input(1, kColumns);
    const Node code = module.CodeOf(g, in.policy, kFrozen);
    const Node w = module.WeightOf(g, in.policy, kFrozen);
    // mu's mean where nothing was done
    const Node used = g.SliceRows(in.action, kActionCodeSize, kActionCodeSize);
    const Node own = g.Multiply(g.Multiply(module.Mu(g, in.x, code, kFrozen).mean, used),
                                g.Affine(taken, -1.0F, 1.0F));
    const Node done = g.Multiply(g.SliceRows(in.action, 0, kActionCodeSize), taken);
    const Node twins = module.Psi(g, in.x, g.ConcatRows({g.Add(own, done), used}), code, kFrozen);
    psi = module.SmallerPsi(g, twins, w);
    value = g.Add(module.SmallerValue(g, twins, w), module.Bias(g));
    phi = SfGpi::WithOne(g, module.ShownOf(g, in.x, in.action, in.next_x, kFrozen));
    reward = g.SumRows(g.Multiply(phi, w));
    g.Finish();
  }

  void Fill(int column, const SourceSequence& sequence, Index time) {
    graph.input(taken)(0, column) = in.Fill(graph, column, sequence, time) ? 1.0F : 0.0F;
  }

  StaticGraph graph;
  StepInputs in;
  Node taken;        // 1 where something was done
  Node psi, value;   // of the twin with the smaller value
  Node phi, reward;  // of steps
};

// Asks a graph about any number of states, as many at a time as it has columns: `take` is handed
// the answer's column and the `key` of the state.
template <typename Key>
class Asking {
 public:
  using Take = std::function<void(const Eigen::VectorXf& answer, const Key& key)>;

  Asking(SourceGraph& graph, Node wanted, Take take)
      : graph_(graph), wanted_(wanted), take_(std::move(take)) {}

  void Add(const SourceSequence& sequence, Index time, const Key& key) {
    graph_.Fill(static_cast<int>(keys_.size()), sequence, time);
    keys_.push_back(key);
    if (keys_.size() == kColumns) Finish();
  }
  void Finish() {
    graph_.graph.Forward({wanted_});
    for (std::size_t c = 0; c < keys_.size(); ++c) {
      take_(graph_.graph.value(wanted_).col(static_cast<Eigen::Index>(c)), keys_[c]);
    }
    keys_.clear();
  }

 private:
  SourceGraph& graph_;
  Node wanted_;
  Take take_;
  std::vector<Key> keys_;
};

class SuccessorLesson : public ModuleLesson {
 public:
  SuccessorLesson(SfGpi& module, int windows, const SourceSequences& train,
                  const std::vector<std::string>& sources)
      : module_(module),
        train_(train),
        slow_([&] {
          Rng rng(0, "slow");
          return std::make_unique<SfGpi>(module.shape(), ParameterOptions{}, rng);
        }()),
        slow_graph_(*slow_),
        decoder_({.adam = {.max_norm = 10.0}}),
        targets_(train.sequences().size()) {
    for (std::size_t i = 0; i < train.tasks().size(); ++i) {
      if (std::ranges::find(sources, train.tasks()[i]) != sources.end()) {
        tasks_.insert(static_cast<int>(i));
      }
    }
    MeasureUnits(sources);
    Build(windows * kLength);
  }

  void Learn(const DrawnWindows& drawn, int done, double learning_rate) override {
    if (const int due = done - done % SfGpiTask::kRefreshEvery; made_for_ != due) {
      if (done == due) {
        // begins a stretch; otherwise the training was interrupted, and has what it then took
        CopyTensors(module_.parameters(), slow_->parameters(),
                    [](const NamedTensor&) { return true; });
        slow_->Whiten(mean_, Deviation());
      }
      MakeTargets();
      made_for_ = due;
    }
    Fill(drawn);
    graph_.Forward();
    const double loss = graph_.value(loss_)(0, 0);
    RequireFinite("loss of successor features", std::span(&loss, 1));
    module_.parameters().ClearGradients();
    decoder_.ClearGradients();
    graph_.Backward(loss_);
    RequireFiniteGradients("successor features", module_.parameters().gradients());
    module_.parameters().Step(learning_rate);
    decoder_.Step(learning_rate);
    FollowMoments();
  }

  void Finish() override {
    module_.Whiten(mean_, Deviation());
    // policies that no source has are those of sources, again
    std::vector<int> known(tasks_.begin(), tasks_.end());
    for (int i = 0; i < module_.shape().policies; ++i) {
      if (!tasks_.contains(i)) {
        module_.CopyPolicy(known[static_cast<std::size_t>(i) % known.size()], i);
      }
    }
  }

  void Visit(const Archive& state) override {
    VisitValues(state.Child("slow"), slow_->parameters());
    VisitParameters(state.Child("decoder"), decoder_);
    state.Array("mean", std::span(mean_.data(), static_cast<std::size_t>(mean_.size())));
    state.Array("variance",
                std::span(variance_.data(), static_cast<std::size_t>(variance_.size())));
  }

 private:
  Eigen::VectorXf Deviation() const { return variance_.cwiseSqrt().cwiseMax(kLeastDeviation); }

  // How phi begins, and how much slots change in a step.
  void MeasureUnits(const std::vector<std::string>& sources) {
    SourceGraph graph(module_);
    const SourceSampler sampler(train_, sources);
    Rng rng(0, "units");
    const int size = module_.shape().features - 1;
    Eigen::MatrixXf shown(size, kUnitSteps);
    Eigen::ArrayXd squares = Eigen::ArrayXd::Zero(kGeometrySize);
    Eigen::ArrayXd alive = Eigen::ArrayXd::Constant(kGeometrySize, 1e-6);
    for (int k = 0; k < kUnitSteps; k += kColumns) {
      for (int c = 0; c < kColumns; ++c) {
        const auto [sequence, time] = sampler.Draw(rng, /*rest=*/1);
        graph.Fill(c, *sequence, time);
        const auto x = sequence->x();
        const Eigen::ArrayXd bits = x.col(time + 1).tail(kGeometrySize).cast<double>();
        const Eigen::ArrayXd change =
            (x.col(time + 1) - x.col(time)).head(kGeometrySize).cast<double>();
        squares += bits * change.square();
        alive += bits;
      }
      graph.graph.Forward();
      shown.middleCols(k, kColumns) = graph.graph.value(graph.phi).topRows(size);
    }
    mean_ = shown.rowwise().mean();
    variance_ = (shown.colwise() - mean_).array().square().rowwise().mean();
    change_unit_ = (squares / alive).sqrt().cwiseMax(1e-3).cast<float>();
  }

  void Build(int columns) {
    constexpr auto kTrained = ParameterUse::kTrained;
    StaticGraph& g = graph_;
    const int features = module_.shape().features;
    in_ = StepInputs(g, columns);
    reward_ = g.Input(1, columns);
    label_ = g.Input(1, columns);
    target_ = g.Input(features, columns);
    weight_ = g.Input(1, columns);
    shift_ = g.Input(features - 1, 1);
    inverse_ = g.Input(features - 1, 1);
    const auto mean = [&](Node of_step) { return g.Sum(g.Multiply(of_step, weight_)); };

    shown_ = module_.ShownOf(g, in_.x, in_.action, in_.next_x, kTrained);
    const Node phi = SfGpi::WithOne(g, g.Multiply(g.Subtract(shown_, shift_), inverse_));
    const Node w = module_.WeightOf(g, in_.policy, kTrained);
    const Node told = g.SumRows(g.Multiply(phi, w));
    const Node reward_loss = mean(g.Square(g.Subtract(told, reward_)));

    Rng rng(0, "decoder");
    const LinearParameters decoder = AddLinear(decoder_, "change", features, kGeometrySize, rng);
    const Node change = g.Divide(
        g.Subtract(g.SliceRows(in_.next_x, 0, kGeometrySize), g.SliceRows(in_.x, 0, kGeometrySize)),
        g.Constant(change_unit_.matrix()));
    const Node alive = g.SliceRows(in_.next_x, kGeometrySize, kGeometrySize);
    const Node miss = g.Multiply(g.Square(g.Subtract(g.Linear(phi, decoder), change)), alive);
    const Node change_loss = mean(g.MeanRows(miss));

    const Node code = module_.CodeOf(g, in_.policy, kTrained);
    const Node psi = module_.Psi(g, in_.x, in_.action, code, kTrained);
    const Node psi_loss = g.Scale(WeightedHuber(g, psi, g.ConcatRows({target_, target_}), weight_),
                                  1.0F / static_cast<float>(features));
    const SfGpi::TwinValues values = module_.ValuesOf(g, psi, g.StopGradient(w));
    const Node value_loss = g.Add(WeightedHuber(g, values.first, label_, weight_),
                                  WeightedHuber(g, values.second, label_, weight_));

    const SfGpi::Proposal mu = module_.Mu(g, in_.x, code, kTrained);
    const Node done = g.SliceRows(in_.action, 0, kActionCodeSize);
    const Node used = g.SliceRows(in_.action, kActionCodeSize, kActionCodeSize);
    const Node miss_of_mu = g.Square(g.Divide(g.Subtract(done, mu.mean), mu.sigma));
    const Node surprise = g.Multiply(g.Add(g.Scale(miss_of_mu, 0.5F), g.Log(mu.sigma)), used);
    const Node clone_loss = mean(g.SumRows(surprise));

    loss_ = g.Add(g.Add(g.Add(reward_loss, g.Scale(change_loss, kChangeWeight)),
                        g.Add(psi_loss, g.Scale(value_loss, kValueWeight))),
                  g.Scale(clone_loss, kCloneWeight));
    g.Finish();
  }

  void Fill(const DrawnWindows& drawn) {
    auto reward = graph_.input(reward_);
    auto label = graph_.input(label_);
    auto target = graph_.input(target_);
    auto weight = graph_.input(weight_);
    const auto gain = static_cast<float>(1.0 / (1.0 - module_.shape().successor_gamma));
    int steps = 0;
    for (int w = 0; w < drawn.count(); ++w) {
      const auto [sequence, first] = drawn.place[static_cast<std::size_t>(w)];
      const auto index = static_cast<std::size_t>(sequence - train_.sequences().data());
      for (int t = 0; t < kLength; ++t) {
        const int column = w * kLength + t;
        weight(0, column) = 0.0F;
        if (t >= drawn.states[static_cast<std::size_t>(w)]) continue;
        if (!in_.Fill(graph_, column, *sequence, first + t)) continue;
        reward(0, column) = gain * drawn.reward[column];
        label(0, column) = drawn.label[column];
        target.col(column) = targets_[index].col(first + t);
        weight(0, column) = 1.0F;
        ++steps;
      }
    }
    weight /= static_cast<float>(steps);
    graph_.input(shift_) = mean_;
    graph_.input(inverse_) = Deviation().cwiseInverse();
  }

  void FollowMoments() {
    const auto shown = graph_.value(shown_);
    const auto weight = graph_.input(weight_);
    Eigen::VectorXf mean = Eigen::VectorXf::Zero(mean_.size());
    Eigen::VectorXf square = mean;
    for (Eigen::Index c = 0; c < shown.cols(); ++c) {
      if (weight(0, c) == 0.0F) continue;
      mean += weight(0, c) * shown.col(c);
      square += weight(0, c) * (shown.col(c) - mean_).cwiseAbs2();
    }
    mean_ += kWhitenShare * (mean - mean_);
    variance_ += kWhitenShare * (square - variance_);
  }

  // y of all steps, by the slow networks.
  void MakeTargets() {
    const int features = module_.shape().features;
    const double gamma = module_.shape().successor_gamma;
    std::vector<Eigen::VectorXf> rest(targets_.size(), Eigen::VectorXf::Zero(features));
    struct Step {
      std::size_t episode;
      Index time;
    };
    Asking<Step> steps(slow_graph_, slow_graph_.phi,
                       [this](const Eigen::VectorXf& phi, const Step& step) {
                         targets_[step.episode].col(step.time) = phi;
                       });
    ForEpisodes([&](std::size_t i, const SourceSequence& sequence) {
      targets_[i].resize(features, sequence.horizon());
      for (Index t = 0; t < sequence.horizon(); ++t) steps.Add(sequence, t, {i, t});
    });
    steps.Finish();
    Asking<std::size_t> ends(
        slow_graph_, slow_graph_.psi,
        [&rest](const Eigen::VectorXf& psi, const std::size_t& i) { rest[i] = psi; });
    ForEpisodes([&](std::size_t i, const SourceSequence& sequence) {
      if (!sequence.terminated) ends.Add(sequence, sequence.horizon(), i);
    });
    ends.Finish();
    ForEpisodes([&](std::size_t i, const SourceSequence&) {
      targets_[i] = SuccessorTargets(targets_[i], rest[i], gamma);
    });
  }

  template <typename Do>
  void ForEpisodes(const Do& act) {
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const SourceSequence& sequence = train_.sequences()[i];
      if (tasks_.contains(sequence.task)) act(i, sequence);
    }
  }

  SfGpi& module_;
  const SourceSequences& train_;
  std::set<int> tasks_;
  std::unique_ptr<SfGpi> slow_;
  SourceGraph slow_graph_;
  Parameters decoder_;
  std::vector<Eigen::MatrixXf> targets_;  // of each episode, features x T
  int made_for_ = -1;                     // after how many steps the targets were made
  Eigen::VectorXf mean_, variance_;       // of what phi's network says
  Eigen::ArrayXf change_unit_;

  StaticGraph graph_;
  StepInputs in_;
  Node reward_, label_, target_, weight_, shift_, inverse_, shown_, loss_;
};

}  // namespace

Eigen::MatrixXf SuccessorTargets(const Eigen::MatrixXf& phi, const Eigen::VectorXf& rest,
                                 double gamma) {
  Eigen::MatrixXf targets(phi.rows(), phi.cols());
  Eigen::VectorXd later = rest.cast<double>();
  for (Eigen::Index t = phi.cols(); t-- > 0;) {
    later = (1.0 - gamma) * phi.col(t).cast<double>() + gamma * later;
    targets.col(t) = later.cast<float>();
  }
  return targets;
}

SfGpiTask::SfGpiTask(const SfGpiShape& shape, const SourceSequences& train)
    : shape_(shape), train_(train) {
  if (std::ssize(train.tasks()) > shape.policies) {
    throw UserError(StrCat("the episodes are of ", train.tasks().size(), " sources, policies is ",
                           shape.policies));
  }
  if (train.gamma() != shape.successor_gamma) {
    throw UserError(StrCat("the values of the episodes have the discount ", train.gamma(),
                           ", successor_gamma is ", shape.successor_gamma));
  }
}

std::unique_ptr<ValueModule> SfGpiTask::MakeModule(const ParameterOptions& options,
                                                   Rng& rng) const {
  return std::make_unique<SfGpi>(shape_, options, rng);
}

std::unique_ptr<ModuleLesson> SfGpiTask::MakeLesson(ValueModule& module, int windows,
                                                    const std::vector<std::string>& sources) const {
  return std::make_unique<SuccessorLesson>(dynamic_cast<SfGpi&>(module), windows, train_, sources);
}

Eigen::RowVectorXf SfGpiTask::Values(ValueModule& module, const DrawnWindows& windows) const {
  SourceGraph graph(dynamic_cast<SfGpi&>(module));
  Eigen::RowVectorXf values(windows.count());
  Asking<int> ends(graph, graph.value,
                   [&](const Eigen::VectorXf& value, int w) { values[w] = value[0]; });
  for (int w = 0; w < windows.count(); ++w) {
    const auto at = static_cast<std::size_t>(w);
    ends.Add(*windows.place[at].sequence, windows.place[at].first + windows.states[at] - 1, w);
  }
  ends.Finish();
  return values;
}

PretrainFigures SfGpiTask::Figures(ValueModule& module, const SourceSampler& /*held_out*/,
                                   const DrawnWindows& windows) const {
  SourceGraph graph(dynamic_cast<SfGpi&>(module));
  std::vector<std::vector<float>> told(train_.tasks().size());
  std::vector<std::vector<float>> truth(told.size());
  const auto unit = static_cast<float>(1.0 - shape_.successor_gamma);
  Asking<std::size_t> steps(graph, graph.reward,
                            [&](const Eigen::VectorXf& reward, const std::size_t& task) {
                              told[task].push_back(unit * reward[0]);
                            });
  for (int w = 0; w < windows.count(); ++w) {
    const auto at = static_cast<std::size_t>(w);
    const SourceSequence& sequence = *windows.place[at].sequence;
    const Index time =
        std::min(windows.place[at].first + windows.states[at], sequence.horizon()) - 1;
    const auto task = static_cast<std::size_t>(sequence.task);
    steps.Add(sequence, time, task);
    truth[task].push_back(sequence.r()(0, time));
  }
  steps.Finish();
  double least = 1.0;
  for (std::size_t task = 0; task < told.size(); ++task) {
    if (told[task].empty()) continue;
    using Row = Eigen::Map<const Eigen::RowVectorXf>;
    least = std::min(least, ExplainedVariance(Row(told[task].data(), std::ssize(told[task])),
                                              Row(truth[task].data(), std::ssize(truth[task]))));
  }
  const Eigen::RowVectorXf label = LabelsAtEnds(windows);
  const double error = static_cast<double>((Values(module, windows) - label).cwiseAbs().mean());
  return {{"reward_r2", least},
          {"value_error", error / std::max(1e-12, static_cast<double>(label.cwiseAbs().mean()))}};
}

}  // namespace msrl
