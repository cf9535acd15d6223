#include "msrl/testing/synthetic_runs.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "msrl/builtin/builtin.h"
#include "msrl/core/check.h"
#include "msrl/env_list/env_list.h"
#include "msrl/paper/figures.h"
#include "msrl/run/run_directory.h"
#include "msrl/run/run_spec.h"
#include "msrl/sweep/plan.h"

namespace msrl::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void Write(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  MSRL_CHECK(out.good(), path.string());
}

// Making an environment and an agent for each of many runs would take longer than all the rest.
Json RunFile(const std::string& env, const std::string& agent) {
  static std::map<std::pair<std::string, std::string>, Json> made;
  const auto [place, added] = made.try_emplace({env, agent});
  if (added) {
    const Registries registries = BuiltinRegistries();
    RunSpec spec;
    spec.env = env;
    spec.agent = agent;
    spec.steps = 1000;
    place->second = Json::parse(ToJson(Resolve(spec, registries), registries));
  }
  return place->second;
}

}  // namespace

void WriteSyntheticRun(const fs::path& folder, const SyntheticRun& run) {
  fs::create_directories(folder);
  Json json = RunFile(run.env, run.agent);
  json["seed"] = run.seed;
  json["steps"] = run.steps;
  json["eval_every"] = run.eval_every;
  json["eval_episodes"] = run.eval_episodes;
  json["init"] = "";
  if (!run.init.empty()) {
    json["init"] = ContentsHash(run.init);
    Write(folder / "init.safetensors", run.init);
  } else if (run.predictor) {
    json["init"] = "0123456789abcdef";  // the file is gone
  }
  Write(folder / "run.json", json.dump(2) + "\n");

  const std::int64_t stop = run.stop < 0 ? run.steps : run.stop;
  Write(folder / "status.json",
        Json{{"state", run.state}, {"step", stop}, {"steps", run.steps}, {"process", 1}}.dump(2));

  std::string evals;
  for (std::int64_t step = 0; step <= stop; step += run.eval_every) {
    const double mean = run.mean_return(step);
    Json line{{"step", step},
              {"episodes", run.eval_episodes},
              {"mean_return", mean},
              {"std_return", 0.0},
              {"mean_length", 50.0}};
    if (run.success_rate) line["success_rate"] = *run.success_rate;
    line["returns"] = std::vector<double>(static_cast<std::size_t>(run.eval_episodes), mean);
    line["lengths"] = std::vector<int>(static_cast<std::size_t>(run.eval_episodes), 50);
    evals += line.dump() + "\n";
  }
  Write(folder / "evals.jsonl", evals);

  std::string metrics, timing;
  timing += R"({"event":"start","step":0,"time":1.0,"host":"synthetic"})"
            "\n";
  for (int i = 1; i <= run.metric_lines; ++i) {
    const std::int64_t step = run.steps * i / run.metric_lines;
    Json line{{"step", step}, {"train/episodes", i}, {"train/return", -5.0 + 0.001 * i}};
    for (const char* name : {"critic/loss", "critic/q", "actor/loss", "actor/entropy",
                             "planner/futures", "planner/override", "planner/realized",
                             "obstruction/auroc", "obstruction/ece", "obstruction/loss"}) {
      line[name] = 0.123456789012345 * i;
    }
    if (run.predictor && i == 1) {
      line["transfer/predictor"] = *run.predictor;
      line["transfer/amplitude"] = 0.25;
    }
    metrics += line.dump() + "\n";
    timing +=
        Json{
            {"event", "speed"}, {"step", step}, {"seconds", 0.01 * i}, {"steps_per_second", 1000.0}}
            .dump() +
        "\n";
  }
  Write(folder / "metrics.jsonl", metrics);
  Write(folder / "timing.jsonl", timing);
}

void WriteSyntheticSweep(const fs::path& folder, const SyntheticSweep& sweep) {
  fs::create_directories(folder);
  SweepPlan plan;
  plan.name = sweep.name;
  plan.version = BuildVersion();
  plan.commit = BuildCommit();
  plan.command = "msrl sweep synthetic.toml";
  plan.seeds = sweep.seeds;
  for (const std::string& env : sweep.envs) {
    plan.envs.push_back({.name = env,
                         .id = env,
                         .family = PaperFamily(MakeEnv(env)->spec().family),
                         .steps = sweep.steps});
  }
  for (const SyntheticMethod& method : sweep.methods) {
    plan.methods.push_back({.name = method.name,
                            .title = method.title.empty() ? method.name : method.title,
                            .agent = method.agent,
                            .role = method.role,
                            .paper = method.paper,
                            .component = "branch",
                            .variant_of = method.variant_of,
                            .varied = method.varied});
  }
  for (std::size_t env = 0; env < plan.envs.size(); ++env) {
    for (std::size_t method = 0; method < plan.methods.size(); ++method) {
      for (const std::uint64_t seed : sweep.seeds) {
        plan.runs.push_back({StrCat(sweep.envs[env], "/", plan.methods[method].name, "/", seed),
                             env, method, seed, "", "0"});
      }
    }
  }
  Write(folder / "sweep.json", ToJson(plan));
}

}  // namespace msrl::report
