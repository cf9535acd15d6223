#include "msrl/report/exhibits.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "msrl/agents/msrl/obstruction_proxy.h"
#include "msrl/core/check.h"
#include "msrl/core/parse.h"
#include "msrl/core/statistics.h"
#include "msrl/memory/segment_library.h"
#include "msrl/run/runner.h"

namespace msrl::report {
namespace {

constexpr std::size_t kMostPrefixes = 60;
constexpr std::size_t kMostSegments = 200;
constexpr std::size_t kMostRocPoints = 200;
constexpr int kCalibrationBins = 10;

// "x position_x" instead of "x[0]": what the slot means.
std::vector<std::string> RowLabels(const Lift& lift) {
  std::vector<std::string> labels = lift.Labels();
  const std::vector<GeometrySlot>& slots = lift.spec().slots;
  for (const LiftBlock& block : lift.blocks()) {
    if (block.role != BlockRole::kGeometry || block.size != std::ssize(slots)) continue;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      labels[static_cast<std::size_t>(block.offset) + i] = StrCat(block.name, " ", slots[i].name);
    }
  }
  return labels;
}

// At most so many, the first and the last among them.
template <typename T>
std::vector<T> Spread(std::vector<T> all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<T> chosen;
  for (std::size_t i = 0; i < most; ++i) {
    chosen.push_back(std::move(all[i * (all.size() - 1) / (most - 1)]));
  }
  return chosen;
}

MatrixExhibit PlayEpisode(const RunDirectory& directory, const Registries& registries) {
  const RunSpec& spec = directory.spec();
  const std::unique_ptr<Agent> agent = LoadAgent(directory, registries, [](const std::string&) {});
  BatchEnv env = MakeEnvs(spec, registries, 1);
  const Lift::Ptr lift = CompactLift(agent->lift_kind());

  MatrixExhibit exhibit;
  for (const LiftBlock& block : lift->blocks()) {
    exhibit.blocks.emplace_back(block.name, static_cast<int>(block.size));
  }
  exhibit.labels = RowLabels(*lift);
  PlayEpisodes(
      *agent, env, {.seed = spec.seed, .name = "exhibit"}, [&](int, const PlayedStep& step) {
        const SegmentMatrix& z = step.experience.after.matrix;
        MatrixPrefix prefix{
            step.tracker.steps(), step.experience.reward, step.tracker.episode_return(), {}};
        for (Index row = 0; row < lift->m(); ++row) {
          for (Index column = row; column < lift->m(); ++column) {
            prefix.packed.push_back(z(row, column));
          }
        }
        exhibit.prefixes.push_back(std::move(prefix));
      });
  exhibit.prefixes = Spread(std::move(exhibit.prefixes), kMostPrefixes);
  return exhibit;
}

LibraryExhibit ShowLibrary(const Archive& state) {
  const SegmentLibrary library = SegmentLibrary::FromState(state);
  LibraryExhibit exhibit{.size = library.size(), .capacity = library.config().capacity};
  std::vector<std::int64_t> slots(static_cast<std::size_t>(library.size()));
  std::iota(slots.begin(), slots.end(), 0);
  std::ranges::stable_sort(slots, std::greater<>(),
                           [&library](std::int64_t slot) { return library.uses(slot); });
  slots.resize(std::min(slots.size(), kMostSegments));
  const auto list = [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  };
  for (const std::int64_t slot : slots) {
    exhibit.segments.push_back({slot, library.uses(slot), library.length(slot),
                                library.reward_sum(slot), list(library.head_action(slot)),
                                list(library.context(slot)), list(library.tail_geometry(slot)),
                                library.terminated(slot)});
  }
  return exhibit;
}

std::optional<double> SettingNumber(const RunSpec& spec, std::string_view key) {
  for (const std::string& setting : spec.agent_settings) {
    const auto [name, text] = SplitOnce(setting, '=');
    if (name == key) return ParseNumber<double>(text);
  }
  return std::nullopt;
}

// Empty while nothing was judged.
std::optional<ObstructionExhibit> ShowObstruction(const Archive& state, const RunSpec& spec) {
  constexpr auto kWindow = static_cast<std::size_t>(ObstructionProxy::kWindow);
  std::vector<double> probability(kWindow);
  std::vector<std::uint8_t> obstructed(kWindow);
  std::size_t judged = 0;
  state.Int("judged", judged, 0, ObstructionProxy::kWindow);
  state.Array("judged_probability", probability);
  state.Array("judged_obstructed", obstructed);
  probability.resize(judged);
  obstructed.resize(judged);
  if (judged == 0) return std::nullopt;
  for (std::size_t i = 0; i < judged; ++i) {
    if (!(probability[i] >= 0.0 && probability[i] <= 1.0) || obstructed[i] > 1) {
      state.Fail("judged_probability", "holds something that is no probability");
    }
  }
  ObstructionExhibit exhibit = MakeObstructionExhibit(probability, obstructed);
  exhibit.threshold = SettingNumber(spec, "obstruction_threshold");
  return exhibit;
}

// Role transfer if there is any such method, otherwise whatever adds to another agent.
std::vector<const RunScore*> Candidates(const Analysis& analysis, const AgentRegistry& agents,
                                        int task) {
  const bool has_transfer = analysis.HasRole("transfer");
  std::vector<const RunScore*> candidates;
  for (const RunScore& score : analysis.scores) {
    const SweepMethod& facts = analysis.Method(score.method);
    const bool wanted =
        has_transfer ? facts.role == "transfer" : !agents.FactsOf(facts.agent).over.empty();
    if (score.task == task && wanted && score.run->finished()) candidates.push_back(&score);
  }
  std::ranges::stable_sort(candidates, {}, [](const RunScore* score) {
    return std::pair(score->method, score->seed());
  });
  return candidates;
}

void ShowRun(const RunRecords& records, const RunScore& score, const Registries& registries,
             Exhibits& exhibits) {
  const RunDirectory directory = RunDirectory::OpenForReading(records.folder / score.run->path);
  const std::optional<TensorFile> checkpoint =
      directory.ReadNewestCheckpoint([](const std::string&) {});
  if (!checkpoint) throw UserError("no checkpoint");
  exhibits.matrices.push_back(PlayEpisode(directory, registries));
  exhibits.matrices.back().of = &score;
  const Archive agent = Archive(*checkpoint).Child("agent");
  if (const Archive library = agent.Child("library"); library.Has("capacity")) {
    exhibits.libraries.push_back(ShowLibrary(library));
    exhibits.libraries.back().of = &score;
  }
  if (const Archive proxy = agent.Child("proxy"); proxy.Has("judged")) {
    if (auto exhibit = ShowObstruction(proxy, directory.spec())) {
      exhibit->of = &score;
      exhibits.obstructions.push_back(std::move(*exhibit));
    }
  }
}

}  // namespace

ObstructionExhibit MakeObstructionExhibit(const std::vector<double>& probability,
                                          const std::vector<std::uint8_t>& obstructed) {
  ObstructionExhibit exhibit;
  exhibit.ece = ExpectedCalibrationError(probability, obstructed, kCalibrationBins);
  exhibit.brier = BrierScore(probability, obstructed);
  std::vector<double> positives, negatives;
  std::vector<CalibrationBin> bins(kCalibrationBins);
  for (std::size_t i = 0; i < probability.size(); ++i) {
    (obstructed[i] == 1 ? positives : negatives).push_back(probability[i]);
    const int bin =
        std::min(kCalibrationBins - 1, static_cast<int>(probability[i] * kCalibrationBins));
    CalibrationBin& entry = bins[static_cast<std::size_t>(bin)];
    entry.predicted += probability[i];
    entry.observed += obstructed[i];
    ++entry.n;
  }
  exhibit.base_rate =
      static_cast<double>(positives.size()) / static_cast<double>(probability.size());
  for (const CalibrationBin& bin : bins) {
    if (bin.n == 0) continue;
    exhibit.calibration.push_back({bin.predicted / bin.n, bin.observed / bin.n, bin.n});
  }
  if (positives.empty() || negatives.empty()) return exhibit;
  exhibit.auroc = Auroc(positives, negatives);
  // one point per distinct probability, from the highest threshold down
  std::sort(positives.begin(), positives.end(), std::greater<>());
  std::sort(negatives.begin(), negatives.end(), std::greater<>());
  std::vector<std::pair<double, double>> roc{{0.0, 0.0}};
  std::size_t p = 0, n = 0;
  while (p < positives.size() || n < negatives.size()) {
    const double next = std::max(p < positives.size() ? positives[p] : -1.0,
                                 n < negatives.size() ? negatives[n] : -1.0);
    while (p < positives.size() && positives[p] == next) ++p;
    while (n < negatives.size() && negatives[n] == next) ++n;
    roc.emplace_back(static_cast<double>(n) / static_cast<double>(negatives.size()),
                     static_cast<double>(p) / static_cast<double>(positives.size()));
  }
  exhibit.roc = Spread(std::move(roc), kMostRocPoints);
  return exhibit;
}

std::string ShowFirstOf(const std::vector<const RunScore*>& candidates,
                        const std::function<void(const RunScore&)>& show) {
  std::string problem;
  for (const RunScore* score : candidates) {
    try {
      show(*score);
      return "";
    } catch (const std::exception& error) {
      if (problem.empty()) problem = StrCat(score->run->path, ": ", error.what());
    }
  }
  return problem;
}

Exhibits CollectExhibits(const RunRecords& records, const Analysis& analysis,
                         const Registries& registries) {
  Exhibits exhibits;
  for (int task = 0; task < std::ssize(analysis.tasks); ++task) {
    const std::string problem =
        ShowFirstOf(Candidates(analysis, registries.agents, task), [&](const RunScore& score) {
          Exhibits more = exhibits;
          ShowRun(records, score, registries, more);
          exhibits = std::move(more);  // all or nothing of a run
        });
    if (!problem.empty()) {
      exhibits.problems.push_back(
          {analysis.TaskName(task), StrCat("no run to look into, the first is ", problem)});
    }
  }
  return exhibits;
}

}  // namespace msrl::report
