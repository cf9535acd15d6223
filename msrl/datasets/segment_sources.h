// Where segments of a library come from: pieces of recorded episodes, all of them or those that
// recur. (An agent adds its own steps as it takes them.)
#ifndef MSRL_DATASETS_SEGMENT_SOURCES_H_
#define MSRL_DATASETS_SEGMENT_SOURCES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "msrl/core/rng.h"
#include "msrl/core/segment.h"
#include "msrl/datasets/episode_file.h"
#include "msrl/memory/segment_library.h"

namespace msrl {

// Sizes and kind of actions as in the episode; the context is the geometry at entry.
SegmentLibraryConfig ConfigFor(const StoredEpisode& episode, const Lift::Ptr& lift);

// Adds the transitions of `interval` as one segment; `number` says which episode it is. Returns
// the slot or -1. UserError if the episode does not fit the library.
std::int64_t AddPiece(const StoredEpisode& episode, std::int64_t number, Interval interval,
                      Rng& rng, SegmentLibrary& library);

struct CutOptions {
  std::int64_t length = 1;  // steps of a segment
  std::int64_t stride = 1;  // from the beginning of one to that of the next
};

// Adds the segments that begin at 0, stride, 2 stride, ... and fit into the episode; returns how
// many were kept. UserError if the episode does not fit the library.
std::int64_t AddEpisode(const StoredEpisode& episode, std::int64_t number,
                        const CutOptions& options, Rng& rng, SegmentLibrary& library);

// The best share in (0, 1] of the episodes of each environment by reward / reward_scale, at least
// one of each, in the order in which they are given.
std::vector<std::size_t> BestEpisodes(std::span<const StoredEpisode> episodes, double share);

struct MineOptions {
  std::vector<std::int64_t> lengths = {4};
  std::int64_t stride = 1;
  // Two segments of length T are the same if the Frobenius distance of their matrices is at most
  // T times this. A single step has a matrix of norm |psi|^2.
  double radius = 1.0;
  std::int64_t min_episodes = 3;  // in which the segment or one like it is found
};

struct Motif {
  std::size_t episode = 0;  // of the segment that stands for all
  Interval interval;
  std::int64_t episodes = 0;     // with an occurrence, its own included
  std::int64_t occurrences = 0;  // segments within the radius that no motif before has taken
  double spread = 0.0;           // the largest distance to an occurrence, per step
};

// Segments that recur: for each length the one with occurrences in the most episodes (of equal ones
// the first), then the one with the most among the segments that are left, and so on. Sorted by
// episodes, longer ones first.
//
// For S segments of one length: memory 4 m(m+1) bytes each; time O(S log S) and a look at each pair
// that is within the radius along the direction in which matrices vary most. A pair is compared
// in full only if it is within the radius in the eight main directions together. All S^2 / 2 pairs
// are looked at only if all segments are alike.
std::vector<Motif> Mine(const Lift::Ptr& lift, std::span<const StoredEpisode> episodes,
                        const MineOptions& options);

}  // namespace msrl

#endif  // MSRL_DATASETS_SEGMENT_SOURCES_H_
