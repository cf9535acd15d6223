// Nearest neighbours among very many contexts: navigable small-world graphs (HNSW, Malkov and
// Yashunin 2016), built by hnswlib and walked by our own search.
//
// What hnswlib alone does not do, and why:
//   replacing  Its in-place update costs more than inserting and may cut nodes off. Here a
//              slot's old node stays to be walked over, never to be found, and its new context goes
//              into a younger graph. When every slot has moved there, the old graph is dropped. A
//              library that replaces its oldest segments inserts once per Add, others at most
//              twice.
//   equal contexts  More copies of a point than a node has links cut it off from the rest. Here
//              equal contexts share a node, with a chain of slots.
//   separate clusters  Episodes make them, and a walk from the top of the graph ends in the wrong
//              one. Here a walk begins at the nearest of every 32nd node, found by a scan.
//   no allocation, filters, ties, state  The walk uses storage of its own, tests slots as it goes,
//              and all links can be saved.
#ifndef MSRL_MEMORY_CONTEXT_INDEX_H_
#define MSRL_MEMORY_CONTEXT_INDEX_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "msrl/files/state.h"
#include "msrl/memory/lazy_table.h"
#include "msrl/memory/nearest.h"

namespace msrl::internal {

class ContextIndex {
 public:
  // For slots {0, ..., capacity-1}. Slots are filled in order; `in_order` says that they are also
  // replaced in order, round and round.
  ContextIndex(int context_size, std::int64_t capacity, bool in_order);
  ~ContextIndex();

  // The slot now holds this context; what it held before is forgotten. Allocates.
  void Set(std::int64_t slot, std::span<const float> context);

  // Offers the slots near the query, except those in the old graph if it has at most `scan_limit`
  // slots left: they are those of {OldBegin(), ...} with InOld. False if the walk was given up, for
  // instance because hardly any slot passes the collector's filter. No allocation.
  bool Search(std::span<const float> query, std::int64_t scan_limit,
              NearestCollector& nearest) const;
  std::int64_t OldBegin() const { return cursor_; }
  bool InOld(std::int64_t slot) const { return filled_ && GraphOf(slot) != Young(); }
  // Whether Search leaves the old graph to the caller.
  bool LeavesOld(std::int64_t scan_limit) const {
    return filled_ && capacity_ - cursor_ <= scan_limit;
  }

  // `contexts` are those of the slots {0, ..., used-1}, one row each; the older ones have smaller
  // `ages`. UserError if the state is not that of an index of these contexts.
  void Visit(const Archive& state, const LazyTable<float>& contexts,
             const LazyTable<std::int64_t>& ages, std::int64_t used);

 private:
  class Graph;

  // Number of the graph that new contexts go into; the other one is the old one.
  std::size_t Young() const { return static_cast<std::size_t>(cycle_ & 1); }
  std::size_t GraphOf(std::int64_t slot) const {
    return static_cast<std::size_t>(location_.data[slot] & 1);
  }
  std::int64_t NodeOf(std::int64_t slot) const { return location_.data[slot] >> 1; }
  std::unique_ptr<Graph> NewGraph() const;
  void Append(std::size_t graph, std::int64_t node, std::int64_t slot);
  void Unlink(std::int64_t slot);
  // The young node of a context, made if necessary, with all slots of that context.
  std::int64_t YoungNode(const float* context);
  bool Walk(const Graph& graph, const float* query, std::int64_t& budget,
            NearestCollector& nearest) const;
  void BeginCycle();

  int context_size_;
  std::int64_t capacity_;
  bool in_order_;
  std::array<std::unique_ptr<Graph>, 2> graphs_;
  bool filled_ = false;      // all slots are in use: there is an old graph
  std::int64_t used_ = 0;    // slots in use
  std::int64_t cycle_ = 0;   // graphs begun before the young one
  std::int64_t cursor_ = 0;  // slots before it are in the young graph
  // Of each slot: 2 * node + graph, and the neighbours in its chain (-1: none), oldest first.
  LazyTable<std::int64_t> location_;
  LazyTable<std::int64_t> previous_;
  LazyTable<std::int64_t> next_;

  struct Candidate {
    float squared;
    std::uint32_t node;
  };
  mutable std::vector<std::uint16_t> visited_;  // mark of the last walk that saw the node
  mutable std::uint16_t mark_ = 0;
  mutable std::vector<Candidate> ahead_;  // heap, nearest in front
  mutable std::vector<Candidate> near_;   // heap, farthest in front
  mutable std::vector<float> query_;
};

}  // namespace msrl::internal

#endif  // MSRL_MEMORY_CONTEXT_INDEX_H_
