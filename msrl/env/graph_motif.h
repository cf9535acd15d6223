// GraphMotif: small directed graphs in the plane, with actions as edge labels.
#ifndef MSRL_ENV_GRAPH_MOTIF_H_
#define MSRL_ENV_GRAPH_MOTIF_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/env/tabular_env.h"

namespace msrl {

enum class Motif {
  kPath,          // a line of nodes
  kCycle,         // a ring, clockwise or anticlockwise
  kBranch,        // a stem that splits into two arms
  kReversalPair,  // two lanes side by side, each the reversal of the other, joined at both ends
  kLollipop,      // a ring with a tail that leads in or out
};

constexpr auto EnumNames(Motif) {
  return Names("path", "cycle", "branch", "reversal-pair", "lollipop");
}

enum class TwoWay { kYes, kNo };
constexpr auto EnumNames(TwoWay) { return Names("yes", "no"); }

struct GraphMotifConfig {
  static constexpr int kStepLimit = 200;
  InstanceOptions common;
  std::optional<Motif> motif;
  int size = 0;
  int actions = 4;
  double chord_probability = 0.1;
  std::optional<TwoWay> two_way;

  template <typename V>
  void Fields(V&& visit) {
    common.Fields(visit, kTabularRewards, kStepLimit);
    visit("motif", motif, "kind of graph");
    visit("size", size, "number of nodes, 4 to 32; 0: sampled", Between(4, 32).Or(0));
    visit("actions", actions, "number of edge labels, 4 to 10; those past 3 are random chords",
          Between(4, kActionCodeSize));
    visit("chord_probability", chord_probability, "share of nodes with an additional random edge",
          Between(0, 1));
    visit("two_way", two_way, "whether label 1 leads back along edges");
  }
};

// Labels: 0 forward, 1 back, 2 side (second arm, other lane, tail, chord), 3 stay, 4... chords. A
// label that is not an edge of the node stays there.
class GraphMotif : public TabularEnv {
 public:
  static constexpr const char* kId = "graph-motif";
  static constexpr int kStay = 3;

  // UserError on impossible options.
  explicit GraphMotif(GraphMotifConfig config);

  Motif motif() const { return motif_; }

 private:
  TabularInstance Draw(std::uint64_t seed) override;
  void Adopt() override { motif_ = drawn_motif_; }

  GraphMotifConfig config_;
  Motif motif_ = Motif::kPath;
  Motif drawn_motif_ = Motif::kPath;
};

}  // namespace msrl

#endif  // MSRL_ENV_GRAPH_MOTIF_H_
