// The list of all pretrainers.
#include "msrl/core/check.h"
#include "msrl/core/text.h"
#include "msrl/transfer/goal_reading_pretrainer.h"
#include "msrl/transfer/pretrainer.h"
#include "msrl/transfer/value_branch_pretrainer.h"

namespace msrl {

const std::vector<PretrainerEntry>& Pretrainers() {
  static const std::vector<PretrainerEntry> pretrainers{
      MakePretrainerEntry<ValueBranchPretrainer>(
          "value-branch", "The matrix-value branch: F(Z), the value of a prefix by its matrix"),
      MakePretrainerEntry<GoalReadingPretrainer>(
          "goal-reading", "Where a hidden goal is, told from what Z says was rewarded"),
  };
  return pretrainers;
}

const PretrainerEntry& FindPretrainer(std::string_view kind) {
  std::vector<std::string> known;
  for (const PretrainerEntry& entry : Pretrainers()) {
    if (entry.kind == kind) return entry;
    known.push_back(entry.kind);
  }
  throw UserError(StrCat("unknown kind of pretraining '", kind, "'", DidYouMean(kind, known),
                         " (see pretrain --list)"));
}

}  // namespace msrl
