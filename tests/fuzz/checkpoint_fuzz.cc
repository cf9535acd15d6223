// A damaged checkpoint whose checksum does not give it away is refused, or makes objects that work.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "msrl/agents/episode_tracker.h"
#include "msrl/core/check.h"
#include "msrl/env_list/env_list.h"
#include "msrl/memory/replay.h"
#include "msrl/run/run_directory.h"
#include "tests/fuzz/damage.h"

namespace {

constexpr std::array<float, 2> kFeatures{1.0f, 2.0f};

// What a run's checkpoint is made of, small.
struct Parts {
  Parts()
      : env(msrl::MakeEnv("graph-motif")),
        tracker(env->spec(), msrl::CompactLift()),
        replay(Config(env->spec())),
        means({"a", "b"}),
        rng(1, "fuzz") {}

  static msrl::ReplayConfig Config(const msrl::EnvSpec& spec) {
    msrl::ReplayConfig config;
    config.capacity = 24;
    config.observation_size = spec.observation_size;
    config.action_size = 1;
    config.feature_size = 2;
    config.lift = msrl::CompactLift();
    config.one_hot_code = true;
    config.anchor_every = 8;
    return config;
  }

  void Visit(const msrl::Archive& state) {
    replay.Visit(state.Child("replay"));
    msrl::ReplayBatch batch = replay.MakeBatch(4);
    msrl::SequenceBatch sequences = replay.MakeSequences(2, 8);
    if (replay.size() > 0) {
      replay.Sample(rng, batch);
      replay.Sample(rng, sequences);
      replay.RebuildMatrix(batch.row[0]);
    }
    means.Visit(state.Child("means"));
    std::vector<std::byte> snapshot;
    if (!state.loading()) snapshot = env->Snapshot();
    state.Bytes("env", snapshot);
    if (state.loading()) env->Restore(snapshot);
    tracker.Visit(state.Child("tracker"), *env);
    state.Random("rng", rng);
  }

  void Play(int steps) {
    msrl::ActionBuffer action(env->spec().action);
    for (int t = 0; t < steps; ++t) {
      action.set_index(static_cast<int>(rng.Index(env->spec().action.size)));
      const msrl::StepResult result = env->Step(action.view());
      const msrl::Experience e = tracker.Advance(action.view(), result, *env);
      const float index = static_cast<float>(action.index());
      msrl::ReplayStep step;
      step.before = View(e.before);
      step.after = View(e.after);
      step.action = std::span(&index, 1);
      step.reward = step.lift_reward = e.scaled_reward;
      step.code = e.action_code;
      step.terminated = e.terminated;
      step.truncated = e.truncated;
      replay.Add(step);
      means.Add(0, e.reward);
      if (result.terminated || result.truncated) Begin(rng.NextU64());
    }
  }
  void Begin(std::uint64_t seed) {
    env->Reset(seed);
    tracker.Begin(*env);
  }
  static msrl::ReplayState View(const msrl::Situation& s) {
    return {std::span(s.observation.data(), static_cast<std::size_t>(s.observation.size())),
            kFeatures, std::span(s.geometry.data(), msrl::kGeometrySize), &s.matrix};
  }

  std::unique_ptr<msrl::Env> env;
  msrl::EpisodeTracker tracker;
  msrl::Replay replay;
  msrl::MetricMeans means;
  msrl::Rng rng;
};

std::string GoodCheckpoint() {
  Parts parts;
  parts.Begin(1);
  parts.Play(60);
  msrl::TensorFileBuilder builder;
  parts.Visit(msrl::Archive(builder));
  builder.SetMetadata("format", "msrl-checkpoint");
  std::string file = builder.Encode();
  // without the checksum, or nothing would get past it
  file[file.find("msrl_xxh64")] = 'x';
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string good = GoodCheckpoint();
  const std::string bytes = msrl::fuzz::Damaged(good, data, size);
  try {
    const msrl::TensorFile file = msrl::TensorFile::Parse(std::as_bytes(std::span(bytes)), "input");
    const msrl::Archive state(file);
    static Parts parts;
    parts.Visit(state);
    state.RequireAllUsed();
    msrl::RequireCheckpoint(file, 1);
  } catch (const msrl::UserError&) {
    // refused: fine
  }
  return 0;
}
