// Segments of experience for reuse: what each adds to a matrix, how it begins and where it ends
// (paper, appendix "Segment Library").
#ifndef MSRL_MEMORY_SEGMENT_LIBRARY_H_
#define MSRL_MEMORY_SEGMENT_LIBRARY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/lift.h"
#include "msrl/core/rng.h"
#include "msrl/core/segment_matrix.h"
#include "msrl/files/state.h"
#include "msrl/memory/lazy_table.h"
#include "msrl/memory/nearest.h"

namespace msrl {
namespace internal {
class ContextIndex;
}

// Where a run's checkpoint has its agent's library, if the agent keeps one.
inline constexpr std::array<std::string_view, 2> kLibraryState{"agent", "library"};

// Which segment makes room in a full library.
enum class LibraryPolicy {
  kFifo,       // the oldest
  kReservoir,  // a random one or the new one itself: what is kept is a uniform sample of all
  kByValue,    // the one with the smallest reward sum per step, of equal ones the oldest; a new one
               // with a smaller value is not kept
};
constexpr auto EnumNames(LibraryPolicy) { return Names("fifo", "reservoir", "by-value"); }

struct SegmentLibraryConfig {
  std::int64_t capacity = 5000;  // segments kept
  LibraryPolicy policy = LibraryPolicy::kFifo;
  Lift::Ptr lift = nullptr;
  std::int64_t max_length = 1;  // steps of a segment; matrices take space only if it is above 1
  int context_size = 8;
  int action_size = 0;  // numbers per action; a discrete index is one number
  int observation_size = 0;
  bool discrete = false;    // actions are indices
  std::string family = {};  // what the segments are from; environments or families
  // A library that can hold more segments is searched through an approximate index once it does.
  std::int64_t exact_limit = 50'000;
};

// A segment as it is handed in. All numbers are finite.
struct SegmentView {
  std::int64_t length = 1;
  std::span<const double> psi = {};       // of size lift.m, if the length is 1
  const SegmentMatrix* matrix = nullptr;  // if it is longer
  std::span<const float> head_action = {};
  std::span<const float> context;           // at entry
  std::span<const float> tail_observation;  // at exit
  std::span<const float> tail_geometry;     // lift.d
  bool terminated = false;                  // nothing can follow
  std::string_view env;                     // tag: the environment
  double reward_sum = 0.0;                  // in units of reward_scale
  std::int64_t episode = 0;                 // where it is from
};

struct QueryOptions {
  int k = 8;  // at least 1
  // Euclidean, between contexts.
  float radius = std::numeric_limits<float>::infinity();
  // Empty: any. Otherwise head actions must be within action_radius (Euclidean); discrete ones must
  // be equal.
  std::span<const float> head_action = {};
  float action_radius = 0.0F;
};

struct LibraryLoadOptions {
  Lift::Ptr lift = nullptr;  // must be the library's; null: whatever it is
  std::string family = {};   // must be the library's; empty: whatever it is
  // Take a library of another lift of the same size as if it were of this one: for controls.
  bool unaligned = false;
  // A library that needs more memory is refused.
  std::int64_t max_bytes = std::int64_t{1} << 36;
};

// Not safe for several threads at once, queries included.
class SegmentLibrary {
 public:
  static constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{1} << 36;

  // UserError on an impossible capacity. Memory is reserved here and touched
  // as it fills.
  explicit SegmentLibrary(SegmentLibraryConfig config);
  SegmentLibrary(SegmentLibrary&&) noexcept;
  SegmentLibrary& operator=(SegmentLibrary&&) noexcept;
  ~SegmentLibrary();

  const SegmentLibraryConfig& config() const { return config_; }
  std::int64_t size() const { return size_; }
  std::int64_t offered() const { return offered_; }  // calls of Add so far

  // The slot in {0, ..., size()-1} that now holds the segment, or -1 if it was not kept. `rng` is
  // used by the policy "reservoir" alone. No allocation, except for a new tag and by the index.
  std::int64_t Add(const SegmentView& segment, Rng& rng);
  // Adds the segments of another library, oldest first; how often they were used there is
  // forgotten. UserError that names `source` unless lift, family, sizes and kind of actions are the
  // same and no segment is too long.
  void AddAll(const SegmentLibrary& other, std::string_view source, Rng& rng);

  // The nearest segments, nearest first, of equal distances the older first; how many were found is
  // returned. `out` has room for k. No allocation. Up to exact_limit segments all are looked at;
  // beyond, some of the true neighbours may be missed, but those found satisfy the options.
  int Query(std::span<const float> context, const QueryOptions& options,
            std::span<Neighbour> out) const;
  // The same by looking at all segments, however many.
  int QueryExactly(std::span<const float> context, const QueryOptions& options,
                   std::span<Neighbour> out) const;

  // The same for several head actions in place of options.head_action: of each, one after the other
  // in `actions`, the nearest are in its k places of `out`, and how many in `counts`. What all have
  // in common is looked for once. No allocation.
  void QueryEach(std::span<const float> context, const QueryOptions& options,
                 std::span<const float> actions, std::span<Neighbour> out,
                 std::span<int> counts) const;

  std::span<const float> head_action(std::int64_t slot) const { return action_.Row(Check(slot)); }
  std::span<const float> context(std::int64_t slot) const { return context_.Row(Check(slot)); }
  std::span<const float> tail_observation(std::int64_t slot) const {
    return tail_observation_.Row(Check(slot));
  }
  std::span<const float> tail_geometry(std::int64_t slot) const {
    return tail_geometry_.Row(Check(slot));
  }
  bool terminated(std::int64_t slot) const { return terminated_.data[Check(slot)] != 0; }
  const std::string& env(std::int64_t slot) const {
    return tags_[static_cast<std::size_t>(tag_.data[Check(slot)])];
  }
  double reward_sum(std::int64_t slot) const { return reward_sum_.data[Check(slot)]; }
  std::int64_t length(std::int64_t slot) const { return length_.data[Check(slot)]; }
  std::int64_t episode(std::int64_t slot) const { return episode_.data[Check(slot)]; }
  // How many segments were offered before this one: its age.
  std::int64_t sequence(std::int64_t slot) const { return sequence_.data[Check(slot)]; }
  std::int64_t uses(std::int64_t slot) const { return uses_.data[Check(slot)]; }
  void NoteUse(std::int64_t slot) { ++uses_.data[Check(slot)]; }

  // z += M(segment); for a single step the same bits as z.AddStep(psi). UserError if the lifts
  // differ. No allocation.
  void AddMatrixTo(std::int64_t slot, SegmentMatrix& z) const;

  // Everything, the index included: a loaded library goes on bit for bit.
  // UserError unless the state is whole and of a library with this configuration.
  void Visit(const Archive& state);
  // A library with the configuration that the state names.
  static SegmentLibrary FromState(const Archive& state, const LibraryLoadOptions& options = {});

  // A file (docs/file-formats.md): the state with a heading. Parse and LoadFile take it whole or
  // refuse it with a UserError.
  std::string Encode() const;
  void SaveFile(const std::filesystem::path& path) const;
  static SegmentLibrary Parse(std::span<const std::byte> bytes, std::string_view source,
                              const LibraryLoadOptions& options = {});
  static SegmentLibrary LoadFile(const std::filesystem::path& path,
                                 const LibraryLoadOptions& options = {});
  // The bytes of a file whose header says that it is a library, unread.
  static std::string ReadContents(const std::filesystem::path& path);

 private:
  std::int64_t Check(std::int64_t slot) const;
  double Value(std::int64_t slot) const {
    return reward_sum_.data[slot] / static_cast<double>(length_.data[slot]);
  }
  bool WorseThan(std::int64_t a, std::int64_t b) const;
  std::int64_t ChooseSlot(const SegmentView& segment, Rng& rng) const;
  void RequireFits(const SegmentView& segment) const;
  void RequireFits(const SegmentLibrary& other, std::string_view source) const;
  std::int64_t TagNumber(std::string_view env);
  void PutIntoBlock(std::int64_t slot);
  void BuildHeap();
  internal::NearestCollector Collector(std::span<const float> context, const QueryOptions& options,
                                       std::span<Neighbour> out) const;
  // Offers the slots from `first_slot` for which may_offer(slot).
  template <typename Taker, typename Predicate>
  void Scan(std::span<const float> context, std::int64_t first_slot, Taker& nearest,
            const Predicate& may_offer) const;
  std::size_t BringForward(std::size_t ready) const;
  static void VisitConfig(const Archive& state, SegmentLibraryConfig& config);
  void VisitContents(const Archive& state);
  void VisitMatrices(const Archive& state);
  void RequireConsistent(const Archive& state) const;
  void Write(TensorFileBuilder& file) const;
  static SegmentLibrary FromFile(const TensorFile& file, const LibraryLoadOptions& options);

  SegmentLibraryConfig config_;
  std::int64_t size_ = 0;
  std::int64_t offered_ = 0;

  LazyTable<double> psi_;     // of single steps
  LazyTable<double> matrix_;  // of longer segments, packed
  LazyTable<float> action_;
  LazyTable<float> context_;
  LazyTable<float> blocks_;  // the contexts once more, as the scan wants them
  LazyTable<float> tail_observation_;
  LazyTable<float> tail_geometry_;
  LazyTable<std::uint8_t> terminated_;
  LazyTable<double> reward_sum_;
  LazyTable<std::int64_t> length_;
  LazyTable<std::int64_t> episode_;
  LazyTable<std::int64_t> sequence_;
  LazyTable<std::int64_t> uses_;
  LazyTable<std::int64_t> tag_;
  std::vector<std::string> tags_;
  std::vector<std::int64_t> heap_;                 // by-value: slots, the first to go in front
  std::unique_ptr<internal::ContextIndex> index_;  // null if exact_limit is never exceeded
  mutable std::vector<Neighbour> within_;          // workspace of QueryEach
};

}  // namespace msrl

#endif  // MSRL_MEMORY_SEGMENT_LIBRARY_H_
