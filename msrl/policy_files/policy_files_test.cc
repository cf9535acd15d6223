#include "msrl/policy_files/policy_files.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "msrl/agents/play.h"
#include "msrl/agents/registry.h"
#include "msrl/core/check.h"
#include "msrl/env_list/env_list.h"
#include "msrl/policy_files/policy_header.h"
#include "msrl/policy_files/policy_onnx.h"
#include "msrl/testing/user_error.h"

#ifdef MSRL_HAS_ONNX
#include <onnx/onnx_pb.h>
#endif

namespace msrl {
namespace {

constexpr int kObservations = 100'000;
constexpr double kMostApart = 1e-5;

// An agent after some steps of learning.
class Learned {
 public:
  Learned(const std::string& id, const std::string& env, const std::vector<std::string>& settings)
      : envs_(MakeEnv(env)), id_(id) {
    const AgentEntry& entry = BuiltinAgents().Find(id);
    std::vector<std::string> all = entry.quick;
    all.insert(all.end(), settings.begin(), settings.end());
    agent_ = MakeAgent(entry, spec(), all, 1);
    Lockstep training(*agent_, envs_, {Rng(1, "policy")});
    training.Begin(0, 1);
    for (int t = 1; t <= 150; ++t) {
      training.Step(ActMode::kExplore, [&](const PlayedStep& step) {
        agent_->Observe(step.experience, step.tracker.carry());
        agent_->Update();
        if (step.ended()) training.Begin(0, static_cast<std::uint64_t>(t));
      });
    }
    carry_ = agent_->MakeCarry();
  }

  const EnvSpec& spec() const { return envs_.spec(); }
  ExportedPolicy Export() { return ExportPolicy(*agent_, spec(), id_); }
  // Its own action, in a matrix that is not the zero one.
  const ActionBuffer& Act(const Eigen::VectorXf& observation) {
    const Eigen::VectorXd numbers = observation.cast<double>();
    agent_->Act(Turn{{EnvView(numbers.data(), numbers.size()),
                      EnvView(geometry_.data(), kGeometrySize), matrix(), 3},
                     *carry_,
                     rng_,
                     action_},
                ActMode::kEvaluate);
    return action_;
  }

 private:
  const SegmentMatrix& matrix() {
    if (!matrix_) {
      const Lift::Ptr lift = CompactLift(agent_->lift_kind());
      matrix_.emplace(lift);
      for (int t = 0; t < 3; ++t) {
        Eigen::VectorXd psi(lift->m());
        for (double& entry : psi) entry = rng_.Normal();
        matrix_->AddStep(psi);
      }
    }
    return *matrix_;
  }

  BatchEnv envs_;
  std::string id_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<Carry> carry_;
  std::array<double, kGeometrySize> geometry_{0.3, -0.2, 0.5, 0.1};
  Rng rng_{7, "act"};
  ActionBuffer action_{envs_.spec().action};
  std::optional<SegmentMatrix> matrix_;
};

class PolicyFilesTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("msrl_policy_files_" + std::to_string(getpid()) + "_" +
       ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

// The header, compiled as C by the machine's own compiler.
class CompiledHeader {
 public:
  CompiledHeader(const std::filesystem::path& folder, const std::string& header) {
    std::ofstream(folder / "policy.h") << header;
    std::ofstream(folder / "policy.c")
        << "#include \"policy.h\"\n"
           "void act(const float* o, float* a) { policy(o, a); }\n"
           "void outputs(const float* o, float* y) { policy_outputs(o, y); }\n"
           "float self_test(void) { return policy_self_test(); }\n"
           "int action_size(void) { return POLICY_ACTION_SIZE; }\n";
    const std::string library = (folder / "policy.so").string();
    const std::string command =
        "cc -std=c99 -pedantic -Wall -Wextra -Wconversion -Wshadow -Werror -O2 -shared -fPIC -o " +
        library + " " + (folder / "policy.c").string() + " -lm";
    EXPECT_EQ(std::system(command.c_str()), 0) << header.substr(0, 2000);
    library_ = dlopen(library.c_str(), RTLD_NOW);
    EXPECT_NE(library_, nullptr);
  }
  ~CompiledHeader() { dlclose(library_); }

  template <typename Function>
  Function* Get(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));  // NOLINT: what dlsym is for
  }

 private:
  void* library_ = nullptr;
};

struct Case {
  std::string agent, env;
  std::vector<std::string> settings;
  std::string reason;  // why it cannot be exported; empty: it can
};

const std::string kDiscreteEnv = "graph-motif";
const std::string kContinuousEnv = "four-rooms-sparse";

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases{
      {"random", kContinuousEnv, {}, "learns nothing"},
      {"still", kDiscreteEnv, {}, "learns nothing"},
      {"dqn", kDiscreteEnv, {}, ""},
      {"dqn", kDiscreteEnv, {"critic_layer_norm=true", "hidden_layers=3"}, ""},
      {"dqn", kDiscreteEnv, {"hidden_layers=0"}, ""},
      {"td3", kContinuousEnv, {}, ""},
      {"sac", kContinuousEnv, {}, ""},
      {"sac", kContinuousEnv, {"hidden_width=64", "hidden_layers=1"}, ""},
      {"msrl", kContinuousEnv, {}, "plans with its model"},
      {"msrl", kContinuousEnv, {"plan=library"}, ""},
      {"msrl", kContinuousEnv, {"plan=library", "lookahead=always"}, "lookahead=always"},
      {"msrl", kContinuousEnv, {"plan=off", "sight=matrix"}, "sight=matrix"},
      {"msrl-td3", kContinuousEnv, {"plan=off"}, ""},
      {"msrl-dqn", kDiscreteEnv, {"plan=library"}, ""},
      {"msrl-dqn", kDiscreteEnv, {"plan=off", "branch_hidden=true"}, "branch_hidden=true"},
      {"mbpo", kContinuousEnv, {}, ""},
      {"ppo", kContinuousEnv, {}, ""},
      {"ppo", kContinuousEnv, {"normalize_observations=false"}, ""},
      {"ppo", kDiscreteEnv, {}, ""},
      {"tdmpc", kContinuousEnv, {}, "plan=true"},
      {"tdmpc", kContinuousEnv, {"plan=false"}, ""},
      {"tdmpc", kContinuousEnv, {"plan=false", "aligned=true"}, "aligned=true"},
      {"dreamer", kDiscreteEnv, {}, "recurrent"},
      {"uvfa", kContinuousEnv, {}, "its module reads"},
      {"traj2value-rnn", kContinuousEnv, {}, "its module reads"},
      {"traj2value-transformer", kContinuousEnv, {}, "its module reads"},
      {"sf-gpi", kContinuousEnv, {}, "its module reads"},
      {"subgraph-gnn", kContinuousEnv, {}, "its module reads"},
      {"dbc", kContinuousEnv, {}, "its module reads"},
  };
  return cases;
}

std::string Name(const Case& c) {
  std::string name = c.agent + " in " + c.env;
  for (const std::string& setting : c.settings) name += " " + setting;
  return name;
}

TEST_F(PolicyFilesTest, EveryListedAgentIsExportedOrSaysWhyNot) {
  std::set<std::string> tried;
  for (const Case& c : Cases()) tried.insert(c.agent);
  for (const AgentEntry& entry : BuiltinAgents()) EXPECT_TRUE(tried.contains(entry.id)) << entry.id;
  for (const Case& c : Cases()) {
    SCOPED_TRACE(Name(c));
    if (c.reason.empty()) continue;
    Learned learned(c.agent, c.env, c.settings);
    const std::string error = testing::UserErrorText([&] { learned.Export(); });
    EXPECT_NE(error.find("'" + c.agent + "' cannot be exported"), std::string::npos) << error;
    EXPECT_NE(error.find(c.reason), std::string::npos) << error;
  }
}

// What the header does is what the agent does, in 100,000 observations.
TEST_F(PolicyFilesTest, HeadersDoWhatTheAgentsDo) {
  for (const Case& c : Cases()) {
    if (!c.reason.empty()) continue;
    SCOPED_TRACE(Name(c));
    Learned learned(c.agent, c.env, c.settings);
    const ExportedPolicy exported = learned.Export();
    const FeedForwardPolicy& policy = exported.policy;
    ASSERT_EQ(policy.observation_size(), learned.spec().observation_size);
    ASSERT_EQ(policy.output_size(), learned.spec().action.size);
    CompiledHeader compiled(folder_, PolicyHeader(exported));
    auto* const act = compiled.Get<void(const float*, float*)>("act");
    auto* const outputs = compiled.Get<void(const float*, float*)>("outputs");
    EXPECT_EQ(compiled.Get<int()>("action_size")(), policy.action_size());
    EXPECT_LE(compiled.Get<float()>("self_test")(), kMostApart);

    Rng rng(3, "observations");
    Eigen::VectorXf observation(policy.observation_size());
    Eigen::VectorXf action(policy.action_size());
    Eigen::VectorXf scores(policy.output_size());
    double worst = 0.0;
    double spread = 0.0;
    int ties = 0;
    for (int i = 0; i < kObservations; ++i) {
      for (float& entry : observation) entry = static_cast<float>(3.0 * rng.Normal());
      act(observation.data(), action.data());
      const ActionBuffer& own = learned.Act(observation);
      if (policy.discrete) {
        const auto index = static_cast<Eigen::Index>(action[0]);
        spread = std::max(spread, static_cast<double>(index));
        if (index == own.index()) continue;
        outputs(observation.data(), scores.data());
        worst = std::max(worst, static_cast<double>(scores[index] - scores[own.index()]));
        ++ties;
      } else {
        for (Eigen::Index j = 0; j < action.size(); ++j) {
          const double theirs = own.values()[static_cast<std::size_t>(j)];
          worst = std::max(worst, std::abs(static_cast<double>(action[j]) - theirs));
          spread = std::max(spread, std::abs(theirs - exported.actions(j, 0)));
        }
      }
    }
    EXPECT_LE(worst, kMostApart);
    EXPECT_LE(ties, kObservations / 1000);  // of two actions that are worth the same
    EXPECT_GT(spread, 1e-3);                // not always the same action
    RecordProperty(Name(c), StrCat(worst));
  }
}

TEST_F(PolicyFilesTest, NamesOfTheHeaderAreChecked) {
  const ExportedPolicy exported = Learned("sac", kContinuousEnv, {}).Export();
  EXPECT_NE(PolicyHeader(exported, "hop_2").find("void hop_2(const float* observation"),
            std::string::npos);
  for (const char* name : {"", "2nd", "a-b", "a b", "p;"}) {
    EXPECT_NE(testing::UserErrorText([&] { PolicyHeader(exported, name); }).find("is no name"),
              std::string::npos)
        << name;
  }
}

// Names of environments come from others.
TEST_F(PolicyFilesTest, NoTextEndsTheComment) {
  ExportedPolicy exported = Learned("sac", kContinuousEnv, {}).Export();
  exported.env = "x */ #error \n";
  CompiledHeader compiled(folder_, PolicyHeader(exported));
  EXPECT_LE(compiled.Get<float()>("self_test")(), kMostApart);
}

TEST_F(PolicyFilesTest, FilesAreWrittenAllOrNone) {
  const ExportedPolicy exported = Learned("sac", kContinuousEnv, {}).Export();
  const std::string header = (folder_ / "p.h").string();
  EXPECT_NE(testing::UserErrorText([&] {
              WritePolicy(exported, {}, Existing::kRefuse);
            }).find("nothing to write"),
            std::string::npos);
  const auto written = WritePolicy(exported, {.onnx = "", .header = header}, Existing::kRefuse);
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(written[0].bytes, std::filesystem::file_size(header));
  EXPECT_THROW(WritePolicy(exported, {.onnx = "", .header = header}, Existing::kRefuse), UserError);
  const std::string onnx = (folder_ / "p.onnx").string();
  EXPECT_THROW(WritePolicy(exported, {.onnx = onnx, .header = header}, Existing::kRefuse),
               UserError);
  EXPECT_FALSE(std::filesystem::exists(onnx));
}

// Numbers of ONNX models are compared by onnxruntime (python/tests/test_export.py).
#ifdef MSRL_HAS_ONNX
TEST_F(PolicyFilesTest, OnnxModelsAreWellFormed) {
  for (const Case& c : Cases()) {
    if (!c.reason.empty()) continue;
    SCOPED_TRACE(Name(c));
    const ExportedPolicy exported = Learned(c.agent, c.env, c.settings).Export();
    const std::string bytes = PolicyOnnx(exported);
    EXPECT_EQ(bytes, PolicyOnnx(exported));
    onnx::ModelProto model;
    ASSERT_TRUE(model.ParseFromString(bytes));
    ASSERT_EQ(model.graph().input_size(), 1);
    EXPECT_EQ(model.graph().input(0).type().tensor_type().shape().dim(1).dim_value(),
              exported.policy.observation_size());
    EXPECT_EQ(model.graph().output(0).name(), "action");
    EXPECT_EQ(model.graph().output_size(), exported.policy.discrete ? 2 : 1);
    EXPECT_EQ(model.metadata_props(0).value(), c.agent);
  }
}
#else
TEST_F(PolicyFilesTest, WithoutTheLibraryThereIsAReason) {
  const ExportedPolicy exported = Learned("sac", kContinuousEnv, {}).Export();
  EXPECT_NE(testing::UserErrorText([&] { PolicyOnnx(exported); }).find("libonnx-dev"),
            std::string::npos);
}
#endif

}  // namespace
}  // namespace msrl
