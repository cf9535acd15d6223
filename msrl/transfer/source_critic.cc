#include "msrl/transfer/source_critic.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "msrl/agents/common/critic_agent.h"
#include "msrl/agents/play.h"
#include "msrl/agents/registry.h"
#include "msrl/core/check.h"

namespace msrl {
namespace {

constexpr int kProgressEvery = 100;

std::unique_ptr<CriticAgent> MakeSourceAgent(const AgentRegistry& agents, const EnvSpec& spec,
                                             double gamma, const CriticValueOptions& options,
                                             std::uint64_t seed) {
  const bool discrete = spec.action.kind == ActionKind::kDiscrete;
  const auto entry = std::find_if(agents.begin(), agents.end(), [&](const AgentEntry& each) {
    return each.values_sources && (discrete ? each.discrete : each.continuous);
  });
  if (entry == agents.end()) {
    throw UserError(StrCat("no agent values episodes of '", spec.id, "'"));
  }
  char digits[64];
  const std::string gamma_text(digits, std::to_chars(digits, digits + sizeof digits, gamma).ptr);
  std::vector<std::string> settings{StrCat("hidden_width=", options.hidden_width),
                                    StrCat("batch_size=", options.batch_size), "replay_size=100000",
                                    StrCat("random_steps=", std::clamp(options.steps / 4, 1, 1000)),
                                    "gamma=" + gamma_text};
  for (const ConfigField& field : entry->options({})) {
    if (field.key == "epsilon_steps") {
      settings.push_back(StrCat("epsilon_steps=", std::max(1, options.steps / 2)));
    }
  }
  std::unique_ptr<Agent> agent = MakeAgent(*entry, spec, settings, seed);
  auto* const critic = dynamic_cast<CriticAgent*>(agent.get());
  MSRL_CHECK(critic != nullptr, entry->id);
  agent.release();
  return std::unique_ptr<CriticAgent>(critic);
}

std::unique_ptr<CriticAgent> TrainIn(const AgentRegistry& agents, BatchEnv& env, double gamma,
                                     const CriticValueOptions& options,
                                     const std::function<void(int done)>& progress) {
  const std::string stream = StrCat("critic/", env.spec().id, "/");
  Rng resets(options.seed, stream + "env");
  std::unique_ptr<CriticAgent> agent = MakeSourceAgent(
      agents, env.spec(), gamma, options, Rng(options.seed, stream + "agent").NextU64());
  Lockstep training(*agent, env, {Rng(options.seed, stream + "policy")});
  training.Begin(0, resets.NextU64());
  for (int done = 1; done <= options.steps; ++done) {
    training.Step(ActMode::kExplore, [&](const PlayedStep& step) {
      agent->Observe(step.experience, step.tracker.carry());
      agent->Update();
      if (step.ended()) training.Begin(step.env, resets.NextU64());
    });
    if (done % kProgressEvery == 0 || done == options.steps) progress(done);
  }
  return agent;
}

void AddValues(CriticAgent& agent, StoredEpisode& episode) {
  const Eigen::MatrixXf no_features(0, Critic::kMaxCandidates);
  Eigen::VectorXf& value = episode.values["critic"];
  value.resize(episode.horizon() + 1);
  for (Index start = 0; start < value.size(); start += Critic::kMaxCandidates) {
    const Index count = std::min<Index>(Critic::kMaxCandidates, value.size() - start);
    agent.StateValues(episode.observations.middleCols(start, count), no_features.leftCols(count),
                      std::span(value.data() + start, static_cast<std::size_t>(count)));
  }
  RequireFinite("value",
                std::span<const float>(value.data(), static_cast<std::size_t>(value.size())));
  if (episode.terminated) value[episode.horizon()] = 0.0F;
}

}  // namespace

void AddCriticValues(
    EpisodeFile& file, const EnvRegistry& envs, const AgentRegistry& agents,
    const CriticValueOptions& options,
    const std::function<void(std::string_view stage, int done, int total)>& progress) {
  RequireInRange(options);
  struct Family {
    std::unique_ptr<BatchEnv> env;
    std::vector<std::size_t> episodes;
  };
  // all that can be wrong with the file is said before anything is trained
  const std::string env_options[] = {"split=train"};
  std::map<std::string, Family> families;
  for (std::size_t k = 0; k < file.episodes.size(); ++k) {
    const StoredEpisode& episode = file.episodes[k];
    Family& family = families[episode.env];
    if (!family.env) family.env = std::make_unique<BatchEnv>(envs.Make(episode.env, env_options));
    const Index size = family.env->spec().observation_size;
    if (episode.observations.rows() != size) {
      throw UserError(StrCat("episode ", k, " has observations of ", episode.observations.rows(),
                             " numbers, ", episode.env, " of ", size));
    }
    family.episodes.push_back(k);
  }
  const int total = options.steps * static_cast<int>(families.size());
  int before = 0;
  for (auto& [name, family] : families) {
    const std::unique_ptr<CriticAgent> agent =
        TrainIn(agents, *family.env, file.gamma, options, [&](int done) {
          if (progress) progress("critics", before + done, total);
        });
    for (const std::size_t k : family.episodes) AddValues(*agent, file.episodes[k]);
    before += options.steps;
  }
}

}  // namespace msrl
