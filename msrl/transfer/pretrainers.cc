// The list of all pretrainers.
#include "msrl/transfer/dbc_pretrainer.h"
#include "msrl/transfer/dreamer_pretrainer.h"
#include "msrl/transfer/goal_reading_pretrainer.h"
#include "msrl/transfer/pretrainer.h"
#include "msrl/transfer/sf_gpi_pretrainer.h"
#include "msrl/transfer/tdmpc_pretrainer.h"
#include "msrl/transfer/traj2value_pretrainer.h"
#include "msrl/transfer/uvfa_pretrainer.h"
#include "msrl/transfer/value_branch_pretrainer.h"

namespace msrl {

const PretrainerRegistry& BuiltinPretrainers() {
  static const PretrainerRegistry pretrainers({
      MakePretrainerEntry<ValueBranchPretrainer>(
          "value-branch", "The matrix-value branch: F(Z), the value of a prefix by its matrix"),
      MakePretrainerEntry<GoalReadingPretrainer>(
          "goal-reading", "Where a hidden goal is, told from what Z says was rewarded"),
      MakePretrainerEntry<TdMpcPretrainer>(kLatentModelKind,
                                           "TD-MPC2's latent model over what all tasks share"),
      MakePretrainerEntry<DreamerPretrainer>(kWorldModelKind,
                                             "DreamerV3's world model over what all tasks share"),
      MakePretrainerEntry<SfGpiPretrainer>(
          "sf-gpi", "Successor features of the sources' policies (baseline)"),
      MakePretrainerEntry<UvfaPretrainer>("uvfa", "A value of state and goal (baseline)"),
      MakePretrainerEntry<Traj2ValueRnnPretrainer>(
          "traj2value-rnn", "A value of the last steps, read by a GRU (baseline)"),
      MakePretrainerEntry<Traj2ValueTransformerPretrainer>(
          "traj2value-transformer", "A value of the last steps, read by a transformer (baseline)"),
      MakePretrainerEntry<SubgraphGnnPretrainer>(
          "subgraph-gnn", "A value of the graph of the last states (baseline)"),
      MakePretrainerEntry<DbcPretrainer>("dbc", "A bisimulation metric and a value (baseline)"),
  });
  return pretrainers;
}

}  // namespace msrl
