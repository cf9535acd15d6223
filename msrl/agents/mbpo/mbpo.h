// Model-based policy optimisation (Janner et al. 2019): soft actor-critic on short roll-outs of a
// probabilistic ensemble, which branch off from states that were really visited.
// docs/agents/mbpo.md
#ifndef MSRL_AGENTS_MBPO_MBPO_H_
#define MSRL_AGENTS_MBPO_MBPO_H_

#include <vector>

#include "msrl/agents/mbpo/ensemble.h"
#include "msrl/agents/sac/sac.h"

namespace msrl {

enum class MbpoPreset {
  kCompact,    // for one core
  kReference,  // the paper's sizes
};
constexpr auto EnumNames(MbpoPreset) { return Names("compact", "reference"); }

struct MbpoConfig : SacConfig {
  MbpoPreset preset = MbpoPreset::kCompact;
  EnsembleSettings model;
  std::int64_t model_every = 250;
  int rollout_states = 10'000;
  int rollout_first = 1;
  int rollout_last = 5;
  std::int64_t rollout_from = 20'000;
  std::int64_t rollout_until = 100'000;
  int rollout_kept = 4;
  double real_share = 0.1;

  MbpoConfig() : MbpoConfig(MbpoPreset::kCompact) {}
  explicit MbpoConfig(MbpoPreset preset);

  template <typename V>
  void Fields(V&& visit) {
    const MbpoPreset before = preset;
    visit("preset", preset, "where all other settings start: for one core, or the paper's sizes");
    if (preset != before) *this = MbpoConfig(preset);
    SacConfig::Fields(visit);
    model.Fields(visit);
    visit("model_every", model_every, "steps between two trainings of the ensemble", Positive());
    visit("rollout_states", rollout_states, "real states that roll-outs branch off from",
          Positive());
    visit("rollout_first", rollout_first, "steps of a roll-out at first", Positive());
    visit("rollout_last", rollout_last, "and in the end", Positive());
    visit("rollout_from", rollout_from, "environment steps at which roll-outs begin to grow",
          NotNegative());
    visit("rollout_until", rollout_until, "and at which they are as long as they get",
          NotNegative());
    visit("rollout_kept", rollout_kept, "the last so many sets of roll-outs are learned from",
          Between(1, 1000));
    visit("real_share", real_share, "of every batch of the policy that is real", Between(0, 1));
  }
};

class Mbpo : public Agent {
 public:
  // UserError on impossible settings.
  Mbpo(const EnvSpec& spec, const MbpoConfig& config, std::uint64_t seed);

  std::int64_t parameter_count() const override {
    return sac_.parameter_count() + model_.parameter_count();
  }
  void Observe(const Experience& experience, Carry& carry) override {
    sac_.Observe(experience, carry);
  }
  void Update() override;
  FeedForwardPolicy ExportPolicy() const override;
  KeptExperience Kept() const override { return sac_.Kept(); }
  void DrainMetrics(MetricSink& sink) override;
  void Visit(const Archive& state) override;

  const Sac& policy() const { return sac_; }
  Ensemble& model() { return model_; }
  const Replay& imagined() const { return imagined_; }
  // A batch for the policy: real transitions, then imagined ones of the kept roll-outs. Valid until
  // the next call; there must have been roll-outs.
  const ReplayBatch& Mix();
  // Steps of a roll-out after so many steps of the environment.
  int RolloutLength(std::int64_t steps) const;

 protected:
  void ActInBatch(std::span<const Turn> turns, ActMode mode) override { sac_.Act(turns, mode); }

 private:
  static constexpr int kChunk = 256;

  // New roll-outs from states of the replay.
  void Imagine();
  void ChooseActions(Eigen::Index count);

  MbpoConfig config_;
  Sac sac_;
  Ensemble model_;
  Replay imagined_;
  std::vector<std::int64_t> rollout_rows_;  // where the kept sets of roll-outs begin, oldest first
  Rng rollout_rng_, batch_rng_;
  MetricMeans metrics_;

  // workspace
  ReplayBatch batch_, starts_;
  MlpTape actor_tape_;
  SquashedGaussian gaussian_;
  FloatBuffer log_prob_, reward_;
  Eigen::MatrixXf action_noise_, state_, action_, next_;
  std::vector<std::uint8_t> terminated_;
  std::vector<double> before_, after_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_MBPO_MBPO_H_
