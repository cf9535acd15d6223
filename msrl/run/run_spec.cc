#include "msrl/run/run_spec.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "msrl/core/check.h"
#include "msrl/core/parse.h"
#include "msrl/files/json_text.h"
#include "msrl/run/json_fields.h"

namespace msrl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormatVersion = 2;

std::vector<std::string> Assignments(const std::vector<ConfigField>& fields) {
  std::vector<std::string> list;
  for (const ConfigField& field : fields) list.push_back(field.key + "=" + field.Text());
  return list;
}

// The fields with the settings put in. Settings have been accepted before.
std::vector<ConfigField> Override(std::vector<ConfigField> fields,
                                  std::span<const std::string> settings) {
  for (const std::string& setting : settings) {
    const auto [key, text] = SplitOnce(setting, '=');
    for (ConfigField& field : fields) {
      if (field.key != key) continue;
      field.value = field.value.starts_with('"') ? Json(text).dump() : std::string(text);
    }
  }
  return fields;
}

// Environments list only their defaults.
std::vector<ConfigField> EnvFields(const RunSpec& spec, const Registries& registries) {
  return Override(registries.envs.Find(spec.env).options(), spec.env_settings);
}

// "key=value" settings as an object.
Json SettingsObject(std::span<const std::string> settings) {
  Json object = Json::object();
  for (const std::string& setting : settings) {
    const auto [key, value] = SplitOnce(setting, '=');
    object[std::string(key)] = value;
  }
  return object;
}

std::vector<std::string> SettingsFrom(const Json& object) {
  std::vector<std::string> settings;
  for (const auto& [key, value] : object.items()) {
    settings.push_back(key + "=" + value.get<std::string>());
  }
  return settings;
}

Json MeasuredOrNull(const std::optional<MeasuredReturn>& measured) {
  return measured ? Json{{"value", measured->value}, {"origin", measured->origin}} : Json();
}

Json SpecObject(const EnvSpec& spec) {
  return {{"family", spec.family},
          {"observation_size", spec.observation_size},
          {"action_kind", spec.action.kind == ActionKind::kDiscrete ? "discrete" : "continuous"},
          {"action_size", spec.action.size},
          {"step_limit", spec.step_limit},
          {"gamma", spec.gamma},
          {"reward_scale", spec.reward_scale},
          {"random_return", MeasuredOrNull(spec.random_return)},
          {"reference_return", MeasuredOrNull(spec.reference_return)}};
}

}  // namespace

std::uint64_t RunSpec::Fingerprint() const {
  std::string text = StrCat(env, "\n", agent, "\n");
  for (const ConfigField& field : ListFields(*this)) {
    if (field.key == "steps" || field.key == "init" || field.key == "library") continue;
    text += field.Text() + "\n";
  }
  for (const std::string& setting : env_settings) text += setting + "\n";
  text += "\n";
  for (const std::string& setting : agent_settings) text += setting + "\n";
  if (!init.empty()) text += "init " + init + "\n";
  if (!library.empty()) text += "library " + library + "\n";
  return StableHash(text);
}

EvaluationSchedule DefaultEvaluation(std::int64_t steps, int step_limit,
                                     EvaluationSchedule wanted) {
  constexpr std::int64_t kMostEpisodes = 10, kFewEpisodes = 3;
  constexpr std::int64_t kMostIntervals = 100, kFewIntervals = 10;
  const std::int64_t all = steps / (2 * std::max<std::int64_t>(1, step_limit));  // episodes
  const auto divide_up = [steps](std::int64_t n) { return (steps + n - 1) / n; };
  std::int64_t episodes = wanted.episodes;
  if (episodes == 0 && wanted.every > 0) {
    episodes = std::clamp<std::int64_t>(all / divide_up(wanted.every), 1, kMostEpisodes);
  } else if (episodes == 0) {
    episodes = all >= kFewIntervals * kFewEpisodes ? std::min(kMostEpisodes, all / kFewIntervals)
                                                   : std::clamp<std::int64_t>(all, 1, kFewEpisodes);
  }
  if (wanted.every == 0) {
    wanted.every = divide_up(std::clamp<std::int64_t>(all / episodes, 1, kMostIntervals));
  }
  wanted.episodes = static_cast<int>(episodes);
  return wanted;
}

RunSpec Resolve(const RunSpec& spec, const Registries& registries) {
  RunSpec resolved = RequireInRange(spec);
  const std::unique_ptr<Env> env = registries.envs.Make(spec.env, spec.env_settings);
  const AgentEntry& agent = registries.agents.Find(spec.agent);
  MakeAgent(agent, env->spec(), spec.agent_settings, spec.seed);
  resolved.env_settings = Assignments(EnvFields(spec, registries));
  resolved.agent_settings = Assignments(agent.options(spec.agent_settings));
  const EvaluationSchedule evaluation =
      DefaultEvaluation(spec.steps, env->spec().step_limit, {spec.eval_every, spec.eval_episodes});
  resolved.eval_every = evaluation.every;
  resolved.eval_episodes = evaluation.episodes;
  return resolved;
}

std::string ToToml(const RunSpec& spec, const Registries& registries) {
  std::string text = StrCat("# What this run is. A record: `resume` reads run.json.\n[run]\nenv = ",
                            Json(spec.env).dump(), "\nagent = ", Json(spec.agent).dump(), "\n");
  text += ToToml(ListFields(spec)) + "\n[env]\n" + ToToml(EnvFields(spec, registries));
  text += "\n[agent]\n" + ToToml(registries.agents.Find(spec.agent).options(spec.agent_settings));
  return text;
}

std::string ToJson(const RunSpec& spec, const Registries& registries) {
  const std::unique_ptr<Env> env = registries.envs.Make(spec.env, spec.env_settings);
  const std::unique_ptr<Agent> agent =
      registries.agents.Make(spec.agent, env->spec(), spec.agent_settings, spec.seed);
  Json json;
  json["format"] = "msrl-run";
  json["format_version"] = kFormatVersion;
  json["msrl_version"] = BuildVersion();
  json["commit"] = BuildCommit();
  json["compiler"] = __VERSION__;
  json["made_by"] = ToJsonValue<Json>(std::vector{ThisCode(registries, 0)});
  json["env"] = {{"id", spec.env},
                 {"settings", SettingsObject(spec.env_settings)},
                 {"spec", SpecObject(env->spec())}};
  json["agent"] = {{"id", spec.agent},
                   {"settings", SettingsObject(spec.agent_settings)},
                   {"parameters", agent->parameter_count()},
                   {"lift", LiftKindName(agent->lift_kind())},
                   {"lift_id", CompactLift(agent->lift_kind())->id().ToString()}};
  for (const ConfigField& field : ListFields(spec)) {
    json[field.key] = ParseJson<Json>(field.value, field.key);
  }
  return json.dump(2) + "\n";
}

RunSpec RunSpecFromJson(std::string_view text, std::string_view source) {
  return Strictly<Json>(source, [&] {
    const auto json = ParseJson<Json>(text, source);
    RequireFormat(json, "msrl-run", kFormatVersion, "a run's", source);
    RunSpec spec;
    spec.env = json.at("env").at("id").get<std::string>();
    spec.env_settings = SettingsFrom(json.at("env").at("settings"));
    spec.agent = json.at("agent").at("id").get<std::string>();
    spec.agent_settings = SettingsFrom(json.at("agent").at("settings"));
    for (const ConfigField& field : ListFields(spec)) {
      // from before runs could start with a library
      if (field.key == "library" && !json.contains(field.key)) continue;
      const Json& value = json.at(field.key);
      try {
        SetField(spec, field.key, value.is_string() ? value.get<std::string>() : value.dump());
      } catch (const UserError& error) {
        throw UserError(StrCat(source, ": ", error.what()));
      }
    }
    if (spec.eval_every < 1 || spec.eval_episodes < 1) {
      throw UserError(StrCat(source, ": eval_every and eval_episodes must be at least 1"));
    }
    return spec;
  });
}

std::string CodeRecord::Describe() const {
  return StrCat("msrl ", version, " (", commit, mujoco.empty() ? "" : ", MuJoCo " + mujoco, ")");
}

bool CodeRecord::SameCode(const CodeRecord& other) const {
  // runs from before it was written down do not name a MuJoCo
  const bool same_mujoco = mujoco.empty() || other.mujoco.empty() || mujoco == other.mujoco;
  return version == other.version && commit == other.commit && same_mujoco;
}

namespace {

std::string Distinct(const std::vector<CodeRecord>& code, std::string CodeRecord::*member) {
  std::vector<std::string> seen;
  std::string joined;
  for (const CodeRecord& record : code) {
    const std::string& text = record.*member;
    if (std::ranges::find(seen, text) != seen.end()) continue;
    joined += (seen.empty() ? "" : "+") + text;
    seen.push_back(text);
  }
  return joined;
}

}  // namespace

std::string VersionsOf(const std::vector<CodeRecord>& code) {
  return Distinct(code, &CodeRecord::version);
}
std::string CommitsOf(const std::vector<CodeRecord>& code) {
  return Distinct(code, &CodeRecord::commit);
}

CodeRecord ThisCode(const Registries& registries, std::int64_t from_step) {
  return {std::string(BuildVersion()), std::string(BuildCommit()), registries.mujoco, from_step};
}

std::vector<CodeRecord> CodeFromJson(std::string_view text, std::string_view source) {
  return Strictly<Json>(source, [&] {
    const auto json = ParseJson<Json>(text, source);
    std::vector<CodeRecord> code;
    if (json.contains("made_by")) FromJsonValue(json.at("made_by"), code);
    if (!code.empty()) return code;
    // from before there was a list
    CodeRecord& only = code.emplace_back();
    json.at("msrl_version").get_to(only.version);
    json.at("commit").get_to(only.commit);
    return code;
  });
}

std::string WithChanges(std::string_view text, std::string_view source, std::int64_t steps,
                        const std::vector<CodeRecord>& code) {
  return Strictly<Json>(source, [&] {
    auto json = ParseJson<Json>(text, source);
    json["steps"] = steps;
    json["made_by"] = ToJsonValue<Json>(code);
    return json.dump(2) + "\n";
  });
}

std::string_view BuildVersion() { return MSRL_VERSION; }
std::string_view BuildCommit() { return MSRL_COMMIT; }

}  // namespace msrl
