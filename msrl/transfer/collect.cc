#include "msrl/transfer/collect.h"

#include <algorithm>
#include <memory>

#include "msrl/core/check.h"
#include "msrl/env/behaviour.h"
#include "msrl/files/atomic_file.h"
#include "msrl/transfer/fitted_value.h"
#include "msrl/transfer/source_critic.h"

namespace msrl {
namespace {

constexpr Index kTailSteps = 15;
constexpr int kPartEpisodes = 250;

StoredEpisode Play(Env& env, std::uint64_t seed, BehaviourMix mix, Rng& rng, bool expert_values) {
  env.Reset(seed);
  Behaviour behaviour = MakeBehaviour(env, rng, mix);
  const BehaviourConfig drawn = behaviour.config();
  const EnvSpec& spec = env.spec();
  const Index limit = env.horizon();
  StoredEpisode episode;
  episode.env = spec.id;
  episode.seed = seed;
  episode.instance = env.InstanceText();
  episode.discrete = spec.action.kind == ActionKind::kDiscrete;
  episode.reward_scale = spec.reward_scale;
  episode.observations.resize(spec.observation_size, limit + 1);
  episode.geometry.resize(kGeometrySize, limit + 1);
  episode.actions.resize(episode.discrete ? 1 : spec.action.size, limit);
  episode.rewards.resize(limit);
  Eigen::VectorXf expert = Eigen::VectorXf::Zero(limit + 1);

  Index t = 0;
  const auto see = [&] {
    episode.observations.col(t) = env.observation().cast<float>();
    episode.geometry.col(t) = env.geometry().cast<float>();
    if (expert_values && !episode.terminated) expert[t] = static_cast<float>(ExpertValue(env));
  };
  see();
  while (t < limit && !episode.terminated && !episode.truncated) {
    const Action action = behaviour.Act();
    if (episode.discrete) {
      episode.actions(0, t) = static_cast<float>(action.index());
    } else {
      for (Index i = 0; i < episode.actions.rows(); ++i) {
        episode.actions(i, t) =
            static_cast<float>(std::clamp(action.values()[static_cast<std::size_t>(i)], -1.0, 1.0));
      }
    }
    const StepResult result = env.Step(action);
    episode.rewards[t] = result.reward;
    episode.terminated = result.terminated;
    episode.truncated = result.truncated;
    ++t;
    see();
  }
  episode.observations.conservativeResize(Eigen::NoChange, t + 1);
  episode.geometry.conservativeResize(Eigen::NoChange, t + 1);
  episode.actions.conservativeResize(Eigen::NoChange, t);
  episode.rewards.conservativeResize(t);
  if (expert_values) episode.values["expert"] = expert.head(t + 1);
  episode.facts["skill"] = drawn.skill;
  episode.facts["persistence"] = drawn.persistence;
  episode.facts.merge(env.Unwrapped().HiddenFacts());
  return episode;
}

// The first episodes of a collection, in files of kPartEpisodes.
class Parts {
 public:
  explicit Parts(const CollectOptions& options) : work_(options.work) {
    if (work_.empty()) return;
    MakeFolder(work_);
    name_ = options.Fingerprint();
  }

  // Takes over what is there already.
  void Read(EpisodeFile& file, int most) const {
    if (work_.empty()) return;
    while (std::ssize(file.episodes) + kPartEpisodes <= most &&
           std::filesystem::exists(PathOf(file.episodes.size()))) {
      EpisodeFile part = ReadEpisodes(PathOf(file.episodes.size()));
      for (StoredEpisode& episode : part.episodes) file.episodes.push_back(std::move(episode));
    }
  }
  // Whenever a part is full.
  void Write(const EpisodeFile& file) const {
    if (work_.empty() || file.episodes.size() % kPartEpisodes != 0) return;
    const EpisodeFile part{.lift_id = file.lift_id,
                           .action_code_size = file.action_code_size,
                           .gamma = file.gamma,
                           .attributes = file.attributes,
                           .episodes = {file.episodes.end() - kPartEpisodes, file.episodes.end()}};
    WriteEpisodes(PathOf(file.episodes.size() - kPartEpisodes), part);
  }

 private:
  std::filesystem::path PathOf(std::size_t first) const {
    return work_ / StrCat(name_, "-", first, kWorkEpisodes);
  }

  std::filesystem::path work_;
  std::string name_;
};

bool Wanted(const CollectOptions& options, ValueTarget target) {
  return std::ranges::find(options.targets, target) != options.targets.end();
}

void RequireValid(const CollectOptions& options, const EnvRegistry& envs,
                  const std::vector<std::string>& sources) {
  RequireInRange(options);
  const std::vector<std::string> families = SourceFamilies(envs);
  for (const std::string& source : sources) {
    if (std::find(families.begin(), families.end(), source) == families.end()) {
      throw UserError(StrCat("'", source, "' is no source family", DidYouMean(source, families)));
    }
    if (std::count(sources.begin(), sources.end(), source) > 1) {
      throw UserError(StrCat("source '", source, "' is named twice"));
    }
  }
  for (const std::string& setting : options.settings) {
    const std::string family = setting.substr(0, setting.find('.'));
    if (family == setting || std::find(sources.begin(), sources.end(), family) == sources.end()) {
      throw UserError(StrCat("'", setting, "' does not begin with one of the sources and a point",
                             DidYouMean(family, sources)));
    }
    const std::string_view key = std::string_view(setting).substr(family.size() + 1);
    if (key.starts_with("split=") || key.starts_with("dead_slots=")) {
      throw UserError(StrCat("'", setting, "': this is set by collect itself, for all sources"));
    }
  }
  if (!options.settings.empty() && Wanted(options, ValueTarget::kCritic)) {
    throw UserError(
        "agents of the target 'critic' learn in the sources as they are: it can't be had with "
        "settings");
  }
  if (options.targets.empty()) {
    throw UserError(
        "setting 'targets' must name at least one of mc, expert, fitted, critic, regression");
  }
}

std::unique_ptr<Env> MakeSource(const CollectOptions& options, const EnvRegistry& registry,
                                const std::string& source) {
  std::vector<std::string> all{StrCat("split=", EnumName(options.split)),
                               StrCat("dead_slots=", options.dead_slots)};
  for (const std::string& setting : options.settings) {
    if (setting.starts_with(source + ".")) all.push_back(setting.substr(source.size() + 1));
  }
  return registry.Make(source, all);
}

}  // namespace

std::vector<std::string> SourceFamilies(const EnvRegistry& envs) {
  std::vector<std::string> ids;
  for (const EnvEntry& entry : envs) {
    if (entry.is_source) ids.push_back(entry.id);
  }
  return ids;
}

std::vector<std::string> SourcesOf(const EpisodeFile& file) {
  std::vector<std::string> sources;
  for (const StoredEpisode& episode : file.episodes) {
    if (std::find(sources.begin(), sources.end(), episode.env) == sources.end()) {
      sources.push_back(episode.env);
    }
  }
  return sources;
}

std::string CollectOptions::Fingerprint() const {
  return Hex(StableHash(IdentityText(ListFields(*this))));
}

void AddMonteCarlo(StoredEpisode& episode, double gamma) {
  const Eigen::VectorXd rewards = episode.rewards / episode.reward_scale;
  const Index tail = std::min(kTailSteps, rewards.size());
  const double last = episode.terminated ? 0.0 : rewards.tail(tail).mean() / (1.0 - gamma);
  episode.values["mc"] = DiscountedRest(rewards, last, gamma).cast<float>();
}

Eigen::VectorXd DiscountedRest(const Eigen::VectorXd& rewards, double last_value, double gamma) {
  Eigen::VectorXd rest(rewards.size() + 1);
  rest[rewards.size()] = last_value;
  for (Index t = rewards.size(); t-- > 0;) rest[t] = rewards[t] + gamma * rest[t + 1];
  return rest;
}

EpisodeFile Collect(const CollectOptions& options, const EnvRegistry& registry,
                    const AgentRegistry& agents, const CollectProgress& progress) {
  const std::vector<std::string> sources =
      options.sources.empty() ? SourceFamilies(registry) : options.sources;
  RequireValid(options, registry, sources);
  const std::string split(EnumName(options.split));
  std::vector<std::unique_ptr<Env>> envs;
  for (const std::string& source : sources) envs.push_back(MakeSource(options, registry, source));

  EpisodeFile file;
  file.lift_id = CompactLift()->id().ToString();
  file.action_code_size = kActionCodeSize;
  file.gamma = envs.front()->spec().gamma;
  std::string names;
  for (const std::string& source : sources) names += (names.empty() ? "" : ",") + source;
  file.attributes = {{"sources", names},
                     {"split", split},
                     {"seed", std::to_string(options.seed)},
                     {"dead_slots", StrCat(options.dead_slots)}};
  if (options.behaviour != BehaviourMix::kSkills) {
    file.attributes["behaviour"] = EnumName(options.behaviour);
  }
  for (const std::string& setting : options.settings) {
    std::string& all = file.attributes["settings"];
    all += (all.empty() ? "" : ",") + setting;
  }
  const Parts parts(options);
  parts.Read(file, options.episodes);
  for (int k = static_cast<int>(file.episodes.size()); k < options.episodes; ++k) {
    const std::size_t which = static_cast<std::size_t>(k) % sources.size();
    // of its own for each episode: the first N do not depend on how many follow
    Rng rng(options.seed, StrCat("collect/", split, "/", sources[which], "/",
                                 static_cast<std::size_t>(k) / sources.size()));
    const std::uint64_t episode_seed = rng.NextU64();
    file.episodes.push_back(Play(*envs[which], episode_seed, options.behaviour, rng,
                                 Wanted(options, ValueTarget::kExpert)));
    if (Wanted(options, ValueTarget::kMonteCarlo)) AddMonteCarlo(file.episodes.back(), file.gamma);
    parts.Write(file);
    if (progress) progress("episodes", k + 1, options.episodes);
  }
  const bool fitted = Wanted(options, ValueTarget::kFitted);
  const bool regression = Wanted(options, ValueTarget::kRegression);
  if (fitted || regression) FittedValue(file).AddTo(file);
  for (StoredEpisode& episode : file.episodes) {
    if (!fitted) episode.values.erase("fitted");
    if (!regression) episode.values.erase("regression");
  }
  if (Wanted(options, ValueTarget::kCritic)) {
    file.attributes["critic_steps"] = std::to_string(options.critic_steps);
    AddCriticValues(file, registry, agents, {.steps = options.critic_steps, .seed = options.seed},
                    progress);
  }
  return file;
}

}  // namespace msrl
