#include "msrl/transfer/prefix_set.h"

#include <gtest/gtest.h>

#include <set>

#include "msrl/env_list/env_list.h"
#include "msrl/transfer/collect.h"

namespace msrl {
namespace {

// What the oracle adds to the features of each family, as the places that are 1 for it alone.
std::set<Index> PlacesOf(const PrefixSet& set, std::int32_t source) {
  std::set<Index> places;
  for (Index row = set.matrix_features; row < set.features.rows(); ++row) {
    bool only_here = true;
    for (std::size_t n = 0; n < set.source.size(); ++n) {
      const float wanted = set.source[n] == source ? 1.0F : 0.0F;
      only_here = only_here && set.features(row, static_cast<Index>(n)) == wanted;
    }
    if (only_here) places.insert(row);
  }
  return places;
}

TEST(PrefixSet, TheOracleTellsAnyNumberOfFamilies) {
  for (const int families : {1, 4, 5, 7}) {
    SCOPED_TRACE(families);
    EpisodeFile file = Collect({.sources = {"graph-motif"},
                                .episodes = 2 * families,
                                .targets = {ValueTarget::kMonteCarlo},
                                .dead_slots = 0},
                               BuiltinEnvs(), BuiltinAgents());
    for (std::size_t k = 0; k < file.episodes.size(); ++k) {
      file.episodes[k].env = "family-" + std::to_string(k % static_cast<std::size_t>(families));
    }
    PrefixSetOptions options;
    options.oracle = Oracle::kInstance;
    options.target = ValueTarget::kMonteCarlo;
    const PrefixSet set = MakePrefixSet(file, options);
    EXPECT_EQ(std::ssize(set.sources), families);
    // four families or fewer have the same inputs, so that their results can be compared
    EXPECT_EQ(set.features.rows() - set.matrix_features, 24 + std::max(4, families));
    constexpr Index kFirstPlace = 9;  // after reward styles and tasks
    for (std::int32_t source = 0; source < families; ++source) {
      EXPECT_TRUE(PlacesOf(set, source).contains(set.matrix_features + kFirstPlace + source));
    }
  }
}

}  // namespace
}  // namespace msrl
