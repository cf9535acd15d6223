#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "msrl/agents/msrl/msrl.h"
#include "msrl/agents/msrl/transfer_predictor.h"
#include "msrl/cli/commands.h"
#include "msrl/cli/json_output.h"
#include "msrl/core/check.h"
#include "msrl/files/json_text.h"
#include "msrl/inspect/precise_critic.h"
#include "msrl/run/runner.h"

namespace msrl::cli {
namespace {

struct InspectOptions : OptionList {
  std::string& run = Required("DIR", "Directory of the run, or a file of msrl pretrain");
  int& episodes =
      Option("--episodes", "Episodes that are played (default 5)", 5, CLI::Range(1, 10'000));
  int& states =
      Option("--states", "States that are looked at (default 200)", 200, CLI::Range(2, 100'000));
  int& entries =
      Option("--entries", "Entries of W that are named (default 10)", 10, CLI::Range(0, 1000));
  std::uint64_t& seed = Option<std::uint64_t>("--seed", "Which episodes (default 0)", 0);
  bool& json = Flag("--json", "As JSON, with every figure");
};

Eigen::VectorXd AsVector(std::span<const double> values) {
  return Eigen::Map<const Eigen::VectorXd>(values.data(), std::ssize(values));
}

// Where the agent was, with Q of what it did there.
struct PlayedState {
  CriticValue q;
  SegmentMatrix z;
  SegmentMatrix increment;  // of the step that followed
};

CriticValue ValueOf(const PreciseCritic& critic, const Experience& seen) {
  const Action& action = seen.action;
  if (action.kind() == ActionKind::kDiscrete) {
    return {critic, seen.before.observation, action.index()};
  }
  return {critic, seen.before.observation, AsVector(action.values())};
}

// All steps of some episodes without learning, except the first of each: at Z = 0 there are no end
// points, and no derivative.
std::vector<PlayedState> PlayStates(Agent& agent, const PreciseCritic& critic, BatchEnv& env,
                                    const InspectOptions& options) {
  std::vector<PlayedState> states;
  PlayEpisodes(agent, env, {.episodes = options.episodes, .seed = options.seed, .name = "inspect"},
               [&](int, const PlayedStep& step) {
                 const Experience& seen = step.experience;
                 if (seen.before.step == 0) return;
                 SegmentMatrix increment(step.tracker.lift());
                 increment.AddStep(AsVector(seen.psi));
                 states.push_back({ValueOf(critic, seen), seen.before.matrix, increment});
               });
  return states;
}

// At most `most`, spread evenly.
std::vector<PlayedState> Spread(const std::vector<PlayedState>& states, int most) {
  const std::size_t count = std::min(states.size(), static_cast<std::size_t>(most));
  std::vector<PlayedState> chosen;
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(states[i * states.size() / count]);
  return chosen;
}

// What the run wrote down last of these groups of metrics.
std::map<std::string, double> LastMetrics(const std::filesystem::path& file) {
  std::map<std::string, double> last;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    // a run that is going on may be writing its last line
    const auto json = TryParseJson<Json>(line);
    if (!json || !json->is_object()) break;
    for (const auto& [name, value] : json->items()) {
      const bool wanted = name.starts_with("planner/") || name.starts_with("obstruction/") ||
                          name.starts_with("transfer/");
      if (wanted && value.is_number()) last[name] = value.get<double>();
    }
  }
  return last;
}

// How often the segments of a library were used.
struct LibraryUse {
  std::int64_t uses = 0;       // of the segments that are kept
  std::int64_t used = 0;       // segments that were used at all
  std::int64_t most_used = 0;  // times
  std::int64_t ends = 0;       // segments after which nothing can follow
};

LibraryUse UseOf(const SegmentLibrary& library) {
  LibraryUse use;
  for (std::int64_t slot = 0; slot < library.size(); ++slot) {
    use.uses += library.uses(slot);
    use.used += library.uses(slot) > 0 ? 1 : 0;
    use.most_used = std::max(use.most_used, library.uses(slot));
    use.ends += library.terminated(slot) ? 1 : 0;
  }
  return use;
}

// Everything that is printed.
struct Inspection {
  std::string agent, env;
  std::int64_t steps = 0;  // of training
  int played = 0;          // states that there were to choose from
  Lift::Ptr lift;
  double mean_q = 0.0, mean_f = 0.0;
  std::vector<GradientBlock> blocks;
  std::vector<GradientEntry> entries;
  ValueTheoryReport theory;
  TransferPredictor predictor;       // of the branch as it is now, over the replay
  const Planner* planner = nullptr;  // null: no library
  std::map<std::string, double> metrics;

  bool filters() const { return planner != nullptr && planner->filters(); }
};

// What a file of `msrl pretrain` says about itself.
void PrintArtefact(const Artefact& artefact, bool as_json) {
  const ArtefactHeader& header = artefact.header();
  if (as_json) {
    Json json{{"kind", header.kind},           {"lift", header.lift.ToString()},
              {"lift_kind", header.lift_kind}, {"parameters", artefact.parameter_count()},
              {"shape", header.shape},         {"made", header.made}};
    json["tensors"] = Json::object();
    for (const TensorInfo& tensor : artefact.tensors().tensors()) {
      json["tensors"][tensor.name] = tensor.shape;
    }
    return PrintJson(json);
  }
  fmt::print("{}: artefact of kind {}, {} parameters, lift {} ({})\n", artefact.source(),
             header.kind, artefact.parameter_count(), header.lift.ToString(), header.lift_kind);
  for (const auto& [key, text] : header.shape) fmt::print("  {:<16} {}\n", key, text);
  fmt::print("made by\n");
  for (const auto& [key, text] : header.made) fmt::print("  {:<16} {}\n", key, text);
}

const Msrl& RequireMatrixCritic(const Agent& agent, const RunDirectory& directory) {
  const auto* msrl = dynamic_cast<const Msrl*>(&agent);
  if (msrl == nullptr || !msrl->base().critic().has_branch()) {
    throw UserError(StrCat(directory.path().string(), ": the critic of '", directory.spec().agent,
                           "' does not see the matrix; inspect needs an agent with matrix=true"));
  }
  return *msrl;
}

void StudyCritic(const PreciseCritic& critic, const std::vector<PlayedState>& states,
                 int most_entries, Inspection& inspection) {
  std::vector<const MatrixValue*> values;
  std::vector<SegmentMatrix> prefixes, increments, gradients;
  const auto n = static_cast<double>(states.size());
  for (const PlayedState& state : states) {
    values.push_back(&state.q);
    prefixes.push_back(state.z);
    increments.push_back(state.increment);
    gradients.push_back(state.q.Gradient(state.z));
    inspection.mean_q += state.q.Value(state.z) / n;
    inspection.mean_f += critic.F(state.z) / n;
  }
  inspection.lift = critic.features().lift();
  inspection.blocks = GradientBlocks(gradients);
  inspection.entries = LargestEntries(gradients, most_entries);
  inspection.theory = StudyValues(values, prefixes, increments);
}

void PrintBlocks(const Inspection& inspection) {
  fmt::print("\nlocal gradient W = dQ/dZ, mean norm {:.4g}\n", inspection.theory.gradient_norm);
  fmt::print("  norm of its blocks (root mean square over states) and their share of |W|^2\n");
  std::vector<GradientBlock> blocks = inspection.blocks;
  std::ranges::stable_sort(blocks, std::greater<>(), &GradientBlock::share);
  for (const GradientBlock& block : blocks) {
    if (block.norm == 0.0) continue;
    fmt::print("    {:<8} {:>9.4g} {:>6.1f} %\n", block.rows + "*" + block.columns, block.norm,
               100.0 * block.share);
  }
  fmt::print(
      "  largest entries: derivative with respect to Z_ij, mean, root mean square, share of "
      "states above zero\n");
  for (const GradientEntry& entry : inspection.entries) {
    fmt::print("    {:<12} {:>10.4g} {:>9.4g} {:>4.0f} %\n", entry.name, entry.mean, entry.rms,
               100.0 * entry.positive);
  }
  std::vector<std::string> slots;
  for (const GeometrySlot& slot : inspection.lift->spec().slots) {
    slots.push_back(fmt::format("{} {}", slots.size(), slot.name));
  }
  fmt::print("    (x and dx: {})\n", fmt::join(slots, ", "));
}

void PrintTheory(const ValueTheoryReport& theory) {
  fmt::print("\nerrors of linear rules, H = psi psi^T of the step taken, medians of {} states\n",
             theory.states);
  fmt::print("  {:>10} {:>12} {:>12}\n", "factor e", "first order", "additivity");
  for (std::size_t k = 0; k < theory.factors.size(); ++k) {
    fmt::print("  {:>10.4g} {:>12.3g} {:>12.3g}\n", theory.factors[k],
               theory.first_order.median_errors[k], theory.additivity.median_errors[k]);
  }
  const auto slope = [](const ErrorSummary& error) {
    if (error.curves == 0) return fmt::format("exact in {} states", error.exact);
    return fmt::format("{:.2f} (tenth percentile {:.2f}, of {} states; exact in {})",
                       error.slope_median, error.slope_low, error.curves, error.exact);
  };
  fmt::print("  slope of the first-order error  {}\n", slope(theory.first_order));
  fmt::print("  slope of the additivity error   {}\n", slope(theory.additivity));
  fmt::print("    (the theorem wants more than 1: errors vanish faster than the increment)\n");
  fmt::print("  whole steps: sum of errors {:.1f} % of the change, sign right in {:.0f} %\n",
             100.0 * theory.first_order_relative_error, 100.0 * theory.sign_agreement);
  fmt::print(
      "\nvalue-null directions: steps span {} dimensions; all but {:.2g} % of their energy is "
      "invisible to Q\n  to first order; {:.1f} % of |W|^2 lies in the span\n",
      theory.increment_rank, 100.0 * (1.0 - theory.null_share),
      100.0 * theory.gradient_share_in_span);
}

void PrintMetric(const Inspection& inspection, const char* name, const char* what) {
  const auto found = inspection.metrics.find(name);
  if (found != inspection.metrics.end()) fmt::print("  {:<36} {:.4g}\n", what, found->second);
}

void PrintReuse(const Inspection& inspection) {
  if (inspection.planner != nullptr) {
    const SegmentLibrary& library = inspection.planner->library();
    const LibraryUse use = UseOf(library);
    fmt::print("\nlibrary: {} of {} segments ({}), {} offered; {} ends of episodes\n",
               library.size(), library.config().capacity, EnumName(library.config().policy),
               library.offered(), use.ends);
    fmt::print("  {:<36} {} times, {} of those kept; one {} times\n", "reused", use.uses, use.used,
               use.most_used);
    PrintMetric(inspection, "planner/futures", "futures per step, last logged");
    PrintMetric(inspection, "planner/override", "policy overruled, share");
    PrintMetric(inspection, "planner/realized", "futures that came true, share");
  } else {
    fmt::print("\nno library\n");
  }
  if (inspection.filters()) {
    const ObstructionProxy& proxy = inspection.planner->proxy();
    fmt::print("obstruction proxy: {}, {} updates, knows {} obstructed and {} realizable futures\n",
               proxy.ready() ? "ready" : "not ready yet", proxy.updates(), proxy.obstructed_count(),
               proxy.realizable_count());
    PrintMetric(inspection, "obstruction/auroc", "AUROC, last logged");
    PrintMetric(inspection, "obstruction/ece", "calibration error");
    PrintMetric(inspection, "obstruction/brier", "Brier score");
    PrintMetric(inspection, "obstruction/base_rate", "obstructed among judged, share");
    PrintMetric(inspection, "obstruction/removed", "futures removed, share");
  }
  fmt::print("transfer: correlation of F with progress towards the goal\n");
  PrintMetric(inspection, "transfer/predictor", "after the warm-up");
  PrintMetric(inspection, "transfer/amplitude", "after the warm-up, amplitude");
  fmt::print("  {:<36} {:.4g}\n", "of F as it is now, over the replay",
             inspection.predictor.correlation);
}

void PrintText(const Inspection& inspection, const InspectOptions& options) {
  fmt::print("{} in {} after {} steps: {} of {} states of {} episodes, seed {}\n", inspection.agent,
             inspection.env, inspection.steps, inspection.theory.states, inspection.played,
             options.episodes, options.seed);
  fmt::print("  Q(o, Z, a) = F(Z) + R: mean {:.4g} = {:.4g} + {:.4g}\n", inspection.mean_q,
             inspection.mean_f, inspection.mean_q - inspection.mean_f);
  PrintBlocks(inspection);
  PrintTheory(inspection.theory);
  PrintReuse(inspection);
}

Json ToJson(const Inspection& inspection, const InspectOptions& options) {
  const ValueTheoryReport& theory = inspection.theory;
  Json json{{"agent", inspection.agent},
            {"env", inspection.env},
            {"steps", inspection.steps},
            {"episodes", options.episodes},
            {"seed", options.seed},
            {"states", theory.states},
            {"states_played", inspection.played},
            {"mean_q", inspection.mean_q},
            {"mean_f", inspection.mean_f}};
  Json& gradient = json["gradient"];
  gradient["norm"] = theory.gradient_norm;
  gradient["blocks"] = Json::array();
  for (const GradientBlock& block : inspection.blocks) {
    gradient["blocks"].push_back({{"rows", block.rows},
                                  {"columns", block.columns},
                                  {"norm", block.norm},
                                  {"share", block.share}});
  }
  gradient["largest"] = Json::array();
  for (const GradientEntry& entry : inspection.entries) {
    gradient["largest"].push_back({{"name", entry.name},
                                   {"mean", entry.mean},
                                   {"rms", entry.rms},
                                   {"positive", entry.positive}});
  }
  const auto curve = [&theory](const ErrorSummary& error) {
    return Json{{"factors", theory.factors},    {"median_errors", error.median_errors},
                {"curves", error.curves},       {"slope_median", error.slope_median},
                {"slope_low", error.slope_low}, {"exact", error.exact}};
  };
  json["first_order"] = curve(theory.first_order);
  json["additivity"] = curve(theory.additivity);
  json["whole_steps"] = {{"relative_error", theory.first_order_relative_error},
                         {"sign_agreement", theory.sign_agreement}};
  json["null"] = {{"increment_rank", theory.increment_rank},
                  {"null_share", theory.null_share},
                  {"gradient_share_in_span", theory.gradient_share_in_span}};
  if (inspection.planner != nullptr) {
    const SegmentLibrary& library = inspection.planner->library();
    const LibraryUse use = UseOf(library);
    json["library"] = {{"size", library.size()},
                       {"capacity", library.config().capacity},
                       {"policy", EnumName(library.config().policy)},
                       {"offered", library.offered()},
                       {"uses", use.uses},
                       {"used", use.used},
                       {"most_used", use.most_used},
                       {"ends", use.ends}};
  }
  if (inspection.filters()) {
    const ObstructionProxy& proxy = inspection.planner->proxy();
    json["obstruction"] = {{"ready", proxy.ready()},
                           {"updates", proxy.updates()},
                           {"obstructed", proxy.obstructed_count()},
                           {"realizable", proxy.realizable_count()}};
  }
  json["predictor_now"] = {{"correlation", inspection.predictor.correlation},
                           {"amplitude", inspection.predictor.amplitude},
                           {"pairs", inspection.predictor.pairs}};
  json["last_metrics"] = inspection.metrics;
  return json;
}

void RunInspect(const InspectOptions& options, const Program& program) {
  if (std::filesystem::is_regular_file(options.run)) {
    return PrintArtefact(Artefact::Read(options.run), options.json);
  }
  const RunDirectory directory = RunDirectory::OpenForReading(options.run);
  const RunSpec& spec = directory.spec();
  const std::unique_ptr<Agent> agent = LoadAgent(directory, program.registries, program.warn);
  const Msrl& msrl = RequireMatrixCritic(*agent, directory);
  const Critic& critic = msrl.base().critic();
  const PreciseCritic precise(critic);
  BatchEnv env = MakeEnvs(spec, program.registries, 1);
  const std::vector<PlayedState> played = PlayStates(*agent, precise, env, options);
  const std::vector<PlayedState> states = Spread(played, options.states);
  if (states.size() < 2) {
    throw UserError(StrCat(options.run, ": ", options.episodes,
                           " episodes have no two states after their first steps; ask for more "
                           "with --episodes"));
  }
  Inspection inspection;
  inspection.agent = spec.agent;
  inspection.env = spec.env;
  inspection.steps = msrl.base().memory().steps();
  inspection.played = static_cast<int>(played.size());
  StudyCritic(precise, states, options.entries, inspection);
  inspection.predictor = PredictTransfer(critic.branch(), msrl.base().memory().replay());
  if (msrl.planner()) inspection.planner = &*msrl.planner();
  inspection.metrics = LastMetrics(directory.path() / "metrics.jsonl");
  if (options.json) return PrintJson(ToJson(inspection, options));
  PrintText(inspection, options);
}

}  // namespace

void AddInspect(CLI::App& app, const Program& program) {
  CLI::App* command = AddCommand(
      app, program, "inspect",
      "What the critic of a run makes of matrices, and what its library is good for", RunInspect);
  command->footer(
      "Plays episodes with the newest checkpoint and looks at Q(o, Z, a) in the states that come\n"
      "up: docs/value-theory.md.");
}

}  // namespace msrl::cli
