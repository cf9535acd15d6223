// Prefixes of episodes as examples for networks: features of Z and the value of the state it leads
// to, in pairs of one episode.
#ifndef MSRL_TRANSFER_PREFIX_SET_H_
#define MSRL_TRANSFER_PREFIX_SET_H_

#include <Eigen/Core>
#include <cstdint>
#include <string>
#include <vector>

#include "msrl/datasets/episode_file.h"
#include "msrl/transfer/value_target.h"
#include "msrl/value/matrix_features.h"

namespace msrl {

// What the features are made of.
enum class PrefixView {
  kMatrix,     // Z, aligned
  kUnaligned,  // Z of permuted, sign-flipped slots and permuted actions: another lift
  kLastState,  // the geometry of the last state in the place of xT, all else zero: no matrix
};

// Inputs that no agent has, to measure what a matrix cannot show.
enum class Oracle {
  kNone,
  kInstance,     // reward rule, scale, dead slots, horizon, family and behaviour
  kObservation,  // the environment's own observation of the last state
  kBoth,
};
constexpr auto EnumNames(Oracle) { return Names("none", "instance", "observation", "both"); }

struct PrefixSetOptions {
  LiftKind lift = LiftKind::kCompact;  // what Z is made of; not kFull
  MatrixFeatureOptions features;
  PrefixView view = PrefixView::kMatrix;
  Oracle oracle = Oracle::kNone;
  bool identity = false;  // tells the family: an input for each, 1 for its own
  ValueTarget target = ValueTarget::kExpert;
  int pairs_per_episode = 16;
  int max_gap = 26;            // of the two prefixes of a pair, in steps
  double gap_one_share = 0.5;  // share of pairs of neighbours
  int min_steps = 0;           // of the shorter prefix; shorter episodes are left out
  double segments = 0.0;       // share of pairs whose matrix begins at a random step of the episode
  std::uint64_t seed = 0;
};

// Column or entry 2k and 2k+1 belong to pair k; the first is the shorter prefix.
struct PrefixSet {
  Eigen::MatrixXf features;
  std::vector<float> value;
  std::vector<float> episode_mean;      // of the values of the whole episode
  std::vector<float> episode_variance;  // of the same
  std::vector<std::int32_t> episode;
  std::vector<std::int32_t> time;    // of the state that the matrix leads to, in its episode
  std::vector<std::int32_t> steps;   // T; equals the time unless the matrix begins later
  std::vector<std::int32_t> source;  // index into `sources`
  std::vector<std::string> sources;
  // Rows of `features`: those of the matrix, then the family, then the oracle's.
  int matrix_features = 0;
  int identity_features = 0;

  std::int64_t pairs() const { return static_cast<std::int64_t>(value.size() / 2); }
};

// UserError if the episodes lack the target or have another lift.
PrefixSet MakePrefixSet(const EpisodeFile& file, const PrefixSetOptions& options);

// The lift of the unaligned control: same sizes, slots moved by four; another id.
Lift::Ptr UnalignedLift(LiftKind kind = LiftKind::kCompact);

}  // namespace msrl

#endif  // MSRL_TRANSFER_PREFIX_SET_H_
