#include "msrl/sweep/plan.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "msrl/core/check.h"
#include "msrl/core/parse.h"
#include "msrl/files/json_text.h"
#include "msrl/paper/figures.h"
#include "msrl/run/json_fields.h"
#include "msrl/run/run_directory.h"
#include "msrl/run/start_from.h"
#include "msrl/sweep/variants.h"
#include "msrl/value/value_branch.h"

namespace msrl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormatVersion = 1;
// a million runs
constexpr JsonLimits kPlanLimits{.bytes = std::size_t{1} << 28, .values = 20'000'000};
constexpr std::size_t kMaxRuns = 100'000;

bool Knows(const std::vector<ConfigField>& fields, const std::string& key) {
  return std::ranges::find(fields, key, &ConfigField::key) != fields.end();
}

std::string ValueOf(const std::vector<std::string>& settings, std::string_view key) {
  std::string value;
  for (const std::string& setting : settings) {
    if (const auto [name, text] = SplitOnce(setting, '='); name == key) value = text;
  }
  return value;
}

// As the pretrainer resolves them.
int UpdatesOf(const std::vector<ConfigField>& options) {
  for (const ConfigField& field : options) {
    if (field.key == "updates") return std::stoi(field.value);
  }
  throw UserError("its kind has no option 'updates'");
}

// As ContentsHash makes them; becomes part of a path.
bool IsHash(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

ArtefactHeader HeaderOf(const SweepBranch& branch, const PretrainerRegistry& pretrainers) {
  return pretrainers.Find(branch.kind).announce(branch.Options());
}

// Without its identity.
PlannedRun RunOf(const SweepPlan& plan, std::size_t env, std::size_t method, std::uint64_t seed) {
  PlannedRun run{.env = env, .method = method, .seed = seed};
  run.path = StrCat(plan.envs[env].name, "/", plan.methods[method].name, "/", seed);
  if (const SweepBranch* branch = plan.FindBranch(plan.methods[method].init)) {
    run.branch = branch->Path(branch->SeedFor(seed));
  }
  return run;
}

class PlanBuilder {
 public:
  PlanBuilder(const SweepSpec& spec, const Registries& registries)
      : spec_(spec), registries_(registries) {}

  SweepPlan Make() {
    plan_.name = spec_.name;
    plan_.version = BuildVersion();
    plan_.commit = BuildCommit();
    plan_.few_shot = spec_.few_shot;
    plan_.log_every = spec_.log_every;
    plan_.seeds = spec_.seeds;
    AddBranches();
    AddEnvs();
    AddMethods();
    AddRuns();
    return std::move(plan_);
  }

 private:
  // Whatever goes wrong in `work` is said with file and line.
  template <typename Work>
  auto At(int line, std::string_view what, const Work& work) const {
    try {
      return work();
    } catch (const UserError& error) {
      throw UserError(StrCat(spec_.file, ":", line, ": ", what, error.what()));
    }
  }
  [[noreturn]] void Fail(int line, const std::string& what) const {
    throw UserError(StrCat(spec_.file, ":", line, ": ", what));
  }

  void AddBranches() {
    if (spec_.branches.empty()) return;
    plan_.source = spec_.source;
    std::vector<std::string>& targets = plan_.source->targets;
    for (const SweepBranch& branch : spec_.branches) {
      SweepBranch planned = branch;
      const std::string what = StrCat("branch '", branch.name, "': ");
      const PretrainerEntry& pretrainer = At(branch.line, what, [&]() -> const PretrainerEntry& {
        return registries_.pretrainers.FindOrFirst(branch.kind);
      });
      planned.kind = pretrainer.id;
      for (const SweepSetting& setting : branch.written) {
        if (setting.key == "objective" || setting.key == "control" || setting.key == "updates") {
          Fail(setting.line, StrCat(setting.key, " is a key of its own here, no setting"));
        }
        const std::string text = setting.Assignment();
        At(setting.line, "", [&] { static_cast<void>(pretrainer.announce(std::span(&text, 1))); });
        planned.settings.push_back(text);
      }
      At(branch.line, what, [&] {
        static_cast<void>(pretrainer.announce(planned.Options()));
        planned.updates = UpdatesOf(pretrainer.options(planned.Options()));
      });
      for (const ValueTarget value : pretrainer.targets(planned.Options())) {
        const std::string target(EnumName(value));
        if (std::ranges::find(targets, target) != targets.end()) continue;
        if (!spec_.source->targets.empty()) {
          Fail(branch.line, StrCat(what, "learns the target '", target,
                                   "', which [source] targets does not name"));
        }
        targets.push_back(target);
      }
      plan_.branches.push_back(std::move(planned));
    }
  }

  void AddEnvs() {
    for (const SweepEnv& env : spec_.envs) {
      SweepEnv planned = env;
      const std::vector<ConfigField> options =
          At(env.line, "", [&] { return registries_.envs.Find(env.id).options(); });
      std::vector<std::string> known;
      for (const ConfigField& field : options) known.push_back(field.key);
      for (const SweepSetting& setting : env.written) {
        if (!Knows(options, setting.key)) {
          Fail(setting.line, StrCat("environment '", env.id, "' has no option '", setting.key, "'",
                                    DidYouMean(setting.key, known)));
        }
        planned.settings.push_back(setting.Assignment());
      }
      const std::unique_ptr<Env> made =
          At(env.line, "", [&] { return registries_.envs.Make(env.id, planned.settings); });
      if (env.family.empty()) planned.family = PaperFamily(made->spec().family);
      const EvaluationSchedule evaluation = DefaultEvaluation(env.steps, made->spec().step_limit,
                                                              {env.eval_every, env.eval_episodes});
      planned.eval_every = evaluation.every;
      planned.eval_episodes = evaluation.episodes;
      plan_.envs.push_back(std::move(planned));
    }
  }

  void AddMethods() {
    std::set<std::string> applied;
    std::vector<std::string> known;
    for (const SweepMethod& method : spec_.methods) {
      const AgentEntry& agent = At(method.line, "", [&]() -> const AgentEntry& {
        return registries_.agents.Find(method.agent);
      });
      const std::vector<ConfigField> fields = agent.options({});
      SweepMethod planned = method;
      if (method.role.empty()) planned.role = DefaultRole(method, agent);
      const auto add = [&](const SweepSetting& setting) {
        const std::string text = setting.Assignment();
        At(setting.line, StrCat("method '", method.name, "': "),
           [&] { static_cast<void>(agent.options(std::span(&text, 1))); });
        planned.settings.push_back(text);
      };
      for (const SweepSetting& setting : spec_.settings) {
        if (!method.shared || !Knows(fields, setting.key)) continue;
        applied.insert(setting.key);
        const auto own = std::ranges::find(method.written, setting.key, &SweepSetting::key);
        if (own == method.written.end()) add(setting);
      }
      for (const ConfigField& field : fields) known.push_back(field.key);
      for (const SweepSetting& setting : method.written) add(setting);
      if (!method.init.empty()) RequireBranch(method, agent);
      if (!method.library_place.empty()) planned.library = AddLibrary(method);
      plan_.methods.push_back(std::move(planned));
    }
    for (const SweepSetting& setting : spec_.settings) {
      if (applied.contains(setting.key)) continue;
      Fail(setting.line, StrCat("no agent of this sweep has the setting '", setting.key, "'",
                                DidYouMean(setting.key, known)));
    }
  }

  std::string DefaultRole(const SweepMethod& method, const AgentEntry& agent) const {
    if (agent.options({}).empty()) return "reference";  // it learns nothing
    if (method.init.empty()) {
      if (!method.library_place.empty()) return "transfer";
      return agent.takes.empty() ? "baseline" : "scratch";
    }
    return plan_.FindBranch(method.init)->control == "none" ? "transfer" : "control";
  }

  void RequireBranch(const SweepMethod& method, const AgentEntry& agent) const {
    const SweepBranch& branch = *plan_.FindBranch(method.init);
    const ArtefactHeader header = HeaderOf(branch, registries_.pretrainers);
    At(method.line, StrCat("method '", method.name, "': "),
       [&] { RequireTakes(registries_.agents, agent, header.kind); });
    const bool aligned = header.lift_kind == "none" ||
                         header.lift == CompactLift(LiftKindFromName(header.lift_kind))->id();
    if (aligned == method.unaligned) {
      Fail(method.line, StrCat("method '", method.name, "': branch '", branch.name, "' is ",
                               method.unaligned ? "aligned; take out unaligned = true"
                                                : "of another lift; say unaligned = true"));
    }
  }

  // The hash of its segments.
  std::string AddLibrary(const SweepMethod& method) {
    const auto strictly = [](const std::string& problem) { throw UserError(problem); };
    std::string contents = At(method.line, StrCat("method '", method.name, "': "),
                              [&] { return SegmentsFile(method.library_place, strictly); });
    std::string hash = ContentsHash(contents);
    plan_.libraries.emplace(hash, std::move(contents));
    return hash;
  }

  void AddRuns() {
    // once per environment and method: seeds change nothing of what can be wrong
    std::map<std::pair<std::size_t, std::size_t>, RunSpec> resolved;
    for (std::size_t e = 0; e < plan_.envs.size(); ++e) {
      for (std::size_t m = 0; m < plan_.methods.size(); ++m) {
        const SweepMethod& method = spec_.methods[m];
        const std::string& env = plan_.envs[e].name;
        const bool wanted =
            method.envs.empty() || std::ranges::find(method.envs, env) != method.envs.end();
        if (!wanted) continue;
        const PlannedRun run = RunOf(plan_, e, m, spec_.seeds.front());
        const std::string what = StrCat("method '", method.name, "' in '", env, "': ");
        const RunSpec spec =
            At(method.line, what, [&] { return plan_.ResolvedSpecOf(run, registries_); });
        if (!method.init.empty() && !method.unaligned) {
          const std::string ours = ValueOf(spec.agent_settings, "lift");
          const std::string theirs =
              HeaderOf(*plan_.FindBranch(method.init), registries_.pretrainers).lift_kind;
          // an agent without the setting has no choice of lifts
          if (theirs != "none" && !ours.empty() && ours != theirs) {
            Fail(method.line, StrCat(what, "its lift is '", ours, "', that of branch '",
                                     method.init, "' is '", theirs, "'"));
          }
        }
        if (!spec.library.empty()) {
          RunSpec with = spec;
          At(method.line, what, [&] {
            StartWithSegments(plan_.libraries.at(spec.library), method.library_place, registries_,
                              with);
          });
        }
        resolved.emplace(std::pair(e, m), spec);
      }
    }
    for (const std::uint64_t seed : spec_.seeds) {
      for (auto& [place, spec] : resolved) {
        PlannedRun run = RunOf(plan_, place.first, place.second, seed);
        spec.seed = seed;
        run.identity =
            Identity(plan_, run, spec, registries_.pretrainers, plan_.version, plan_.commit);
        plan_.runs.push_back(std::move(run));
      }
      if (plan_.runs.size() > kMaxRuns) Fail(1, "more than 100000 runs");
    }
  }

  const SweepSpec& spec_;
  const Registries& registries_;
  SweepPlan plan_;
};

template <typename Item>
const Item* ByName(const std::vector<Item>& items, std::string_view name) {
  const auto found = std::ranges::find(items, name, &Item::name);
  return found == items.end() ? nullptr : &*found;
}

// Two objects of the same name must agree in all but what is only shown.
template <typename Record, typename Fail>
void RequireSame(const Record& before, const Record& after, const char* kind, const Fail& fail) {
  const Json old = ToJsonValue<Json>(before), now = ToJsonValue<Json>(after);
  static const std::set<std::string> shown{"title", "role", "paper", "component", "family"};
  for (const auto& [key, value] : old.items()) {
    if (shown.contains(key) || now.at(key) == value) continue;
    fail(StrCat(kind, " '", old.value("name", "data"), "' has ", key, " ", value.dump(), " there, ",
                now.at(key).dump(), " in the file"));
  }
}

}  // namespace

std::vector<std::string> SweepBranch::Options() const {
  std::vector<std::string> options;
  if (!objective.empty()) options.push_back("objective=" + objective);
  options.insert(options.end(), settings.begin(), settings.end());
  options.push_back("control=" + control);
  if (updates >= 0) options.push_back(StrCat("updates=", updates));
  return options;
}

std::string SweepBranch::Path(std::uint64_t seed) const {
  return StrCat("source/", name, "-", seed, ".safetensors");
}

const SweepBranch* SweepPlan::FindBranch(std::string_view wanted) const {
  return wanted.empty() ? nullptr : ByName(branches, wanted);
}

RunSpec SweepPlan::SpecOf(const PlannedRun& run) const {
  const SweepEnv& env = envs[run.env];
  const SweepMethod& method = methods[run.method];
  return {.env = env.id,
          .env_settings = env.settings,
          .agent = method.agent,
          .agent_settings = method.settings,
          .seed = run.seed,
          .steps = env.steps,
          .eval_every = env.eval_every,
          .eval_episodes = env.eval_episodes,
          .log_every = log_every,
          .init = {},
          .library = method.library};
}

RunSpec SweepPlan::ResolvedSpecOf(const PlannedRun& run, const Registries& registries) const {
  RunSpec spec = SpecOf(run);
  const SweepMethod& method = methods[run.method];
  if (const SweepBranch* branch = FindBranch(method.init)) {
    SetFor(HeaderOf(*branch, registries.pretrainers), method.unaligned, registries, spec);
  }
  return Resolve(spec, registries);
}

SweepPlan MakePlan(const SweepSpec& spec, const Registries& registries) {
  const SweepSpec single = WithVariants(spec, registries.agents);
  return PlanBuilder(single, registries).Make();
}

std::string Identity(const SweepPlan& plan, const PlannedRun& run, const RunSpec& resolved,
                     const PretrainerRegistry& pretrainers, std::string_view version,
                     std::string_view commit) {
  Json json{{"env", resolved.env},
            {"env_settings", resolved.env_settings},
            {"agent", resolved.agent},
            {"agent_settings", resolved.agent_settings}};
  json.update(ToJsonValue<Json>(resolved));
  json.erase("init");  // the branch says it, also before there is a file
  if (resolved.library.empty()) json.erase("library");
  if (const SweepBranch* branch = plan.FindBranch(plan.methods[run.method].init)) {
    Json settings = Json::array();
    for (const ConfigField& field : pretrainers.Find(branch->kind).options(branch->Options())) {
      settings.push_back(field.key + "=" + field.value);
    }
    json["branch"] = {{"kind", branch->kind},
                      {"settings", settings},
                      {"seed", branch->SeedFor(run.seed)},
                      {"source", ToJsonValue<Json>(*plan.source)}};
  }
  json["version"] = version;
  json["commit"] = commit;
  return Hex(StableHash(json.dump()));
}

std::string ToJson(const SweepPlan& plan) {
  Json json{{"format", "msrl-sweep"}, {"format_version", kFormatVersion}};
  json.update(ToJsonValue<Json>(plan));
  json["runs"] = Json::array();
  for (const PlannedRun& run : plan.runs) {
    Json object{{"path", run.path},
                {"env", plan.envs[run.env].name},
                {"method", plan.methods[run.method].name},
                {"seed", run.seed},
                {"identity", run.identity}};
    if (!run.branch.empty()) object["branch"] = run.branch;
    json["runs"].push_back(std::move(object));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

SweepPlan PlanFromJson(std::string_view text, std::string_view source) {
  const auto require = [source](bool good, const auto&... what) {
    if (!good) throw UserError(StrCat(source, " is damaged: ", what...));
  };
  return Strictly<Json>(source, [&] {
    auto json = ParseJson<Json>(text, source, kPlanLimits);
    RequireFormat(json, "msrl-sweep", kFormatVersion, "a sweep's", source);
    // from before there were kinds
    for (Json& branch : json.at("branches")) {
      if (branch.is_object() && !branch.contains("kind")) {
        branch["kind"] = ValueBranch::kKind;
      }
    }
    // from before runs could start with a library
    for (Json& method : json.at("methods")) {
      if (method.is_object()) method.emplace("library", "");
    }
    // from before there were lists in settings
    for (Json& method : json.at("methods")) {
      if (!method.is_object()) continue;
      method.emplace("variant_of", "");
      method.emplace("varied", Json::array());
    }
    // from before there were several behaviours
    if (json.contains("source") && json["source"].is_object()) {
      json["source"].emplace("behaviour", SweepSource{}.behaviour);
    }
    SweepPlan plan;
    FromJsonValue(json, plan);
    for (SweepEnv& env : plan.envs) {
      // what 0 once left to the runs
      if (env.eval_every == 0) env.eval_every = std::max<std::int64_t>(1, env.steps / 100);
    }
    require(plan.few_shot > 0.0 && plan.few_shot <= 1.0, "few_shot is not in (0, 1]");
    const auto require_names = [&](const auto& items) {
      std::set<std::string> seen;
      for (const auto& item : items) {
        const std::string& name = item.name;
        require(!name.empty() && name[0] != '.' && name.find('/') == std::string::npos, "name '",
                name, "'");
        require(seen.insert(name).second, "'", name, "' is listed twice");
      }
    };
    require_names(plan.branches);
    require_names(plan.envs);
    require_names(plan.methods);
    for (const SweepBranch& branch : plan.branches) {
      require(!branch.seeds.empty(), "branch without seeds");
    }
    for (const SweepMethod& method : plan.methods) {
      const auto& roles = MethodRoles();
      require(std::ranges::find(roles, method.role) != roles.end(), "the method '", method.name,
              "' has the unknown role '", method.role, "'");
      require(method.init.empty() || plan.FindBranch(method.init), "no '", method.init, "'");
      require(method.library.empty() || IsHash(method.library), "library '", method.library, "'");
    }
    const auto index = [&](const auto& items, const std::string& name) {
      const auto* found = ByName(items, name);
      require(found != nullptr, "no '", name, "'");
      return static_cast<std::size_t>(found - items.data());
    };
    std::set<std::string> paths;
    for (const Json& object : json.at("runs")) {
      const std::size_t env = index(plan.envs, object.at("env").get<std::string>());
      const std::size_t method = index(plan.methods, object.at("method").get<std::string>());
      require(object.at("seed").is_number_unsigned(), "seed ", object.at("seed").dump());
      PlannedRun run = RunOf(plan, env, method, object.at("seed").get<std::uint64_t>());
      object.at("identity").get_to(run.identity);
      require(paths.insert(run.path).second, "the run ", run.path, " is listed twice");
      plan.runs.push_back(std::move(run));
    }
    return plan;
  });
}

void RequireGrown(const SweepPlan& old, const SweepPlan& grown, std::string_view directory) {
  const auto fail = [directory](const std::string& what) {
    throw UserError(
        StrCat(directory, " holds another sweep: ", what,
               "; a sweep can gain what it lacks, not lose or change what it has: put it "
               "back, or choose another --out"));
  };
  if (old.name != grown.name) {
    fail(StrCat("it is called '", old.name, "' there, '", grown.name, "' in the file"));
  }
  if (old.log_every != grown.log_every) fail("log_every differs");
  const auto compare = [&](const auto& before, const auto& after, const char* kind) {
    for (const auto& item : before) {
      const auto* other = ByName(after, item.name);
      if (other == nullptr) fail(StrCat(kind, " '", item.name, "' is not in the file"));
      RequireSame(item, *other, kind, fail);
    }
  };
  if (old.source && grown.source) RequireSame(*old.source, *grown.source, "source", fail);
  compare(old.branches, grown.branches, "branch");
  compare(old.envs, grown.envs, "environment");
  compare(old.methods, grown.methods, "method");
  std::set<std::string> paths;
  for (const PlannedRun& run : grown.runs) paths.insert(run.path);
  for (const PlannedRun& run : old.runs) {
    if (!paths.contains(run.path)) fail(StrCat("run ", run.path, " is not in the file"));
  }
}

std::string LibraryPath(std::string_view hash) {
  return StrCat("source/library-", hash, ".safetensors");
}

std::vector<SweepTask> TasksOf(const SweepPlan& plan) {
  std::vector<SweepTask> tasks;
  std::map<std::string, std::size_t> made;
  const auto add = [&](SweepTask task) {
    made[task.path] = tasks.size();
    tasks.push_back(std::move(task));
  };
  if (plan.source) {
    add({SweepTask::Kind::kData, kTrainData, {}, 0, 0});
    add({SweepTask::Kind::kData, kHeldOutData, {}, 0, 0});
  }
  // only those that a run starts from: three seeds need no fourth branch
  std::set<std::string> wanted;
  for (const PlannedRun& run : plan.runs) wanted.insert(run.branch);
  for (std::size_t b = 0; b < plan.branches.size(); ++b) {
    for (const std::uint64_t seed : plan.branches[b].seeds) {
      const std::string path = plan.branches[b].Path(seed);
      if (wanted.contains(path)) add({SweepTask::Kind::kBranch, path, {0, 1}, b, seed});
    }
  }
  for (std::size_t r = 0; r < plan.runs.size(); ++r) {
    const PlannedRun& run = plan.runs[r];
    SweepTask task{SweepTask::Kind::kRun, run.path, {}, r, run.seed};
    if (!run.branch.empty()) task.needs.push_back(made.at(run.branch));
    add(std::move(task));
  }
  return tasks;
}

}  // namespace msrl
