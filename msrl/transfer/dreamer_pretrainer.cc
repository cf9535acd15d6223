#include "msrl/transfer/dreamer_pretrainer.h"

#include <algorithm>

#include "msrl/core/check.h"

namespace msrl {
namespace {

constexpr int kContext = 16;  // states before a figure, as many as other baselines read
constexpr int kMeasureColumns = 256;
constexpr int kMeasureBatches = 16;  // 4,096 states

// The world model, and a critic that stays behind with the reward head.
struct Student {
  Student(const WorldShape& shape, Rng rng)
      : world(shape, rng),
        critic(AddDenseNet(world.heads, "critic",
                           {.input = shape.features(),
                            .layers = shape.layers,
                            .width = shape.units,
                            .output = kDreamerBins,
                            .output_scale = 0.0},
                           rng)) {}

  SlotWorld world;
  DenseNet critic;
};

// A pass over records with all losses.
struct Lesson : WorldPass {
  Lesson(const Student& student, const DreamerPretrainConfig& config, double gamma) {
    const WorldModel& model = student.world.model;
    model.AddPass(graph, config.sequences, config.sequence_length, gamma, config.free_nats, *this);
    label = graph.Input(1, config.sequences * config.sequence_length);
    const Node value = Apply(graph, features, student.critic, ParameterUse::kTrained);
    const Node value_loss = graph.Mean(graph.TwoHotCrossEntropy(value, label, model.bins()));
    loss = graph.Add(WorldModel::Loss(graph, *this, config, config.reconstruction_weight),
                     graph.Scale(value_loss, static_cast<float>(config.value_weight)));
    graph.Finish();
  }

  StaticGraph graph;
  Node label, loss;
};

// What a model says of states of some episodes.
class Measurement {
 public:
  Measurement(const Student& student, const SourceSequences& set,
              const std::vector<std::string>& sources, Rng rng)
      : sampler_(set, sources), rng_(std::move(rng)), context_(kMeasureColumns, kContext) {
    constexpr auto kFrozen = ParameterUse::kFrozen;
    const WorldModel& model = student.world.model;
    const Rssm& rssm = model.rssm();
    const RssmSizes& sizes = model.sizes();
    StaticGraph& g = graph_;
    x_ = g.Input(kStateChannels, kContext * kMeasureColumns);
    u_ = g.Input(kActionChannels, (kContext + kOpenLoopSteps) * kMeasureColumns);
    keep_ = g.Input(1, kContext * kMeasureColumns);
    const auto at = [&g](Node node, int t) {
      return g.SliceColumns(node, t * kMeasureColumns, kMeasureColumns);
    };
    const Node tokens = model.Tokens(g, x_, kFrozen);
    const Node actions = model.ActionInput(g, u_, kFrozen);
    Node h = g.Input(sizes.deter, kMeasureColumns);
    Node z = g.Input(sizes.latent(), kMeasureColumns);
    // the most likely z, as in an evaluation
    for (int t = 0; t < kContext; ++t) {
      const Node keep = at(keep_, t);
      h = rssm.Core(g, g.Multiply(h, keep), g.Multiply(z, keep), at(actions, t), kFrozen);
      const Node posterior = rssm.Posterior(g, h, at(tokens, t), kFrozen);
      z = g.ModeOneHot(posterior, sizes.classes);
      if (t + 1 == kContext) kl_ = Divergence(g, posterior, rssm.Prior(g, h, kFrozen));
    }
    value_ = g.TwoHotMean(Apply(g, g.ConcatRows({h, z}), student.critic, kFrozen), model.bins());
    for (int k = 0; k < kOpenLoopSteps; ++k) {
      h = rssm.Core(g, h, z, at(actions, kContext + k), kFrozen);
      z = g.ModeOneHot(rssm.Prior(g, h, kFrozen), sizes.classes);
      const Node features = g.ConcatRows({h, z});
      if (k == 0) reward_ = g.TwoHotMean(model.Reward(g, features, kFrozen), model.bins());
      if (k + 1 == kOpenLoopSteps) slots_ = g.Symexp(model.Decode(g, features, kFrozen));
    }
    g.Finish();
    for (int i = 0; i < kMeasureBatches; ++i) Add();
  }

  double value_r2() const { return ShareTold(values_, labels_); }
  double reward_r2() const { return ShareTold(rewards_, true_rewards_); }
  double open_loop() const { return errors_.ratio(); }
  double kl() const { return kl_sum_ / static_cast<double>(labels_.size()); }

 private:
  void Add() {
    std::vector<SourceSampler::Place> places;
    StridedMap u = graph_.input(u_);
    for (Eigen::Index i = 0; i < kMeasureColumns; ++i) {
      const SourceSampler::Place& place = places.emplace_back(sampler_.Draw(rng_, kOpenLoopSteps));
      const SourceSequence& sequence = *place.sequence;
      for (Index t = 0; t < kContext; ++t) {
        // before the episode there is its first state again, and nothing is kept of it
        const Index state = place.time - (kContext - 1) + t;
        FillRecord(sequence, sequence, std::max<Index>(0, state), t == 0 || state <= 0,
                   t * kMeasureColumns + i, context_);
      }
      for (Index k = 0; k < kOpenLoopSteps; ++k) {
        u.col((kContext + k) * kMeasureColumns + i) = sequence.u().col(place.time + k);
      }
      labels_.push_back(static_cast<double>(sequence.label[place.time]));
      true_rewards_.push_back(static_cast<double>(sequence.r()(0, place.time)));
    }
    graph_.input(x_) = context_.x;
    graph_.input(keep_) = context_.keep;
    u.leftCols(context_.u.cols()) = context_.u;
    graph_.Forward();
    for (const float value : graph_.value(value_).row(0)) values_.push_back(value);
    for (const float value : graph_.value(reward_).row(0)) rewards_.push_back(value);
    kl_sum_ += static_cast<double>(graph_.value(kl_).sum());
    const auto slots = graph_.value(slots_);
    for (Eigen::Index i = 0; i < kMeasureColumns; ++i) {
      const auto& [sequence, time] = places[static_cast<std::size_t>(i)];
      const Eigen::VectorXd told = slots.col(i).cast<double>();
      errors_.Add(told, sequence->x().col(time), sequence->x().col(time + kOpenLoopSteps));
    }
  }

  SourceSampler sampler_;
  Rng rng_;
  WorldRecords context_;
  StaticGraph graph_;
  Node x_, u_, keep_, value_, reward_, slots_, kl_;
  std::vector<double> values_, labels_, rewards_, true_rewards_;
  double kl_sum_ = 0.0;
  SlotErrors errors_;
};

class Training : public Pretraining {
 public:
  Training(const DreamerPretrainConfig& config, const SourceSequences& train,
           const SourceSequences& held_out, const PretrainJob& job)
      : config_(config),
        train_(train),
        held_out_(held_out),
        job_(job),
        sampler_(train, job.sources),
        rng_(job.seed, "batches"),
        noise_rng_(job.seed, "noise"),
        student_(config, Rng(job.seed, "init")),
        lesson_(student_, config, train.gamma()),
        records_(config.sequences, config.sequence_length),
        told_(TellersOf(train, config.control, job.seed)) {}

  int done() const override { return done_; }
  int total() const override { return UpdatesOf(config_.control, config_.updates); }

  void Advance() override {
    for (Eigen::Index b = 0; b < records_.sequences(); ++b) FillStretch(b);
    StaticGraph& g = lesson_.graph;
    g.input(lesson_.observation) = records_.x;
    g.input(lesson_.action) = records_.u;
    g.input(lesson_.keep) = records_.keep;
    g.input(lesson_.reward) = records_.reward;
    g.input(lesson_.terminal) = records_.terminal;
    g.input(lesson_.label) = records_.label;
    g.FillUniform(lesson_.z_noise, noise_rng_);
    g.Forward();
    const float loss = g.value(lesson_.loss)(0, 0);
    RequireFinite("loss", std::span(&loss, 1));
    Parameters& world = student_.world.world;
    Parameters& heads = student_.world.heads;
    world.ClearGradients();
    heads.ClearGradients();
    g.Backward(lesson_.loss);
    RequireFiniteGradients("world", world.gradients());
    RequireFiniteGradients("heads", heads.gradients());
    ++done_;
    const double rate =
        config_.learning_rate * std::min(1.0, static_cast<double>(done_) / config_.warm_up);
    world.Step(rate);
    heads.Step(rate);
  }

  PretrainResult Finish() override {
    const auto measure = [this](const SourceSequences& set, const char* stream) {
      return Measurement(student_, set, job_.sources, Rng(job_.seed, stream));
    };
    const Measurement train = measure(train_, "train-states");
    const Measurement held_out = measure(held_out_, "held-out-states");
    PretrainFigures figures;
    figures["train_r2"] = train.value_r2();
    figures["r2"] = held_out.value_r2();
    figures["reward_r2"] = held_out.reward_r2();
    figures["open_loop_x"] = held_out.open_loop();
    figures["kl"] = held_out.kl();
    return {EncodeWorld(student_.world, WorldHeader(config_, WorldModelTexts(config_, job_.made))),
            std::move(figures)};
  }

  void Visit(const Archive& state) override {
    state.Int("done", done_, 0, total());
    state.Random("batches", rng_);
    state.Random("noise", noise_rng_);
    VisitParameters(state.Child("world"), student_.world.world);
    VisitParameters(state.Child("heads"), student_.world.heads);
  }

 private:
  // Pieces of episodes one after another, each from a state on that is drawn like all others.
  void FillStretch(Eigen::Index b) {
    SourceSampler::Place place;
    const SourceSequence* told = nullptr;
    for (Index k = 0; k < records_.length(); ++k, ++place.time) {
      const bool begins = place.sequence == nullptr || place.time > place.sequence->horizon();
      if (begins) {
        place = sampler_.Draw(rng_, /*rest=*/1);
        told = told_[static_cast<std::size_t>(place.sequence - train_.sequences().data())];
      }
      FillRecord(*place.sequence, *told, place.time, begins, k * records_.sequences() + b,
                 records_);
    }
  }

  const DreamerPretrainConfig& config_;
  const SourceSequences& train_;
  const SourceSequences& held_out_;
  PretrainJob job_;
  SourceSampler sampler_;
  Rng rng_, noise_rng_;
  Student student_;
  Lesson lesson_;
  WorldRecords records_;
  std::vector<const SourceSequence*> told_;  // whose rewards and labels every episode is taught
  int done_ = 0;
};

}  // namespace

WorldRecords::WorldRecords(int sequences, int length)
    : count(sequences),
      x(kStateChannels, sequences * length),
      u(kActionChannels, sequences * length),
      keep(sequences * length),
      reward(sequences * length),
      terminal(sequences * length),
      label(sequences * length) {}

void FillRecord(const SourceSequence& sequence, const SourceSequence& told, Index t, bool begins,
                Eigen::Index column, WorldRecords& records) {
  const Index of = std::min(t, told.horizon());
  records.x.col(column) = sequence.x().col(t);
  if (begins) {
    records.u.col(column).setZero();
    records.u.col(column).tail(kActionCodeSize) = sequence.u().col(0).tail(kActionCodeSize);
  } else {
    records.u.col(column) = sequence.u().col(t - 1);
  }
  records.keep[column] = begins ? 0.0F : 1.0F;
  // nothing was earned on arriving at the beginning
  records.reward[column] = of > 0 ? told.r()(0, of - 1) : 0.0F;
  records.terminal[column] = t == sequence.horizon() && sequence.terminated ? 1.0F : 0.0F;
  records.label[column] = told.label[of];
}

DreamerPretrainConfig DreamerPretrainer::Configure(std::span<const std::string> settings) {
  DreamerPretrainConfig config;
  for (const std::string& setting : settings) SetField(config, setting);
  return config;
}

std::vector<PretrainColumn> DreamerPretrainer::Columns() {
  return {{"train_r2", "train R2"},
          {"r2", "R2"},
          {"reward_r2", "reward R2"},
          {"open_loop_x", "open loop, slots"},
          {"kl", "KL"}};
}

ArtefactHeader DreamerPretrainer::Announce(const DreamerPretrainConfig& config) {
  RequireConsistent(config);
  return WorldHeader(config, WorldModelTexts(config, {}));
}

DreamerPretrainer::DreamerPretrainer(const DreamerPretrainConfig& config, const EpisodeFile& train,
                                     const EpisodeFile& held_out)
    : config_(RequireInRange(config)),
      train_(train, config.target),
      held_out_(held_out, config.target, train, train_) {
  RequireConsistent(config);
}

std::unique_ptr<Pretraining> DreamerPretrainer::Start(const PretrainJob& job) const {
  return std::make_unique<Training>(config_, train_, held_out_, job);
}

}  // namespace msrl
