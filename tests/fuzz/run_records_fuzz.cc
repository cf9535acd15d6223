// Damaged records of a run or a sweep are refused, or make records that can be worked with.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/report/run_records.h"
#include "msrl/report/statistics.h"

namespace {

void Require(bool good) {
  if (!good) std::abort();
}

void ReadEvaluations(std::string_view text, bool finished) {
  msrl::RunSpec spec;
  spec.steps = 200;
  spec.eval_every = 100;
  spec.eval_episodes = 1;
  const auto evaluations = msrl::report::ParseEvaluations(text, spec, finished, "input");
  std::vector<msrl::report::CurvePoint> curve;
  for (const auto& evaluation : evaluations) {
    Require(std::isfinite(evaluation.mean_return));
    curve.push_back({evaluation.step, evaluation.mean_return});
  }
  if (finished) Require(curve.size() >= 3 && curve.back().step == 200);
  const auto area = msrl::report::MeanOverWindow(curve, 50.0);
  if (finished) Require(area.has_value());
}

}  // namespace

// The first byte says which file the rest is.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 8) {
      case 0: {
        const auto facts = msrl::report::ParseRunFile(text, "input");
        Require(facts.spec.eval_every >= 1);
        break;
      }
      case 1:
        msrl::report::ParseStatus(text, "input");
        break;
      case 2:
        ReadEvaluations(text, true);
        break;
      case 3:
        ReadEvaluations(text, false);
        break;
      case 4:
        Require(std::isfinite(msrl::report::ParseTiming(text, "input").seconds));
        break;
      case 5:
        msrl::report::ParseTransferFigures(text, "input");
        msrl::report::ParseSimulatorSteps(text, "input");
        break;
      case 6: {
        for (const auto& run : msrl::PlanFromJson(text, "input").runs) {
          for (const auto& part : std::filesystem::path(run.path)) Require(part != "..");
        }
        break;
      }
      default:
        msrl::report::ParseBranchRecord(text, "input");
        break;
    }
  } catch (const msrl::UserError&) {
    // refused: fine
  }
  return 0;
}
