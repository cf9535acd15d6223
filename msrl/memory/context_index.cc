#include "msrl/memory/context_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/memory/context_scan.h"

// Its hand-written distances are not used. Its templates get a name of their own, so that a program
// that uses hnswlib with other settings is not mixed up with this one.
#define NO_MANUAL_VECTORIZATION
#define hnswlib msrl_hnswlib
#include <hnswlib/hnswlib.h>
#undef hnswlib

namespace msrl::internal {
namespace {

constexpr std::size_t kLinks = 16;         // per node and level; twice as many in the lowest
constexpr std::size_t kBuildWidth = 100;   // candidates while inserting
constexpr std::size_t kSearchWidth = 128;  // candidates while searching
constexpr std::int64_t kSignpostEvery = 32;
constexpr std::size_t kStarts = 16;          // signposts that a search begins at
constexpr std::int64_t kLeastBudget = 4096;  // nodes that a search may look at

// In the order of the scan, so that both find the same distances.
float Squared(const void* a, const void* b, const void* size) {
  const auto* x = static_cast<const float*>(a);
  const auto* y = static_cast<const float*>(b);
  const int n = *static_cast<const int*>(size);
  float sum = 0.0F;
  for (int i = 0; i < n; ++i) {
    const float difference = x[i] - y[i];
    sum += difference * difference;
  }
  return sum;
}

class Space : public msrl_hnswlib::SpaceInterface<float> {
 public:
  explicit Space(int size) : size_(size) {}
  std::size_t get_data_size() override { return sizeof(float) * static_cast<std::size_t>(size_); }
  msrl_hnswlib::DISTFUNC<float> get_dist_func() override { return Squared; }
  void* get_dist_func_param() override { return &size_; }

 private:
  int size_;
};

// SplitMix64's finaliser: every bit of the result depends on every bit of x.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// One node of 16 is one level higher. Depends on the node alone: levels need no generator.
int LevelOf(std::int64_t node) {
  static_assert(kLinks == 16);
  return std::min(std::countr_zero(Mix(static_cast<std::uint64_t>(node))) / 4, 12);
}

}  // namespace

// One graph with the slots of its nodes.
class ContextIndex::Graph {
 public:
  struct Chain {
    std::int64_t first = -1;
    std::int64_t last = -1;
  };

  Graph(int context_size, std::int64_t most_nodes)
      : size_(context_size),
        most_nodes_(most_nodes),
        space_(context_size),
        hnsw_(&space_, static_cast<std::size_t>(most_nodes), kLinks, kBuildWidth),
        table_(std::bit_ceil(static_cast<std::size_t>(2 * most_nodes)), -1) {
    hnsw_.mult_ = 0.0;  // no level of its own choice
    chains_.reserve(static_cast<std::size_t>(most_nodes));
  }

  std::int64_t nodes() const { return std::ssize(chains_); }
  Chain& chain(std::int64_t node) { return chains_[static_cast<std::size_t>(node)]; }
  const Chain& chain(std::int64_t node) const { return chains_[static_cast<std::size_t>(node)]; }
  const float* point(std::int64_t node) const {
    return reinterpret_cast<const float*>(hnsw_.getDataByInternalId(Id(node)));
  }

  // The node of a context without negative zeros, or -1.
  std::int64_t Find(const float* context) const { return table_[Place(context)]; }
  std::int64_t Insert(const float* context) {
    const std::int64_t node = nodes();
    MSRL_CHECK_LT(node, most_nodes_);
    hnsw_.addPoint(context, static_cast<std::size_t>(node), LevelOf(node));
    table_[Place(context)] = node;
    chains_.emplace_back();
    AddSignpost(node);
    return node;
  }

  // Every 32nd node in the layout of the scan: any 32 steps of an episode have one.
  std::span<const float> signposts() const { return signposts_; }

  std::span<const std::uint32_t> Links(std::int64_t node, int level = 0) const {
    const std::uint32_t* const list = hnsw_.get_linklist_at_level(Id(node), level);
    return {list + 1, *list};
  }

  void Visit(const Archive& state) {
    std::int64_t count = nodes();
    state.Int("nodes", count, 0, most_nodes_);
    state.Array("lowest", Bytes(hnsw_.data_level0_memory_, count * NodeBytes()),
                {count, NodeBytes()});
    std::int64_t upper_bytes = 0;
    for (std::int64_t node = 0; node < count; ++node) upper_bytes += LevelOf(node) * ListBytes();
    std::vector<std::uint8_t> upper(static_cast<std::size_t>(upper_bytes));
    if (!state.loading()) {
      auto next = upper.begin();
      for (std::int64_t node = 0; node < count; ++node) {
        next =
            std::ranges::copy(Bytes(hnsw_.linkLists_[node], LevelOf(node) * ListBytes()), next).out;
      }
    }
    state.Temporary("upper", upper, {upper_bytes});
    if (state.loading()) Rebuild(state, count, upper);
  }

 private:
  void Rebuild(const Archive& state, std::int64_t count, const std::vector<std::uint8_t>& upper) {
    const std::uint8_t* next = upper.data();
    for (std::int64_t node = 0; node < count; ++node) {
      const int level = LevelOf(node);
      const auto bytes = static_cast<std::size_t>(level * ListBytes());
      hnsw_.element_levels_[static_cast<std::size_t>(node)] = level;
      if (level > 0) {
        hnsw_.linkLists_[node] = static_cast<char*>(std::malloc(bytes + 1));
        if (hnsw_.linkLists_[node] == nullptr) throw std::bad_alloc();
        std::memcpy(hnsw_.linkLists_[node], next, bytes);
        next += bytes;
      }
      ++hnsw_.cur_element_count;
      hnsw_.label_lookup_[static_cast<std::size_t>(node)] = Id(node);
      if (level > hnsw_.maxlevel_) {
        hnsw_.maxlevel_ = level;
        hnsw_.enterpoint_node_ = Id(node);
      }
    }
    for (std::int64_t node = 0; node < count; ++node) {
      RequireGoodNode(state, node, count);
      if (Find(point(node)) >= 0) state.Fail("lowest", StrCat("has node ", node, " twice"));
      table_[Place(point(node))] = node;
      chains_.emplace_back();
      AddSignpost(node);
    }
  }

  static std::uint32_t Id(std::int64_t node) { return static_cast<std::uint32_t>(node); }
  std::int64_t NodeBytes() const { return static_cast<std::int64_t>(hnsw_.size_data_per_element_); }
  std::int64_t ListBytes() const {
    return static_cast<std::int64_t>(hnsw_.size_links_per_element_);
  }
  static std::span<std::uint8_t> Bytes(char* first, std::int64_t count) {
    return {reinterpret_cast<std::uint8_t*>(first), static_cast<std::size_t>(count)};
  }

  void AddSignpost(std::int64_t node) {
    if (node % kSignpostEvery != 0) return;
    const auto place = static_cast<std::size_t>(node / kSignpostEvery);
    const std::size_t lane = place % kScanBlock;
    const std::size_t block = static_cast<std::size_t>(size_) * kScanBlock;
    if (lane == 0) {
      signposts_.resize(signposts_.size() + block, std::numeric_limits<float>::quiet_NaN());
    }
    float* const first = signposts_.data() + place / kScanBlock * block;
    for (int i = 0; i < size_; ++i) first[i * kScanBlock + static_cast<int>(lane)] = point(node)[i];
  }

  // Where the context is in the table, or would be.
  std::size_t Place(const float* context) const {
    std::uint64_t hash = 0;
    for (int i = 0; i < size_; ++i) hash = Mix(hash ^ std::bit_cast<std::uint32_t>(context[i]));
    const std::size_t mask = table_.size() - 1;
    std::size_t place = hash & mask;
    while (table_[place] >= 0 && !std::equal(context, context + size_, point(table_[place]))) {
      place = (place + 1) & mask;
    }
    return place;
  }

  void RequireGoodNode(const Archive& state, std::int64_t node, std::int64_t count) const {
    const auto fail = [&](const char* what) {
      state.Fail(what, StrCat("is impossible at node ", node));
    };
    const float* const context = point(node);
    for (int i = 0; i < size_; ++i) {
      if (!std::isfinite(context[i]) || (context[i] == 0.0F && std::signbit(context[i]))) {
        fail("lowest");
      }
    }
    if (hnsw_.getExternalLabel(Id(node)) != static_cast<std::size_t>(node)) fail("lowest");
    for (int level = 0; level <= LevelOf(node); ++level) {
      const std::span<const std::uint32_t> links = Links(node, level);
      const char* const what = level == 0 ? "lowest" : "upper";
      if (links.size() > (level == 0 ? 2 * kLinks : kLinks)) fail(what);
      for (const std::uint32_t other : links) {
        if (other >= count || other == node || LevelOf(other) < level) fail(what);
      }
    }
  }

  int size_;
  std::int64_t most_nodes_;
  Space space_;
  msrl_hnswlib::HierarchicalNSW<float> hnsw_;
  std::vector<std::int64_t> table_;  // by hash of the context: its node
  std::vector<Chain> chains_;        // by node
  std::vector<float> signposts_;
};

ContextIndex::ContextIndex(int context_size, std::int64_t capacity, bool in_order)
    : context_size_(context_size), capacity_(capacity), in_order_(in_order) {
  MSRL_CHECK(capacity > 0 && capacity <= 1'000'000'000);  // nodes have 32 bits
  for (auto* table : {&location_, &previous_, &next_}) table->Allocate(capacity, 1);
  graphs_[0] = NewGraph();
  // a walk over more than this costs as much as looking at all
  const std::int64_t most_seen = std::max(kLeastBudget, capacity / 16);
  visited_.assign(static_cast<std::size_t>(in_order ? capacity : 2 * capacity), 0);
  ahead_.reserve(static_cast<std::size_t>(most_seen) + 2 * kLinks + 3);
  near_.reserve(kSearchWidth + 1);
  query_.resize(static_cast<std::size_t>(context_size));
}

ContextIndex::~ContextIndex() = default;

std::unique_ptr<ContextIndex::Graph> ContextIndex::NewGraph() const {
  // a cycle is `capacity` calls of Set, each with a new context and perhaps one moved from the old
  return std::make_unique<Graph>(context_size_, in_order_ ? capacity_ : 2 * capacity_);
}

void ContextIndex::Append(std::size_t graph, std::int64_t node, std::int64_t slot) {
  Graph::Chain& chain = graphs_[graph]->chain(node);
  location_.data[slot] = 2 * node + static_cast<std::int64_t>(graph);
  previous_.data[slot] = chain.last;
  next_.data[slot] = -1;
  (chain.last < 0 ? chain.first : next_.data[chain.last]) = slot;
  chain.last = slot;
}

void ContextIndex::Unlink(std::int64_t slot) {
  Graph::Chain& chain = graphs_[GraphOf(slot)]->chain(NodeOf(slot));
  const std::int64_t before = previous_.data[slot];
  const std::int64_t after = next_.data[slot];
  (before < 0 ? chain.first : next_.data[before]) = after;
  (after < 0 ? chain.last : previous_.data[after]) = before;
}

std::int64_t ContextIndex::YoungNode(const float* context) {
  Graph& young = *graphs_[Young()];
  const std::int64_t known = young.Find(context);
  if (known >= 0) return known;
  const std::int64_t node = young.Insert(context);
  if (!filled_) return node;
  Graph& old = *graphs_[1 - Young()];
  const std::int64_t old_node = old.Find(context);
  if (old_node < 0) return node;
  // the whole chain moves, so that it stays in the order of age
  const Graph::Chain chain = std::exchange(old.chain(old_node), {});
  for (std::int64_t slot = chain.first; slot >= 0;) {
    const std::int64_t next = next_.data[slot];
    Append(Young(), node, slot);
    slot = next;
  }
  return node;
}

void ContextIndex::BeginCycle() {
  ++cycle_;
  cursor_ = 0;
  filled_ = true;
  graphs_[Young()] = NewGraph();
}

void ContextIndex::Set(std::int64_t slot, std::span<const float> context) {
  MSRL_CHECK(slot >= 0 && slot < capacity_ && slot <= used_, "slot ", slot);
  MSRL_CHECK(!in_order_ || !filled_ || slot == cursor_, "slot ", slot, " is not in order");
  for (std::size_t i = 0; i < query_.size(); ++i) query_[i] = context[i] + 0.0F;  // no -0
  if (slot < used_) Unlink(slot);
  used_ = std::max(used_, slot + 1);
  Append(Young(), YoungNode(query_.data()), slot);
  if (!filled_) {
    if (used_ == capacity_) BeginCycle();
    return;
  }
  if (InOld(cursor_)) {
    std::copy_n(graphs_[1 - Young()]->point(NodeOf(cursor_)), context_size_, query_.begin());
    YoungNode(query_.data());
  }
  if (++cursor_ == capacity_) BeginCycle();
}

bool ContextIndex::Search(std::span<const float> query, std::int64_t scan_limit,
                          NearestCollector& nearest) const {
  std::int64_t budget = std::max(kLeastBudget, capacity_ / 16);
  if (!Walk(*graphs_[Young()], query.data(), budget, nearest)) return false;
  return !filled_ || LeavesOld(scan_limit) ||
         Walk(*graphs_[1 - Young()], query.data(), budget, nearest);
}

bool ContextIndex::Walk(const Graph& graph, const float* query, std::int64_t& budget,
                        NearestCollector& nearest) const {
  const auto nearer = [](const Candidate& a, const Candidate& b) {
    return a.squared != b.squared ? a.squared < b.squared : a.node < b.node;
  };
  const auto farther = [&nearer](const Candidate& a, const Candidate& b) { return nearer(b, a); };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto keep = [&](const Candidate& candidate, std::size_t width) {
    near_.push_back(candidate);
    std::ranges::push_heap(near_, nearer);
    if (near_.size() <= width) return;
    std::ranges::pop_heap(near_, nearer);
    near_.pop_back();
  };
  // Candidates beyond it are not followed. With a filter the walk goes on until enough have passed.
  const auto reach = [&] {
    return std::max(near_.size() < kSearchWidth ? kInfinity : near_.front().squared,
                    nearest.bound());
  };
  const auto follow = [&](const Candidate& candidate) {
    visited_[candidate.node] = mark_;
    ahead_.push_back(candidate);
    std::ranges::push_heap(ahead_, farther);
    // equal distances: the chain has the older first, so the first that is not wanted ends it
    for (std::int64_t slot = graph.chain(candidate.node).first;
         slot >= 0 && nearest.Wants(slot, candidate.squared); slot = next_.data[slot]) {
      nearest.Offer(slot, candidate.squared);
    }
  };

  // Where to begin. The upper levels would lead to a node that has none nearer among its links, but
  // episodes make separate clusters, and that node is often in the wrong one.
  near_.clear();
  const std::int64_t blocks = std::ssize(graph.signposts()) / (context_size_ * kScanBlock);
  std::array<float, kScanBlock> squared;
  for (std::int64_t block = 0;; ++block) {
    block = ActiveScan().next_within(graph.signposts().data(), block, blocks, context_size_, query,
                                     near_.size() < kStarts ? kInfinity : near_.front().squared,
                                     squared.data());
    if (block == blocks) break;
    for (std::int64_t lane = 0; lane < kScanBlock; ++lane) {
      const std::int64_t node = kSignpostEvery * (block * kScanBlock + lane);
      if (node >= graph.nodes()) break;
      keep({squared[static_cast<std::size_t>(lane)], static_cast<std::uint32_t>(node)}, kStarts);
    }
  }

  if (++mark_ == 0) {
    std::ranges::fill(visited_, std::uint16_t{0});
    mark_ = 1;
  }
  ahead_.clear();
  for (const Candidate& candidate : near_) follow(candidate);
  while (!ahead_.empty() && ahead_.front().squared <= reach()) {
    std::ranges::pop_heap(ahead_, farther);
    const std::uint32_t centre = ahead_.back().node;
    ahead_.pop_back();
    const std::span<const std::uint32_t> links = graph.Links(centre);
    for (const std::uint32_t node : links) {
      __builtin_prefetch(&visited_[node]);
      __builtin_prefetch(graph.point(node));
    }
    const auto visit = [&](std::uint32_t node) {
      if (visited_[node] == mark_) return;
      visited_[node] = mark_;
      --budget;
      const Candidate candidate{Squared(query, graph.point(node), &context_size_), node};
      if (!(candidate.squared <= reach())) return;
      follow(candidate);
      keep(candidate, kSearchWidth);
    };
    for (const std::uint32_t node : links) visit(node);
    // What was inserted before and after, mostly the steps before and after in an episode: a node
    // whose inbound links were all pruned is still found from there.
    if (centre > 0) visit(centre - 1);
    if (centre + 1 < graph.nodes()) visit(centre + 1);
    if (budget < 0) return false;
  }
  return true;
}

void ContextIndex::Visit(const Archive& state, const LazyTable<float>& contexts,
                         const LazyTable<std::int64_t>& ages, std::int64_t used) {
  if (state.loading()) {
    used_ = used;
    filled_ = used == capacity_;
  }
  state.Int("cycle", cycle_, filled_ ? 1 : 0, filled_ ? std::int64_t{1} << 60 : 0);
  state.Int("cursor", cursor_, 0, filled_ ? capacity_ - 1 : 0);
  state.Array("location", std::span(location_.data.get(), static_cast<std::size_t>(used_)));
  if (state.loading()) graphs_ = {NewGraph(), filled_ ? NewGraph() : nullptr};
  graphs_[Young()]->Visit(state.Child("young"));
  if (filled_) graphs_[1 - Young()]->Visit(state.Child("old"));
  if (!state.loading()) return;

  std::vector<std::int64_t> oldest_first(static_cast<std::size_t>(used_));
  std::iota(oldest_first.begin(), oldest_first.end(), 0);
  std::ranges::sort(oldest_first, {}, [&](std::int64_t slot) { return ages.data[slot]; });
  for (const std::int64_t slot : oldest_first) {
    const std::int64_t place = location_.data[slot];
    const auto graph = static_cast<std::size_t>(place & 1);
    const std::int64_t node = place >> 1;
    const bool possible =
        place >= 0 && graphs_[graph] != nullptr && node < graphs_[graph]->nodes() &&
        (graph == Young() || slot >= cursor_) &&
        std::ranges::equal(contexts.Row(slot), std::span(graphs_[graph]->point(node),
                                                         static_cast<std::size_t>(context_size_)));
    if (!possible) state.Fail("location", StrCat("is impossible for slot ", slot));
    Append(graph, node, slot);
  }
  // a context is in one place, and no graph overflows before its cycle ends
  if (filled_) {
    const Graph& old = *graphs_[1 - Young()];
    const Graph& young = *graphs_[Young()];
    for (std::int64_t node = 0; node < old.nodes(); ++node) {
      if (old.chain(node).first >= 0 && young.Find(old.point(node)) >= 0) {
        state.Fail("location", StrCat("has a context in two graphs, old node ", node));
      }
    }
    if (young.nodes() > (in_order_ ? cursor_ : 2 * cursor_)) {
      state.Fail("cursor", "is too small for so many nodes");
    }
  } else if (graphs_[0]->nodes() > used_) {
    state.Fail("young/nodes", "are more than there are slots");
  }
}

}  // namespace msrl::internal
