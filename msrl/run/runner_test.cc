#include "msrl/run/runner.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "msrl/core/check.h"
#include "msrl/env/env_wrapper.h"
#include "msrl/env_list/env_list.h"
#include "msrl/memory/replay.h"
#include "msrl/run/manifest.h"
#include "msrl/testing/config_fields.h"
#include "msrl/testing/slurp.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;
using ::msrl::testing::Slurp;
using ::msrl::testing::UserErrorText;

// A learner with all that a real one has: parameters, a replay with matrices, its own stream,
// counters, metrics and a recurrent state. Linear TD on observation and matrix.
struct LinearConfig {
  double rate = 0.01;
  std::int64_t bad_step = 0;
  std::int64_t bad_memory = 0;
  template <typename V>
  void Fields(V&& visit) {
    visit("rate", rate, "step size", AnyNumber());
    visit("bad_step", bad_step, "number of the update that goes wrong, 0 for none", NotNegative());
    visit("bad_memory", bad_memory, "the same, unnoticed", NotNegative());
  }
};

class LinearAgent : public Agent {
 public:
  static constexpr int kFeatures = 3;

  LinearAgent(const EnvSpec& spec, const LinearConfig& config, std::uint64_t seed)
      : config_(config),
        action_spec_(spec.action),
        replay_(MakeConfig(spec)),
        batch_(replay_.MakeBatch(8)),
        draws_(seed, "replay"),
        weights_(static_cast<std::size_t>(spec.observation_size + kFeatures)),
        means_({"loss/td", "value/mean"}) {
    Rng init(seed, "init");
    for (float& w : weights_) w = static_cast<float>(0.01 * init.Normal());
  }

  std::int64_t parameter_count() const override {
    return static_cast<std::int64_t>(weights_.size());
  }
  std::unique_ptr<Carry> MakeCarry() const override { return std::make_unique<Memory>(); }
  void ActInBatch(std::span<const Turn> turns, ActMode mode) override {
    for (const Turn& turn : turns) {
      const EnvView& observation = turn.situation.observation;
      auto& memory = CarryAs<Memory>(turn.carry);
      memory.state = std::tanh(0.9 * memory.state + observation.sum() + 0.1);
      const double lean = memory.state + observation.dot(Weights().head(observation.size()));
      if (action_spec_.kind == ActionKind::kDiscrete) {
        const bool random = mode == ActMode::kExplore && turn.rng.Bernoulli(0.3);
        turn.out.set_index(random ? static_cast<int>(turn.rng.Index(action_spec_.size))
                                  : (lean > 0 ? 0 : action_spec_.size - 1));
      } else {
        for (double& v : turn.out.values()) {
          v = std::tanh(lean) + (mode == ActMode::kExplore ? 0.3 * turn.rng.Normal() : 0.0);
        }
      }
    }
  }
  void Observe(const Experience& e, Carry& carry) override {
    recalled_ += std::abs(CarryAs<Memory>(carry).state);
    const auto before = Features(e.before);
    const auto after = Features(e.after);
    const float action = 0.0f;
    ReplayStep step;
    step.before = State(e.before, before);
    step.after = State(e.after, after);
    step.action = std::span(&action, 1);
    step.reward = step.lift_reward = e.scaled_reward;
    step.code = e.action_code;
    step.terminated = e.terminated;
    step.truncated = e.truncated;
    replay_.Add(step);
  }
  void Update() override {
    replay_.Sample(draws_, batch_);
    const auto n = batch_.observation.rows();
    for (Eigen::Index i = 0; i < batch_.size(); ++i) {
      Eigen::Map<Eigen::VectorXf> w(weights_.data(), static_cast<Eigen::Index>(weights_.size()));
      const float value =
          w.head(n).dot(batch_.observation.col(i)) + w.tail(kFeatures).dot(batch_.features.col(i));
      const float next = w.head(n).dot(batch_.next_observation.col(i)) +
                         w.tail(kFeatures).dot(batch_.next_features.col(i));
      const float error = batch_.reward[i] + 0.9f * batch_.continues[i] * next - value;
      w.head(n) += static_cast<float>(config_.rate) * error * batch_.observation.col(i);
      w.tail(kFeatures) += static_cast<float>(config_.rate) * error * batch_.features.col(i);
      means_.Add(0, error * error);
      means_.Add(1, value);
    }
    if (++updates_ == config_.bad_step) weights_[1] = std::nanf("");
    if (updates_ == config_.bad_memory) recalled_ = std::numeric_limits<double>::infinity();
    RequireFinite("linear weights", weights_);
  }
  void DrainMetrics(MetricSink& sink) override { means_.Drain(sink); }
  void Visit(const Archive& state) override {
    state.Array("weights", weights_);
    state.Int("updates", updates_);
    state.Double("recalled", recalled_);
    state.Random("draws", draws_);
    replay_.Visit(state.Child("replay"));
    means_.Visit(state.Child("means"));
  }

 private:
  struct Memory : Carry {
    void Begin() override { state = 0.0; }
    void Visit(const Archive& file) override { file.Double("state", state); }
    double state = 0.0;
  };

  static ReplayConfig MakeConfig(const EnvSpec& spec) {
    ReplayConfig config;
    config.capacity = 300;
    config.observation_size = spec.observation_size;
    config.action_size = 1;
    config.feature_size = kFeatures;
    config.lift = CompactLift();
    config.one_hot_code = spec.action.kind == ActionKind::kDiscrete;
    config.code_size = spec.action.size;
    config.anchor_every = 64;
    return config;
  }
  static std::array<float, kFeatures> Features(const Situation& s) {
    return {static_cast<float>(s.step) / 100.0f,
            static_cast<float>(s.matrix.Trace() / (10.0 + s.step)), 1.0f};
  }
  static ReplayState State(const Situation& s, std::span<const float> features) {
    return {std::span(s.observation.data(), static_cast<std::size_t>(s.observation.size())),
            features, std::span(s.geometry.data(), kGeometrySize), &s.matrix};
  }
  Eigen::VectorXd Weights() const {
    return Eigen::Map<const Eigen::VectorXf>(weights_.data(),
                                             static_cast<Eigen::Index>(weights_.size()))
        .cast<double>();
  }

  LinearConfig config_;
  ActionSpec action_spec_;
  Replay replay_;
  ReplayBatch batch_;
  Rng draws_;
  std::vector<float> weights_;
  MetricMeans means_;
  std::int64_t updates_ = 0;
  double recalled_ = 0.0;  // of all carries
};

// Four rooms in which something goes wrong in every eighth episode, at its step `at`.
enum class GoesBad { kObservation, kGeometry, kReward, kException };
constexpr auto EnumNames(GoesBad /*unused*/) {
  return Names("observation", "geometry", "reward", "exception");
}
struct BadEnvConfig {
  GoesBad what = GoesBad::kObservation;
  int at = 7;
  template <typename V>
  void Fields(V&& visit) {
    visit("what", what, "what goes bad");
    visit("at", at, "step of the episode", NotNegative());
  }
};

class BadEnv : public EnvWrapper {
 public:
  explicit BadEnv(const BadEnvConfig& config)
      : EnvWrapper(MakeEnv("four-rooms-sparse")), config_(config) {}

  void Reset(std::uint64_t seed) override {
    inner().Reset(seed);
    seed_ = seed;
    step_ = 0;
    bad_ = false;
  }
  StepResult Step(const Action& action) override {
    StepResult result = inner().Step(action);
    bad_ = seed_ % 8 == 0 && step_++ == config_.at;
    if (!bad_) return result;
    if (config_.what == GoesBad::kException) throw std::runtime_error("the cable fell out");
    if (config_.what == GoesBad::kReward) result.reward = std::nan("");
    return result;
  }
  EnvView observation() const override {
    return Shown(inner().observation(), GoesBad::kObservation, observation_);
  }
  EnvView geometry() const override {
    return Shown(inner().geometry(), GoesBad::kGeometry, geometry_);
  }
  std::vector<std::byte> Snapshot() const override {
    ByteWriter writer;
    writer.U64(seed_);
    writer.I64(step_);
    writer.Blob(inner().Snapshot());
    return writer.Take();
  }
  void Restore(std::span<const std::byte> bytes) override {
    ByteReader reader(bytes, "bad env");
    seed_ = reader.U64();
    step_ = static_cast<int>(reader.I64In(0, 1'000'000));
    inner().Restore(reader.Blob());
  }

 private:
  EnvView Shown(const EnvView& view, GoesBad what, Eigen::VectorXd& own) const {
    own = view;
    if (bad_ && config_.what == what) own[1] = std::numeric_limits<double>::infinity();
    return EnvView(own.data(), own.size());
  }

  BadEnvConfig config_;
  std::uint64_t seed_ = 0;
  int step_ = 0;
  bool bad_ = false;
  mutable Eigen::VectorXd observation_, geometry_;
};

Registries TestRegistries() {
  Registries registries{BuiltinEnvs(), BuiltinAgents(), PretrainerRegistry()};
  registries.envs.Add(MakeEnvEntry<BadEnv, BadEnvConfig>("bad"));
  registries.agents.Add(
      MakeAgentEntry<LinearAgent, LinearConfig>("linear", "for tests", true, true));
  return registries;
}

void Spill(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// TensorBoard's file without its time stamps and the checksums over them.
std::string WithoutTimes(std::string events) {
  std::string rest;
  while (events.size() >= 16) {
    std::uint64_t length = 0;
    std::copy_n(events.data(), 8, reinterpret_cast<char*>(&length));
    rest += events.substr(12 + 9, length - 9);  // after the tag and 8 bytes of wall time
    events.erase(0, 16 + length);
  }
  return rest + events;
}

class RunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("msrl_run_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static RunSpec Spec(const std::string& env, std::uint64_t seed, std::int64_t steps) {
    RunSpec spec;
    spec.env = env;
    spec.agent = "linear";
    spec.seed = seed;
    spec.steps = steps;
    spec.eval_every = 200;
    spec.eval_episodes = 2;
    spec.log_every = 70;
    return spec;
  }
  void Create(const std::string& name, const RunSpec& spec) const {
    RunDirectory::Create(folder_ / name, Resolve(spec, TestRegistries()), TestRegistries());
  }
  // Goes on with a run; stops when `stop` says so.
  RunOutcome Continue(const std::string& name, std::function<bool()> stop = {},
                      std::int64_t checkpoint_steps = 0) {
    RunDirectory directory = RunDirectory::OpenForWriting(folder_ / name);
    RunOptions options;
    options.stop = std::move(stop);
    options.checkpoint_steps = checkpoint_steps;
    options.on_warning = [this](const std::string& text) { warnings_.push_back(text); };
    options.on_notice = [this](const std::string& text) { notices_.push_back(text); };
    return Runner(directory, TestRegistries(), options).Run();
  }
  std::vector<fs::path> Checkpoints(const std::string& name) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ / name / "checkpoints")) {
      files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  std::string Status(const std::string& name) const {
    return nlohmann::json::parse(Slurp(folder_ / name / "status.json")).at("state");
  }
  void ExpectSameResults(const std::string& a, const std::string& b) const {
    for (const char* file : {"metrics.jsonl", "evals.jsonl"}) {
      EXPECT_EQ(Slurp(folder_ / a / file), Slurp(folder_ / b / file)) << file;
      EXPECT_FALSE(Slurp(folder_ / a / file).empty());
    }
    const char* events = "events.out.tfevents.0.msrl";
    EXPECT_EQ(WithoutTimes(Slurp(folder_ / a / events)), WithoutTimes(Slurp(folder_ / b / events)));
    const auto newest_a = Checkpoints(a).back();
    const auto newest_b = Checkpoints(b).back();
    EXPECT_EQ(newest_a.filename(), newest_b.filename());
    EXPECT_TRUE(Slurp(newest_a) == Slurp(newest_b)) << "checkpoints differ";
  }

  fs::path folder_;
  std::vector<std::string> warnings_, notices_;
};

TEST_F(RunnerTest, WritesARunThatOthersCanRead) {
  Create("a", Spec("four-rooms-sparse", 1, 500));
  EXPECT_EQ(Continue("a"), RunOutcome::kFinished);
  EXPECT_EQ(Continue("a"), RunOutcome::kAlreadyFinished);
  EXPECT_EQ(Status("a"), "finished");
  std::istringstream evals(Slurp(folder_ / "a" / "evals.jsonl"));
  std::vector<std::int64_t> steps;
  for (std::string line; std::getline(evals, line);) {
    const auto json = nlohmann::json::parse(line);
    steps.push_back(json.at("step"));
    EXPECT_EQ(json.at("returns").size(), 2u);
    EXPECT_TRUE(json.contains("success_rate"));
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{0, 200, 400, 500}));
  std::istringstream metrics(Slurp(folder_ / "a" / "metrics.jsonl"));
  steps.clear();
  for (std::string line; std::getline(metrics, line);) {
    const auto json = nlohmann::json::parse(line);
    steps.push_back(json.at("step"));
    EXPECT_TRUE(json.contains("loss/td"));
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{70, 140, 210, 280, 350, 420, 490}));
  const auto run = nlohmann::json::parse(Slurp(folder_ / "a" / "run.json"));
  EXPECT_EQ(run.at("agent").at("settings").at("rate"), "0.01");
  EXPECT_GT(run.at("agent").at("parameters").get<int>(), 3);
  EXPECT_NE(Slurp(folder_ / "a" / "config.toml").find("rate = 0.01"), std::string::npos);
  EXPECT_EQ(Checkpoints("a").size(), 1u);
}

// A run directory from a stranger: whatever is a link is refused, and what it points to stays.
TEST_F(RunnerTest, NothingIsWrittenThroughLinks) {
  Create("good", Spec("four-rooms-sparse", 1, 300));
  std::int64_t left = 150;
  ASSERT_EQ(Continue("good", [&left] { return --left < 0; }), RunOutcome::kInterrupted);
  const fs::path outside = folder_ / "outside";
  for (const char* name : {"lock", "metrics.jsonl", "evals.jsonl", "timing.jsonl", "status.json",
                           "events.out.tfevents.0.msrl"}) {
    const fs::path run = folder_ / StrCat("bad-", name);
    fs::copy(folder_ / "good", run, fs::copy_options::recursive);
    const std::string precious = Slurp(run / name) + std::string(10'000, 'p');
    fs::remove(run / name);
    Spill(outside, precious);
    fs::create_symlink(outside, run / name);
    EXPECT_EQ(UserErrorText([&] { Continue(run.filename()); }),
              StrCat("cannot write ", (run / name).string(), ": it is a link"));
    EXPECT_EQ(Slurp(outside), precious) << name;
    EXPECT_TRUE(fs::is_symlink(run / name));
    fs::remove(outside);
  }
  const fs::path run = folder_ / "bad-folder";
  fs::copy(folder_ / "good", run, fs::copy_options::recursive);
  fs::rename(run / "checkpoints", outside);
  Spill(outside / ".msrl-tmp-1-1", "theirs");
  const auto files = std::distance(fs::directory_iterator(outside), {});
  fs::create_symlink(outside, run / "checkpoints");
  EXPECT_EQ(UserErrorText([&] { Continue("bad-folder"); }),
            StrCat("cannot write into ", (run / "checkpoints").string(), ": it is a link"));
  EXPECT_EQ(std::distance(fs::directory_iterator(outside), {}), files);
  EXPECT_THROW(RunDirectory::OpenForReading(run).ReadNewestCheckpoint({}), UserError);
}

TEST_F(RunnerTest, FilesOfTheUserStay) {
  Create("a", Spec("four-rooms-sparse", 1, 300));
  Spill(folder_ / "a" / ".gitignore", "checkpoints");
  Spill(folder_ / "a" / "checkpoints" / ".nfs0001", "x");
  Spill(folder_ / "a" / ".msrl-tmp-1-1", "of a killed process");
  Spill(folder_ / "a" / "checkpoints" / ".msrl-tmp-1-2", "of a killed process");
  ASSERT_EQ(Continue("a"), RunOutcome::kFinished);
  EXPECT_EQ(Slurp(folder_ / "a" / ".gitignore"), "checkpoints");
  EXPECT_EQ(Slurp(folder_ / "a" / "checkpoints" / ".nfs0001"), "x");
  EXPECT_FALSE(fs::exists(folder_ / "a" / ".msrl-tmp-1-1"));
  EXPECT_FALSE(fs::exists(folder_ / "a" / "checkpoints" / ".msrl-tmp-1-2"));
}

TEST_F(RunnerTest, AllCodeThatMadeItIsListed) {
  using Json = nlohmann::ordered_json;
  const fs::path file = folder_ / "a" / "run.json";
  const auto change = [&file](const auto& edit) {
    auto json = Json::parse(Slurp(file));
    edit(json);
    Spill(file, json.dump(2) + "\n");
  };
  Create("a", Spec("four-rooms-sparse", 1, 300));
  const auto made = Json::parse(Slurp(file)).at("made_by");
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].at("commit"), BuildCommit());
  EXPECT_EQ(made[0].at("from_step"), 0);
  // the same code: nothing is said
  std::int64_t left = 150;
  ASSERT_EQ(Continue("a", [&left] { return --left < 0; }), RunOutcome::kInterrupted);
  const std::string same = Slurp(file);
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(Json::parse(same).at("made_by"), made);
  // another one began it
  change([](Json& json) {
    json["commit"] = json["made_by"][0]["commit"] = "0123456789ab";
    json["env"]["spec"]["random_return"] = {{"value", -7.0}, {"origin", "of then"}};
  });
  ASSERT_EQ(Continue("a"), RunOutcome::kFinished);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("was made by msrl"), std::string::npos) << warnings_[0];
  EXPECT_NE(warnings_[0].find("0123456789ab"), std::string::npos) << warnings_[0];
  const auto mixed = Json::parse(Slurp(file));
  EXPECT_EQ(mixed.at("commit"), "0123456789ab");
  EXPECT_EQ(mixed.at("env").at("spec").at("random_return").at("value"), -7.0);
  ASSERT_EQ(mixed.at("made_by").size(), 2U);
  EXPECT_EQ(mixed.at("made_by")[1].at("commit"), BuildCommit());
  EXPECT_GT(mixed.at("made_by")[1].at("from_step"), 0);
  // a longer budget tells nothing anew
  {
    RunDirectory directory = RunDirectory::OpenForWriting(folder_ / "a");
    directory.SetSteps(400, TestRegistries());
  }
  auto expected = mixed;
  expected["steps"] = 400;
  EXPECT_EQ(Json::parse(Slurp(file)), expected);
  // from before there was a list
  change([](Json& json) { json.erase("made_by"); });
  const RunDirectory old = RunDirectory::OpenForReading(folder_ / "a");
  ASSERT_EQ(old.code().size(), 1U);
  EXPECT_EQ(old.code()[0].commit, "0123456789ab");
}

TEST_F(RunnerTest, ChangesByHandAreNoticed) {
  Create("a", Spec("four-rooms-sparse", 1, 300));
  const fs::path run = folder_ / "a";
  EXPECT_TRUE(ChangedRecords(run).empty());
  ASSERT_EQ(Continue("a"), RunOutcome::kFinished);
  ASSERT_TRUE(fs::exists(run / kManifestFile));
  EXPECT_TRUE(ChangedRecords(run).empty());
  Rng rng(1, "flips");
  for (const char* name :
       {"run.json", "config.toml", "status.json", "evals.jsonl", "metrics.jsonl", "timing.jsonl"}) {
    const std::string good = Slurp(run / name);
    for (int k = 0; k < 50; ++k) {
      std::string bad = good;
      const auto bit = static_cast<std::size_t>(rng.Index(8 * std::ssize(good)));
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
      Spill(run / name, bad);
      EXPECT_EQ(ChangedRecords(run), std::vector<std::string>{name});
    }
    if (std::string_view(name) != "status.json") {
      Spill(run / name, good + "\n");
      EXPECT_NE(UserErrorText([&] {
                  Continue("a");
                }).find(StrCat("changed after the run had finished: ", name, " (")),
                std::string::npos);
    }
    fs::remove(run / name);
    EXPECT_EQ(ChangedRecords(run), std::vector<std::string>{name});
    Spill(run / name, good);
    EXPECT_TRUE(ChangedRecords(run).empty());
  }
  // finished again: not a byte is written
  const std::string status = Slurp(run / "status.json"), manifest = Slurp(run / kManifestFile);
  EXPECT_EQ(Continue("a"), RunOutcome::kAlreadyFinished);
  EXPECT_EQ(Slurp(run / "status.json"), status);
  EXPECT_EQ(Slurp(run / kManifestFile), manifest);
  // what the checkpoint knows better is written anew
  Spill(run / "status.json", "half a st");
  EXPECT_EQ(Continue("a"), RunOutcome::kAlreadyFinished);
  EXPECT_EQ(Status("a"), "finished");
  EXPECT_TRUE(ChangedRecords(run).empty());
  // killed right before the manifest
  fs::remove(run / kManifestFile);
  EXPECT_EQ(Continue("a"), RunOutcome::kAlreadyFinished);
  EXPECT_TRUE(fs::exists(run / kManifestFile));
  EXPECT_TRUE(ChangedRecords(run).empty());
  // and with a longer budget it is no longer finished
  RunDirectory::OpenForWriting(run).SetSteps(400, TestRegistries());
  EXPECT_FALSE(fs::exists(run / kManifestFile));
  EXPECT_EQ(Continue("a"), RunOutcome::kFinished);
  EXPECT_NE(Slurp(run / kManifestFile), manifest);
  EXPECT_TRUE(ChangedRecords(run).empty());
}

TEST_F(RunnerTest, EqualSeedsEqualFilesOtherSeedsOtherFiles) {
  Create("a", Spec("graph-motif", 1, 400));
  Create("b", Spec("graph-motif", 1, 400));
  Create("c", Spec("graph-motif", 2, 400));
  for (const char* name : {"a", "b", "c"}) Continue(name);
  ExpectSameResults("a", "b");
  EXPECT_NE(Slurp(folder_ / "a" / "metrics.jsonl"), Slurp(folder_ / "c" / "metrics.jsonl"));
}

TEST_F(RunnerTest, EvaluationIsTheSameInFewerEnvironments) {
  int made = 0;
  for (const int envs : {kMostEvaluationEnvs, 1}) {
    const std::string name = std::to_string(envs);
    RunSpec spec = Spec("four-rooms-dense", 1, 300);
    spec.eval_episodes = 3;
    Create(name, spec);
    Registries registries = TestRegistries();
    EnvEntry counted = registries.envs.Find(spec.env);
    counted.make = [&made, make = counted.make](std::span<const std::string> options) {
      ++made;
      return make(options);
    };
    registries.envs = EnvRegistry({counted});
    RunDirectory directory = RunDirectory::OpenForWriting(folder_ / name);
    RunOptions options;
    options.evaluation_envs = envs;
    made = 0;
    EXPECT_EQ(Runner(directory, registries, options).Run(), RunOutcome::kFinished);
    EXPECT_EQ(made, 1 + std::min(envs, 3));
  }
  ExpectSameResults("16", "1");
}

TEST_F(RunnerTest, InterruptedAnywhereItEndsTheSame) {
  Rng rng(1, "stops");
  for (const char* env : {"graph-motif", "four-rooms-sparse"}) {
    const std::string whole = std::string("whole-") + env;
    Create(whole, Spec(env, 3, 1200));
    ASSERT_EQ(Continue(whole), RunOutcome::kFinished);
    const std::string parts = std::string("parts-") + env;
    Create(parts, Spec(env, 3, 1200));
    int interruptions = 0;
    for (;;) {
      // asked at every step of training and of evaluations
      std::int64_t left = rng.Index(400);
      if (Continue(
              parts, [&left] { return --left < 0; }, 130) == RunOutcome::kFinished)
        break;
      EXPECT_EQ(Status(parts), "interrupted");
      ASSERT_LT(++interruptions, 1000);
    }
    EXPECT_GE(interruptions, 3);
    ExpectSameResults(whole, parts);
  }
}

// What the agent remembers of an episode is in the checkpoint, and what follows depends on it.
TEST_F(RunnerTest, AnEpisodeIsTakenUpWithItsCarry) {
  const int limit = MakeEnv("four-rooms-sparse")->spec().step_limit;
  const RunSpec spec = Spec("four-rooms-sparse", 3, 2 * limit);
  Create("whole", spec);
  ASSERT_EQ(Continue("whole"), RunOutcome::kFinished);
  Create("parts", spec);
  std::int64_t asked = 0;
  ASSERT_EQ(Continue("parts", [&] { return ++asked > limit + 50; }), RunOutcome::kInterrupted);
  const TensorFile file = TensorFile::Read(Checkpoints("parts").back());
  const Archive tracker = Archive(file).Child("run").Child("tracker");
  int steps = 0;
  double memory = 0.0;
  tracker.Int("steps", steps);
  tracker.Child("carry").Double("state", memory);
  EXPECT_GT(steps, 1);
  EXPECT_NE(memory, 0.0);
  EXPECT_EQ(Continue("parts"), RunOutcome::kFinished);
  ExpectSameResults("whole", "parts");
}

TEST_F(RunnerTest, SaysWhereTheTimeGoes) {
  Create("a", Spec("graph-motif", 1, 400));
  RunDirectory directory = RunDirectory::OpenForWriting(folder_ / "a");
  RunOptions options;
  std::vector<RunProgress> shown;
  options.on_progress = [&](const RunProgress& progress) { shown.push_back(progress); };
  int asked = 0;  // first in the evaluation at the start
  options.stop = [&asked] {
    if (++asked == 1) std::this_thread::sleep_for(std::chrono::milliseconds(250));
    return false;
  };
  ASSERT_EQ(Runner(directory, TestRegistries(), options).Run(), RunOutcome::kFinished);
  ASSERT_GE(shown.size(), 4U);  // within the first evaluation, and after each
  EXPECT_TRUE(shown[0].evaluating);
  EXPECT_FALSE(shown[0].steps_per_second);
  EXPECT_FALSE(shown[0].seconds_left);
  const RunProgress& middle = shown[shown.size() - 2];
  EXPECT_FALSE(middle.evaluating);
  EXPECT_EQ(middle.step, 200);
  EXPECT_GT(middle.steps_per_second.value(), 0.0);
  EXPECT_GT(middle.seconds_left.value(), 0.0);
  const RunProgress& last = shown.back();
  EXPECT_EQ(last.seconds_left.value(), 0.0);
  EXPECT_GE(last.evaluation_seconds, 0.25);
  EXPECT_GT(last.seconds, last.evaluation_seconds);
  // the pause in the evaluation is not counted against training
  EXPECT_LT(400.0 / last.steps_per_second.value(), last.seconds - 0.2);

  const std::string timing = Slurp(folder_ / "a" / "timing.jsonl");
  const auto line = nlohmann::json::parse(timing.substr(timing.rfind('\n', timing.size() - 2) + 1));
  EXPECT_EQ(line.at("step"), 400);
  const double training = line.at("training_seconds");
  const double evaluation = line.at("evaluation_seconds");
  EXPECT_GE(evaluation, 0.25);
  EXPECT_GT(training, 0.0);
  EXPECT_NEAR(training + evaluation, line.at("seconds").get<double>(), 1e-9);
}

// run.json comes last: where it is, everything else is.
TEST_F(RunnerTest, AStartThatWasKilledIsRepeatedWhole) {
  const RunSpec spec = Spec("graph-motif", 1, 400);
  Create("whole", spec);
  fs::create_directory(folder_ / "killed");
  for (const char* left : {"lock", "config.toml", ".run.json.Ab3xY1"}) {
    Spill(folder_ / "killed" / left, "half");
    Create("killed", spec);
    EXPECT_EQ(Slurp(folder_ / "killed" / "config.toml"), Slurp(folder_ / "whole" / "config.toml"));
    fs::remove(folder_ / "killed" / "run.json");
    fs::remove(folder_ / "killed" / "checkpoints");
  }
  fs::create_directory(folder_ / "foreign");
  Spill(folder_ / "foreign" / "config.toml", "somebody else's");
  EXPECT_NE(UserErrorText([&] { Create("foreign", spec); }).find("not empty"), std::string::npos);
  EXPECT_EQ(Slurp(folder_ / "foreign" / "config.toml"), "somebody else's");
}

TEST_F(RunnerTest, TriesInASimulatorAreCounted) {
  RunSpec spec = Spec("four-rooms-sparse", 3, 420);
  spec.agent = "msrl";
  spec.agent_settings = BuiltinAgents().Find("msrl").quick;
  spec.agent_settings.insert(spec.agent_settings.end(), {"plan=library", "simulation_check=2"});
  Create("whole", spec);
  ASSERT_EQ(Continue("whole"), RunOutcome::kFinished);
  std::istringstream metrics(Slurp(folder_ / "whole" / "metrics.jsonl"));
  std::vector<double> tries;
  for (std::string line; std::getline(metrics, line);) {
    tries.push_back(nlohmann::json::parse(line).at("train/simulator_steps"));
  }
  ASSERT_EQ(tries.size(), 6u);
  EXPECT_TRUE(std::is_sorted(tries.begin(), tries.end()));
  EXPECT_GT(tries.back(), tries.front());
  EXPECT_LE(tries.back(), 2.0 * 420);

  Create("parts", spec);
  int asked = 0;
  ASSERT_EQ(Continue("parts", [&] { return ++asked == 250; }), RunOutcome::kInterrupted);
  ASSERT_EQ(Continue("parts"), RunOutcome::kFinished);
  ExpectSameResults("whole", "parts");

  spec.agent_settings.back() = "simulation_check=0";
  Create("off", spec);
  ASSERT_EQ(Continue("off"), RunOutcome::kFinished);
  EXPECT_EQ(Slurp(folder_ / "off" / "metrics.jsonl").find("simulator"), std::string::npos);
}

TEST_F(RunnerTest, ALongerBudgetGoesOn) {
  Create("whole", Spec("graph-motif", 3, 1200));
  Continue("whole");
  Create("half", Spec("graph-motif", 3, 600));
  EXPECT_EQ(Continue("half"), RunOutcome::kFinished);
  RunDirectory::OpenForWriting(folder_ / "half").SetSteps(1200, TestRegistries());
  EXPECT_EQ(Continue("half"), RunOutcome::kFinished);
  ExpectSameResults("whole", "half");
  RunDirectory half = RunDirectory::OpenForWriting(folder_ / "half");
  EXPECT_NE(
      UserErrorText([&] { half.SetSteps(600, TestRegistries()); }).find("has done more than 600"),
      std::string::npos);
}

// As after kill -9: files have grown past the checkpoint.
TEST_F(RunnerTest, LinesAfterTheCheckpointAreCut) {
  Create("whole", Spec("graph-motif", 3, 900));
  Continue("whole");
  Create("killed", Spec("graph-motif", 3, 900));
  std::int64_t left = 700;
  Continue("killed", [&left] { return --left < 0; });
  for (const char* file :
       {"metrics.jsonl", "evals.jsonl", "events.out.tfevents.0.msrl", "timing.jsonl"}) {
    std::ofstream(folder_ / "killed" / file, std::ios::app) << "{\"step\": 99999, \"half a li";
  }
  Spill(folder_ / "killed" / "checkpoints" / ".msrl-tmp-7-1", "half a file");
  Continue("killed");
  ExpectSameResults("whole", "killed");
  EXPECT_FALSE(fs::exists(folder_ / "killed" / "checkpoints" / ".msrl-tmp-7-1"));
  std::istringstream timing(Slurp(folder_ / "killed" / "timing.jsonl"));
  for (std::string line; std::getline(timing, line);) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
}

// What is gone is made again from a checkpoint before it, if there is one.
TEST_F(RunnerTest, LostLinesAreMadeAgainOrGoneWithout) {
  const std::vector<std::string> files{"metrics.jsonl", "evals.jsonl",
                                       "events.out.tfevents.0.msrl"};
  Create("whole", Spec("graph-motif", 3, 900));
  Continue("whole");
  const auto begin = [&] {
    fs::remove_all(folder_ / "cut");
    Create("cut", Spec("graph-motif", 3, 600));
    Continue("cut", {}, 200);
    ASSERT_EQ(Checkpoints("cut").size(), 2u);
    RunDirectory::OpenForWriting(folder_ / "cut").SetSteps(900, TestRegistries());
    warnings_.clear();
  };
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    begin();
    const std::string all = Slurp(folder_ / "cut" / file);
    Spill(folder_ / "cut" / file, all.substr(0, all.size() - 1));
    Continue("cut");
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find("changed from outside; trying the one before"), std::string::npos)
        << warnings_[0];
    ExpectSameResults("whole", "cut");
  }
  begin();
  for (const std::string& file : files) {
    const std::string all = Slurp(folder_ / "cut" / file);
    Spill(folder_ / "cut" / file, all.substr(0, all.find('\n') + 3));
  }
  EXPECT_NE(UserErrorText([&] { Continue("cut"); }).find("resume --lost-lines continues"),
            std::string::npos);
  RunDirectory directory = RunDirectory::OpenForWriting(folder_ / "cut");
  RunOptions options;
  options.lost_lines = LostLines::kGoOnWithout;
  EXPECT_EQ(Runner(directory, TestRegistries(), options).Run(), RunOutcome::kFinished);
  // with a gap in what is told, and none in what was learned
  const std::string evals = Slurp(folder_ / "cut" / "evals.jsonl");
  const std::string whole = Slurp(folder_ / "whole" / "evals.jsonl");
  EXPECT_LT(evals.size(), whole.size());
  EXPECT_TRUE(evals.ends_with(whole.substr(whole.rfind('\n', whole.size() - 2) + 1)));
  std::istringstream lines(evals + Slurp(folder_ / "cut" / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(nlohmann::json::accept(line));
}

TEST_F(RunnerTest, ADamagedCheckpointIsRefusedAndTheOneBeforeUsed) {
  Create("whole", Spec("graph-motif", 3, 900));
  Continue("whole");
  const auto interrupted = [&](const std::string& name) {
    Create(name, Spec("graph-motif", 3, 900));
    std::int64_t left = 600;
    Continue(
        name, [&left] { return --left < 0; }, 100);
    EXPECT_EQ(Checkpoints(name).size(), 2u);
    warnings_.clear();
  };
  // cut, flipped, empty, foreign
  interrupted("cut");
  const std::string good = Slurp(Checkpoints("cut").back());
  Spill(Checkpoints("cut").back(), good.substr(0, good.size() / 2));
  Continue("cut");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("trying the one before"), std::string::npos) << warnings_[0];
  EXPECT_EQ(std::count(warnings_[0].begin(), warnings_[0].end(), '\n'), 0);
  ExpectSameResults("whole", "cut");

  interrupted("flip");
  std::string flipped = good;
  flipped[good.size() - 100] = static_cast<char>(flipped[good.size() - 100] ^ 4);
  Spill(Checkpoints("flip").back(), flipped);
  Continue("flip");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("checksum is wrong"), std::string::npos) << warnings_[0];
  ExpectSameResults("whole", "flip");

  Create("other", Spec("graph-motif", 4, 300));
  Continue("other");
  interrupted("foreign");
  Spill(Checkpoints("foreign").back(), Slurp(Checkpoints("other").back()));
  Continue("foreign");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("checkpoint of another run"), std::string::npos);
  ExpectSameResults("whole", "foreign");

  // nothing left to use: never silently from the beginning
  interrupted("all");
  for (const fs::path& file : Checkpoints("all")) Spill(file, "");
  EXPECT_NE(UserErrorText([&] { Continue("all"); }).find("no checkpoint of this run can be used"),
            std::string::npos);
}

TEST_F(RunnerTest, EveryCutAndManyFlipsOfACheckpointAreNoticed) {
  Create("a", Spec("graph-motif", 3, 50));
  Continue("a");
  const std::string good = Slurp(Checkpoints("a").back());
  const std::uint64_t fingerprint =
      RunDirectory::OpenForReading(folder_ / "a").spec().Fingerprint();
  const auto accepted = [&](const std::string& bytes) {
    try {
      RequireCheckpoint(TensorFile::Parse(std::as_bytes(std::span(bytes)), "test"), fingerprint);
      return true;
    } catch (const UserError&) {
      return false;
    }
  };
  EXPECT_TRUE(accepted(good));
  Rng rng(1, "damage");
  const auto size = static_cast<std::int64_t>(good.size());
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(accepted(good.substr(0, static_cast<std::size_t>(rng.Index(size)))));
  }
  for (int i = 0; i < 3000; ++i) {
    // half of them in the header, where most of the logic is
    const std::int64_t at = rng.Index(i % 2 == 0 ? size : std::min<std::int64_t>(size, 4000));
    std::string bad = good;
    char& byte = bad[static_cast<std::size_t>(at)];
    byte = static_cast<char>(byte ^ (1 << rng.Index(8)));
    EXPECT_FALSE(accepted(bad)) << at;
  }
}

TEST_F(RunnerTest, ABadNumberStopsTheRunAndIsNamed) {
  RunSpec spec = Spec("graph-motif", 3, 900);
  spec.agent_settings = {"bad_step=333"};
  Create("a", spec);
  try {
    Continue("a", {}, 100);
    FAIL() << "no error";
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(), "step 333: linear weights[1] is nan");
  }
  EXPECT_EQ(Status("a"), "failed");
  EXPECT_EQ(Checkpoints("a").back().filename(), "step-0000000000300.safetensors");
}

// A file without a number that is none.
bool AllFinite(const fs::path& path) {
  const TensorFile file = TensorFile::Read(path);
  for (const TensorInfo& tensor : file.tensors()) {
    const auto finite = [](const auto& values) {
      return std::ranges::all_of(values, [](auto value) { return std::isfinite(value); });
    };
    if (tensor.type == TensorType::kF32 && !finite(file.F32(tensor.name, tensor.shape)))
      return false;
    if (tensor.type == TensorType::kF64 && !finite(file.F64(tensor.name, tensor.shape)))
      return false;
  }
  return true;
}

// Whatever goes bad, wherever: the run ends in this step, says what, keeps the episode, and no
// checkpoint has a bad number. What is kept leads to the same numbers, and so does going on.
TEST_F(RunnerTest, ABadNumberCanBePlayedAgain) {
  int in_training = 0, in_evaluations = 0, taken_up = 0;
  for (std::uint64_t i = 0; i < 48; ++i) {
    const char* what = std::array{"observation", "geometry", "reward", "exception"}[i % 4];
    SCOPED_TRACE(StrCat(what, ", run ", i));
    const std::string name = StrCat("run", i);
    RunSpec spec = Spec("bad", i, 6000);
    spec.env_settings = {StrCat("what=", what), StrCat("at=", i)};
    spec.eval_every = 2000;
    Create(name, spec);
    const auto end = [&] {
      try {
        Continue(name, {}, 130);
      } catch (const UserError& error) {
        ADD_FAILURE() << error.what();
      } catch (const std::exception& error) {
        return std::string(error.what());
      }
      return std::string("no error");
    };
    const std::string error = end();
    const bool raised = std::string(what) == "exception";
    const char* named = std::array{"observation[1] is inf", "'position_y' is inf", "reward is nan",
                                   "the cable fell out"}[i % 4];
    EXPECT_NE(error.find(named), std::string::npos) << error;
    EXPECT_EQ(Status(name), "failed");
    for (const fs::path& file : Checkpoints(name)) EXPECT_TRUE(AllFinite(file)) << file;

    const auto failure_of = [&] {
      return RunDirectory::OpenForReading(folder_ / name).ReadFailure();
    };
    const RunFailure failure = failure_of();
    EXPECT_EQ(failure.message, error);
    (failure.evaluating ? in_evaluations : in_training) += 1;
    const auto json = nlohmann::json::parse(Slurp(folder_ / name / "status.json"));
    EXPECT_EQ(json.at("step"), failure.step);
    const std::unique_ptr<Env> env = TestRegistries().envs.Make("bad", spec.env_settings);
    double reward = 0.0;
    const auto play = [&] {
      PlayAgain(failure.episode, *env,
                [&](const Action&, const StepResult& result) { reward = result.reward; });
    };
    if (raised) {
      EXPECT_THROW(play(), std::runtime_error);
      EXPECT_FALSE(failure.episode.reward.has_value());
    } else {
      play();
      EXPECT_TRUE(std::ranges::equal(env->observation(), failure.observation));
      EXPECT_TRUE(std::ranges::equal(env->geometry(), failure.geometry));
      EXPECT_TRUE(std::isnan(reward) ? std::isnan(*failure.episode.reward)
                                     : reward == failure.episode.reward);
    }
    // the same steps again, from the checkpoint
    EXPECT_EQ(end(), error);
    const RunFailure again = failure_of();
    EXPECT_EQ(again.step, failure.step);
    EXPECT_EQ(again.episode.seed == failure.episode.seed, again.episode.snapshot.empty());
    taken_up += again.episode.snapshot.empty() ? 0 : 1;
    fs::remove_all(folder_ / name);
  }
  EXPECT_GT(in_training, 8);
  EXPECT_GT(in_evaluations, 0);
  EXPECT_GT(taken_up, 4);
}

// A number that no check of the agent meets is met where it would be written.
TEST_F(RunnerTest, ABadNumberIsNotWritten) {
  RunSpec spec = Spec("graph-motif", 3, 900);
  spec.agent_settings = {"bad_memory=333"};
  Create("a", spec);
  try {
    Continue("a", {}, 100);
    FAIL() << "no error";
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(), "step 400: agent/recalled[0] is inf");
  }
  EXPECT_EQ(Checkpoints("a").back().filename(), "step-0000000000300.safetensors");
  EXPECT_TRUE(AllFinite(Checkpoints("a").back()));
}

// The failure of a run from a stranger.
TEST_F(RunnerTest, FailuresAreReadStrictly) {
  RunSpec spec = Spec("graph-motif", 3, 900);
  spec.agent_settings = {"bad_step=333"};
  for (const char* name : {"a", "b"}) {
    spec.seed += 1;
    Create(name, spec);
    EXPECT_THROW(Continue(name, {}, 100), RunError);
    EXPECT_NE(notices_.back().find("failure.safetensors holds the episode"), std::string::npos);
  }
  const fs::path file = folder_ / "a" / kFailureFile;
  const std::string good = Slurp(file);
  const auto problem = [&] {
    return UserErrorText([&] { RunDirectory::OpenForReading(folder_ / "a").ReadFailure(); });
  };
  EXPECT_EQ(problem(), "no error");
  Spill(file, Slurp(folder_ / "b" / kFailureFile));
  EXPECT_NE(problem().find("the failure of another run"), std::string::npos);
  std::string bad = good;
  bad.back() = static_cast<char>(bad.back() ^ 1);
  Spill(file, bad);
  EXPECT_NE(problem().find("damaged"), std::string::npos);
  fs::copy_file(Checkpoints("b").back(), file, fs::copy_options::overwrite_existing);
  EXPECT_NE(problem().find("not the failure of a run"), std::string::npos);
  fs::remove(file);
  EXPECT_NE(problem().find("has no failure.safetensors"), std::string::npos);
  // nor is one written through a link
  Spill(folder_ / "outside", "precious");
  fs::create_symlink(folder_ / "outside", file);
  EXPECT_THROW(Continue("a"), RunError);
  EXPECT_EQ(Slurp(folder_ / "outside"), "precious");
}

TEST_F(RunnerTest, AFullDiskLeavesTheLastGoodCheckpoint) {
  Create("whole", Spec("graph-motif", 3, 900));
  Continue("whole");
  Create("a", Spec("graph-motif", 3, 900));
  std::int64_t left = 300;
  Continue("a", [&left] { return --left < 0; });
  const std::size_t before = Checkpoints("a").size();

  struct rlimit old_limit {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  struct rlimit limit = old_limit;
  limit.rlim_cur = fs::file_size(Checkpoints("a").back()) / 2;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THROW(Continue("a", {}, 100), StorageError);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_EQ(Status("a"), "failed");
  EXPECT_EQ(Checkpoints("a").size(), before);
  EXPECT_EQ(Continue("a"), RunOutcome::kFinished);
  EXPECT_TRUE(warnings_.empty());
  ExpectSameResults("whole", "a");
}

TEST_F(RunnerTest, DirectoriesAreGuarded) {
  const RunSpec spec = Resolve(Spec("graph-motif", 3, 100), TestRegistries());
  RunDirectory first = RunDirectory::Create(folder_ / "a", spec, TestRegistries());
  EXPECT_NE(UserErrorText([&] {
              RunDirectory::Create(folder_ / "a", spec, TestRegistries());
            }).find("continue it with: resume"),
            std::string::npos);
  EXPECT_NE(UserErrorText([&] {
              RunDirectory::OpenForWriting(folder_ / "a");
            }).find("is being run by process "),
            std::string::npos);
  fs::create_directory(folder_ / "full");
  Spill(folder_ / "full" / "thesis.tex", "years of work");
  EXPECT_NE(UserErrorText([&] {
              RunDirectory::Create(folder_ / "full", spec, TestRegistries());
            }).find("not empty"),
            std::string::npos);
  EXPECT_NE(
      UserErrorText([&] { RunDirectory::OpenForWriting(folder_ / "none"); }).find("no run in"),
      std::string::npos);
  fs::create_directory(folder_ / "empty");
  RunDirectory::Create(folder_ / "empty", spec, TestRegistries());
  const fs::path json = folder_ / "empty" / "run.json";
  const std::string text = Slurp(json);
  Spill(json, text.substr(0, text.size() / 2));
  EXPECT_NE(
      UserErrorText([&] { RunDirectory::OpenForReading(folder_ / "empty"); }).find("is damaged"),
      std::string::npos);
}

TEST(DefaultEvaluation, TakesAtMostHalfTheStepsOfTraining) {
  struct Case {
    std::int64_t steps;
    int step_limit;
    std::int64_t every;
    int episodes;
  };
  for (const Case& c :
       {Case{2'000'000, 1000, 20'000, 10}, Case{20'000'000, 1000, 200'000, 10},
        Case{1'000'000, 1000, 20'000, 10}, Case{100'000, 1000, 10'000, 5},
        Case{20'000, 1000, 6667, 3}, Case{2000, 1000, 2000, 1}, Case{4000, 1000, 4000, 2},
        Case{1, 1000, 1, 1}, Case{10'000, 50, 1000, 10}, Case{100'050, 50, 1001, 10}}) {
    SCOPED_TRACE(c.steps);
    const EvaluationSchedule got = DefaultEvaluation(c.steps, c.step_limit, {});
    EXPECT_EQ(got.every, c.every);
    EXPECT_EQ(got.episodes, c.episodes);
  }
  for (std::int64_t steps = 2000; steps < 5'000'000; steps += steps / 7) {
    const EvaluationSchedule got = DefaultEvaluation(steps, 1000, {});
    const std::int64_t times = (steps + got.every - 1) / got.every;
    EXPECT_LE(times * got.episodes * 1000, std::max<std::int64_t>(1000, steps / 2)) << steps;
  }
  // what somebody asks for stays
  const EvaluationSchedule often = DefaultEvaluation(20'000, 1000, {.every = 100});
  EXPECT_EQ(often.every, 100);
  EXPECT_EQ(often.episodes, 1);
  EXPECT_EQ(DefaultEvaluation(2'000'000, 1000, {.every = 400'000}).episodes, 10);
  const EvaluationSchedule many = DefaultEvaluation(20'000, 1000, {.episodes = 50});
  EXPECT_EQ(many.every, 20'000);
  EXPECT_EQ(many.episodes, 50);
  const EvaluationSchedule both = DefaultEvaluation(2000, 1000, {.every = 7, .episodes = 99});
  EXPECT_EQ(both.every, 7);
  EXPECT_EQ(both.episodes, 99);
}

// Earlier versions wrote these into checkpoints.
TEST(RunSpec, FingerprintsStay) {
  RunSpec spec;
  spec.env = "graph-motif";
  spec.env_settings = {"split=train", "scale=0.0"};
  spec.agent = "dqn";
  spec.agent_settings = {"gamma=0.99"};
  spec.seed = UINT64_MAX;
  spec.steps = 5000;
  spec.eval_every = 50;
  spec.eval_episodes = 10;
  EXPECT_EQ(Hex(spec.Fingerprint()), "49e97c88226ea2e0");
  spec.init = "0123";
  EXPECT_EQ(Hex(spec.Fingerprint()), "f01e8ed93c3be194");
}

TEST(RunSpec, FieldsKeepToTheirRanges) {
  RunSpec defaults;
  defaults.steps = 1;
  testing::ExpectRangesHold("run", ListFields(defaults), [&](const std::string& assignment) {
    RunSpec spec = defaults;
    SetField(spec, assignment);
    return ListFields(RequireInRange(spec));
  });
}

TEST(RunSpec, JsonKeepsAResolvedSpec) {
  RunSpec spec;
  spec.env = "micro-grid";
  spec.env_settings = {"width=5"};
  spec.agent = "random";
  spec.seed = UINT64_MAX;
  spec.steps = 5000;
  const RunSpec resolved = Resolve(spec, TestRegistries());
  const EvaluationSchedule evaluation =
      DefaultEvaluation(5000, MakeEnv("micro-grid", spec.env_settings)->spec().step_limit, {});
  EXPECT_EQ(resolved.eval_every, evaluation.every);
  EXPECT_EQ(resolved.eval_episodes, evaluation.episodes);
  EXPECT_GT(resolved.env_settings.size(), 1u);
  const RunSpec read = RunSpecFromJson(ToJson(resolved, TestRegistries()), "test");
  EXPECT_EQ(read.Fingerprint(), resolved.Fingerprint());
  EXPECT_EQ(read.env_settings, resolved.env_settings);
  EXPECT_EQ(read.steps, 5000);
  EXPECT_EQ(Resolve(read, TestRegistries()).Fingerprint(), resolved.Fingerprint());
  EXPECT_NE(ToToml(resolved, TestRegistries()).find("width = 5"), std::string::npos);

  spec.seed = 1;
  EXPECT_NE(Resolve(spec, TestRegistries()).Fingerprint(), resolved.Fingerprint());
  spec.steps = 0;
  EXPECT_NE(
      UserErrorText([&] { Resolve(spec, TestRegistries()); }).find("setting 'steps' must be 1 to"),
      std::string::npos);
  spec.steps = 10;
  spec.env_settings = {"widht=5"};
  EXPECT_NE(UserErrorText([&] { Resolve(spec, TestRegistries()); }).find("did you mean 'width'?"),
            std::string::npos);
}

}  // namespace
}  // namespace msrl
