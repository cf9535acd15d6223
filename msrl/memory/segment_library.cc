#include "msrl/memory/segment_library.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "msrl/core/bytes.h"
#include "msrl/core/check.h"
#include "msrl/core/packed_kernels.h"
#include "msrl/files/atomic_file.h"
#include "msrl/memory/context_index.h"
#include "msrl/memory/context_scan.h"

namespace msrl {
namespace {

using internal::kScanBlock;
using internal::NearestCollector;
using internal::PackedSize;

constexpr char kFormat[] = "msrl-library";
constexpr int kMaxSize = 65'536;  // of contexts, actions, observations

template <typename T>
bool AllFinite(std::span<const T> values) {
  return std::ranges::all_of(values, [](T v) { return std::isfinite(v); });
}

std::int64_t BlockCount(std::int64_t slots) { return (slots + kScanBlock - 1) / kScanBlock; }

// Of a library that is full. In double: what a damaged file asks for need not fit an integer.
double BytesNeeded(const SegmentLibraryConfig& config) {
  const auto m = static_cast<double>(config.lift->m());
  const double matrices = 8 * m + (config.max_length > 1 ? 4 * m * (m + 1) : 0.0);
  // links, locks and tables of the graphs
  const double index =
      config.capacity > config.exact_limit ? 4 * (300.0 + 4.0 * config.context_size) : 0.0;
  const double rest = 8.0 * config.context_size + 4.0 * config.action_size +
                      4.0 * config.observation_size + 4.0 * static_cast<double>(config.lift->d()) +
                      64.0;
  return static_cast<double>(config.capacity) * (matrices + index + rest);
}

// Takes all slots within a squared distance.
struct AllWithin {
  std::vector<Neighbour>& slots;
  float most_squared;
  float bound() const { return most_squared; }
  void Offer(std::int64_t slot, float squared) { slots.push_back({slot, squared}); }
};

// A list as one value of an archive.
struct PackedSlots {
  std::vector<GeometrySlot>& slots;
  void Save(ByteWriter& writer) const {
    writer.U64(slots.size());
    for (const GeometrySlot& slot : slots) {
      writer.Text(slot.name);
      writer.Double(slot.scale);
    }
  }
  void Load(ByteReader& reader) {
    slots.resize(static_cast<std::size_t>(reader.I64In(0, 4096)));
    for (GeometrySlot& slot : slots) {
      slot.name = reader.Text();
      slot.scale = reader.FiniteDouble();
    }
  }
};

struct PackedTags {
  std::vector<std::string>& tags;
  void Save(ByteWriter& writer) const {
    writer.U64(tags.size());
    for (const std::string& tag : tags) writer.Text(tag);
  }
  void Load(ByteReader& reader) {
    tags.clear();
    for (std::uint64_t left = reader.U64(); left > 0; --left) tags.push_back(reader.Text());
  }
};

}  // namespace

SegmentLibrary::SegmentLibrary(SegmentLibraryConfig config) : config_(std::move(config)) {
  if (config_.capacity < 1 || config_.capacity > 1'000'000'000) {
    throw UserError(StrCat("a library of ", config_.capacity,
                           " segments is impossible; between 1 and 1e9 are possible"));
  }
  if (config_.max_length < 1 || config_.exact_limit < 1) {
    throw UserError(StrCat("a library needs max_length and exact_limit of at least 1, got ",
                           config_.max_length, " and ", config_.exact_limit));
  }
  MSRL_CHECK(config_.lift != nullptr);
  MSRL_CHECK(config_.context_size > 0 && config_.action_size > 0 && config_.observation_size > 0);
  MSRL_CHECK(!config_.discrete || config_.action_size == 1);
  const std::int64_t n = config_.capacity;
  psi_.Allocate(n, config_.lift->m());
  if (config_.max_length > 1) matrix_.Allocate(n, PackedSize(config_.lift->m()));
  action_.Allocate(n, config_.action_size);
  context_.Allocate(n, config_.context_size);
  blocks_.Allocate(BlockCount(n), std::int64_t{config_.context_size} * kScanBlock);
  tail_observation_.Allocate(n, config_.observation_size);
  tail_geometry_.Allocate(n, config_.lift->d());
  terminated_.Allocate(n, 1);
  reward_sum_.Allocate(n, 1);
  for (auto* table : {&length_, &episode_, &sequence_, &uses_, &tag_}) table->Allocate(n, 1);
  if (config_.policy == LibraryPolicy::kByValue) heap_.reserve(static_cast<std::size_t>(n));
  within_.reserve(static_cast<std::size_t>(std::min(n, config_.exact_limit)));
  if (n > config_.exact_limit) {
    index_ = std::make_unique<internal::ContextIndex>(config_.context_size, n,
                                                      config_.policy == LibraryPolicy::kFifo);
  }
}

SegmentLibrary::SegmentLibrary(SegmentLibrary&&) noexcept = default;
SegmentLibrary& SegmentLibrary::operator=(SegmentLibrary&&) noexcept = default;
SegmentLibrary::~SegmentLibrary() = default;

std::int64_t SegmentLibrary::Check(std::int64_t slot) const {
  MSRL_CHECK(slot >= 0 && slot < size_, "slot ", slot, " of ", size_);
  return slot;
}

void SegmentLibrary::RequireFits(const SegmentView& segment) const {
  const auto fits = [](std::span<const float> values, std::int64_t size) {
    return std::ssize(values) == size && AllFinite(values);
  };
  MSRL_CHECK(fits(segment.head_action, config_.action_size));
  MSRL_CHECK(fits(segment.context, config_.context_size));
  MSRL_CHECK(fits(segment.tail_observation, config_.observation_size));
  MSRL_CHECK(fits(segment.tail_geometry, config_.lift->d()));
  MSRL_CHECK(std::isfinite(segment.reward_sum));
  MSRL_CHECK(segment.length >= 1 && segment.length <= config_.max_length, "length ",
             segment.length);
  if (segment.length == 1) {
    MSRL_CHECK(std::ssize(segment.psi) == config_.lift->m() && AllFinite(segment.psi));
  } else {
    MSRL_CHECK(segment.matrix != nullptr);
    RequireSameLift(*segment.matrix->lift(), *config_.lift, "cannot keep the segment");
    MSRL_CHECK_EQ(segment.matrix->Horizon(), segment.length);
  }
}

// Whether a makes room before b.
bool SegmentLibrary::WorseThan(std::int64_t a, std::int64_t b) const {
  const double value_a = Value(a);
  const double value_b = Value(b);
  return value_a != value_b ? value_a < value_b : sequence_.data[a] < sequence_.data[b];
}

void SegmentLibrary::BuildHeap() {
  heap_.resize(static_cast<std::size_t>(size_));
  for (std::int64_t slot = 0; slot < size_; ++slot) heap_[static_cast<std::size_t>(slot)] = slot;
  // the standard heap has the greatest in front
  std::ranges::make_heap(heap_, [this](std::int64_t a, std::int64_t b) { return WorseThan(b, a); });
}

std::int64_t SegmentLibrary::ChooseSlot(const SegmentView& segment, Rng& rng) const {
  if (size_ < config_.capacity) return size_;
  switch (config_.policy) {
    case LibraryPolicy::kFifo:
      return offered_ % config_.capacity;
    case LibraryPolicy::kReservoir: {
      const std::int64_t place = rng.Index(offered_ + 1);
      return place < config_.capacity ? place : -1;
    }
    case LibraryPolicy::kByValue: {
      const double value = segment.reward_sum / static_cast<double>(segment.length);
      return value < Value(heap_.front()) ? -1 : heap_.front();
    }
  }
  return -1;
}

std::int64_t SegmentLibrary::TagNumber(std::string_view env) {
  // nearly always the one before
  for (std::size_t i = tags_.size(); i-- > 0;) {
    if (tags_[i] == env) return static_cast<std::int64_t>(i);
  }
  tags_.emplace_back(env);
  return std::ssize(tags_) - 1;
}

void SegmentLibrary::PutIntoBlock(std::int64_t slot) {
  const std::span<float> block = blocks_.Row(slot / kScanBlock);
  const auto lane = static_cast<std::size_t>(slot % kScanBlock);
  // slots fill in order: the first of a block clears it, so that no scan finds an empty place
  if (lane == 0 && slot == size_ - 1) {
    std::ranges::fill(block, std::numeric_limits<float>::quiet_NaN());
  }
  const std::span<const float> context = context_.Row(slot);
  for (std::size_t i = 0; i < context.size(); ++i) block[i * kScanBlock + lane] = context[i];
}

std::int64_t SegmentLibrary::Add(const SegmentView& segment, Rng& rng) {
  RequireFits(segment);
  const std::int64_t slot = ChooseSlot(segment, rng);
  const std::int64_t sequence = offered_++;
  if (slot < 0) return slot;
  const bool was_full = size_ == config_.capacity;
  size_ = std::max(size_, slot + 1);
  if (segment.length == 1) {
    std::ranges::copy(segment.psi, psi_.Row(slot).begin());
  } else {
    std::ranges::copy(segment.matrix->packed(), matrix_.Row(slot).begin());
  }
  std::ranges::copy(segment.head_action, action_.Row(slot).begin());
  std::ranges::copy(segment.context, context_.Row(slot).begin());
  PutIntoBlock(slot);
  if (index_ != nullptr) index_->Set(slot, segment.context);
  std::ranges::copy(segment.tail_observation, tail_observation_.Row(slot).begin());
  std::ranges::copy(segment.tail_geometry, tail_geometry_.Row(slot).begin());
  terminated_.data[slot] = segment.terminated ? 1 : 0;
  reward_sum_.data[slot] = segment.reward_sum;
  length_.data[slot] = segment.length;
  episode_.data[slot] = segment.episode;
  sequence_.data[slot] = sequence;
  uses_.data[slot] = 0;
  tag_.data[slot] = TagNumber(segment.env);
  if (config_.policy == LibraryPolicy::kByValue && size_ == config_.capacity) {
    if (!was_full) {
      BuildHeap();
    } else {
      // the front has changed: let it sink
      const auto worse = [this](std::int64_t a, std::int64_t b) { return WorseThan(a, b); };
      std::size_t place = 0;
      for (std::size_t child = 1; child < heap_.size(); child = 2 * place + 1) {
        if (child + 1 < heap_.size() && worse(heap_[child + 1], heap_[child])) ++child;
        if (worse(heap_[place], heap_[child])) break;
        std::swap(heap_[place], heap_[child]);
        place = child;
      }
    }
  }
  return slot;
}

void SegmentLibrary::RequireFits(const SegmentLibrary& other, std::string_view source) const {
  const SegmentLibraryConfig& theirs = other.config_;
  if (!(theirs.lift->id() == config_.lift->id())) {
    throw UserError(StrCat(source, ": segments of the lift ", theirs.lift->Describe(),
                           " can't be used with ", config_.lift->Describe(),
                           "; make a library with this lift"));
  }
  if (theirs.family != config_.family) {
    throw UserError(StrCat(source, ": segments of '", theirs.family, "' don't fit '",
                           config_.family, "'; make a library of this task"));
  }
  const auto describe = [](const SegmentLibraryConfig& config) {
    return StrCat("contexts of ", config.context_size, ", ",
                  config.discrete ? "discrete actions" : StrCat("actions of ", config.action_size),
                  " and observations of ", config.observation_size);
  };
  if (describe(theirs) != describe(config_)) {
    throw UserError(StrCat(source, ": segments with ", describe(theirs), " don't fit a task with ",
                           describe(config_)));
  }
  for (std::int64_t slot = 0; slot < other.size_; ++slot) {
    if (other.length(slot) <= config_.max_length) continue;
    throw UserError(StrCat(source, ": a segment of ", other.length(slot),
                           " steps, this library takes at most ", config_.max_length));
  }
}

void SegmentLibrary::AddAll(const SegmentLibrary& other, std::string_view source, Rng& rng) {
  RequireFits(other, source);
  std::vector<std::int64_t> slots(static_cast<std::size_t>(other.size_));
  std::iota(slots.begin(), slots.end(), std::int64_t{0});
  std::ranges::sort(slots, {}, [&other](std::int64_t slot) { return other.sequence(slot); });
  SegmentMatrix matrix(config_.lift);
  for (const std::int64_t slot : slots) {
    const bool single = other.length(slot) == 1;
    matrix.SetZero();
    if (!single) other.AddMatrixTo(slot, matrix);
    Add({.length = other.length(slot),
         .psi = single ? other.psi_.Row(slot) : std::span<const double>(),
         .matrix = single ? nullptr : &matrix,
         .head_action = other.head_action(slot),
         .context = other.context(slot),
         .tail_observation = other.tail_observation(slot),
         .tail_geometry = other.tail_geometry(slot),
         .terminated = other.terminated(slot),
         .env = other.env(slot),
         .reward_sum = other.reward_sum(slot),
         .episode = other.episode(slot)},
        rng);
  }
}

NearestCollector SegmentLibrary::Collector(std::span<const float> context,
                                           const QueryOptions& options,
                                           std::span<Neighbour> out) const {
  MSRL_CHECK(std::ssize(context) == config_.context_size && AllFinite(context));
  MSRL_CHECK(options.k >= 1 && options.k <= std::ssize(out), "k is ", options.k);
  MSRL_CHECK(options.radius >= 0.0F && options.action_radius >= 0.0F);
  NearestCollector::Filter filter;
  if (!options.head_action.empty()) {
    MSRL_CHECK_EQ(std::ssize(options.head_action), config_.action_size);
    filter.actions = action_.data.get();
    filter.action_size = options.head_action.size();
    filter.wanted = options.head_action.data();
    filter.most_squared = config_.discrete ? 0.0F : options.action_radius * options.action_radius;
  }
  return {out.first(static_cast<std::size_t>(options.k)), options.radius * options.radius,
          sequence_.data.get(), filter};
}

template <typename Taker, typename Predicate>
void SegmentLibrary::Scan(std::span<const float> context, std::int64_t first_slot, Taker& nearest,
                          const Predicate& may_offer) const {
  const internal::ScanKernel& kernel = internal::ActiveScan();
  const std::int64_t end = BlockCount(size_);
  std::array<float, kScanBlock> squared;
  for (std::int64_t block = first_slot / kScanBlock;; ++block) {
    block = kernel.next_within(blocks_.data.get(), block, end, config_.context_size, context.data(),
                               nearest.bound(), squared.data());
    if (block == end) return;
    for (std::int64_t lane = 0; lane < kScanBlock; ++lane) {
      const std::int64_t slot = block * kScanBlock + lane;
      const float distance = squared[static_cast<std::size_t>(lane)];
      if (distance <= nearest.bound() && slot >= first_slot && may_offer(slot)) {
        nearest.Offer(slot, distance);
      }
    }
  }
}

int SegmentLibrary::Query(std::span<const float> context, const QueryOptions& options,
                          std::span<Neighbour> out) const {
  if (size_ <= config_.exact_limit) return QueryExactly(context, options, out);
  NearestCollector nearest = Collector(context, options, out);
  if (!index_->Search(context, config_.exact_limit, nearest)) {
    return QueryExactly(context, options, out);
  }
  if (index_->LeavesOld(config_.exact_limit)) {
    Scan(context, index_->OldBegin(), nearest,
         [this](std::int64_t slot) { return index_->InOld(slot); });
  }
  return nearest.Finish();
}

int SegmentLibrary::QueryExactly(std::span<const float> context, const QueryOptions& options,
                                 std::span<Neighbour> out) const {
  NearestCollector nearest = Collector(context, options, out);
  Scan(context, 0, nearest, [](std::int64_t) { return true; });
  return nearest.Finish();
}

void SegmentLibrary::QueryEach(std::span<const float> context, const QueryOptions& options,
                               std::span<const float> actions, std::span<Neighbour> out,
                               std::span<int> counts) const {
  const auto width = static_cast<std::size_t>(config_.action_size);
  const auto k = static_cast<std::size_t>(options.k);
  MSRL_CHECK_EQ(actions.size(), counts.size() * width);
  MSRL_CHECK_EQ(out.size(), counts.size() * k);
  const bool all = size_ <= config_.exact_limit;
  AllWithin within{within_, options.radius * options.radius};
  if (all) {
    within_.clear();
    Scan(context, 0, within, [](std::int64_t) { return true; });
  }
  std::size_t ready = 0;  // so many of them come before all others
  for (std::size_t a = 0; a < counts.size(); ++a) {
    QueryOptions one = options;
    one.head_action = actions.subspan(a * width, width);
    const std::span<Neighbour> places = out.subspan(a * k, k);
    if (!all) {
      counts[a] = Query(context, one, places);
      continue;
    }
    NearestCollector nearest = Collector(context, one, places);
    for (std::size_t seen = 0; seen < within_.size() && !nearest.full();) {
      if (seen == ready) ready = BringForward(ready);
      for (; seen < ready; ++seen) nearest.Offer(within_[seen].slot, within_[seen].distance);
    }
    counts[a] = nearest.Finish();
  }
}

// Most questions are answered by the nearest few, so they alone are put in front, then four times
// as many.
std::size_t SegmentLibrary::BringForward(std::size_t ready) const {
  constexpr std::size_t kFew = 128;
  const std::size_t next = std::max(kFew, 4 * ready);
  if (next >= within_.size()) return within_.size();
  const auto at = [this](std::size_t i) {
    return within_.begin() + static_cast<std::ptrdiff_t>(i);
  };
  std::nth_element(at(ready), at(next), within_.end(), [this](const auto& a, const auto& b) {
    return a.distance != b.distance ? a.distance < b.distance
                                    : sequence_.data[a.slot] < sequence_.data[b.slot];
  });
  return next;
}

void SegmentLibrary::AddMatrixTo(std::int64_t slot, SegmentMatrix& z) const {
  Check(slot);
  RequireSameLift(*z.lift(), *config_.lift, "cannot add a segment of the library");
  if (length_.data[slot] == 1) {
    z.AddStep(Eigen::Map<const Eigen::VectorXd>(psi_.Row(slot).data(), psi_.width));
  } else {
    z.AddPacked(matrix_.Row(slot));
  }
}

void SegmentLibrary::VisitConfig(const Archive& state, SegmentLibraryConfig& config) {
  state.Same("version", 1);
  state.Int("capacity", config.capacity, 1, 1'000'000'000);
  std::string policy(EnumName(config.policy));
  state.Text("policy", policy);
  const auto known = EnumFromName<LibraryPolicy>(policy);
  if (!known) state.Fail("policy", "is unknown");
  config.policy = *known;
  state.Int("max_length", config.max_length, 1);
  state.Int("context_size", config.context_size, 1, kMaxSize);
  state.Int("action_size", config.action_size, 1, kMaxSize);
  state.Int("observation_size", config.observation_size, 1, kMaxSize);
  state.Bool("discrete", config.discrete);
  if (config.discrete && config.action_size != 1) state.Fail("action_size", "is not 1");
  state.Text("family", config.family);
  state.Int("exact_limit", config.exact_limit, 1);
  LiftSpec spec = state.loading() ? LiftSpec{} : config.lift->spec();
  std::string kind(LiftKindName(spec.kind));
  state.Text("lift/kind", kind);
  spec.kind = LiftKindFromName(kind);
  state.Int("lift/d", spec.d, 1, 4096);
  state.Int("lift/q", spec.q, 0, 4096);
  PackedSlots slots{spec.slots};
  state.Packed("lift/slots", slots);
  if (state.loading()) config.lift = Lift::Make(std::move(spec));
  state.SameWord("lift/id", config.lift->id().value, "is not that of the lift beside it");
}

// Single steps and longer segments apart, each in the order of slots.
void SegmentLibrary::VisitMatrices(const Archive& state) {
  const std::int64_t* const lengths = length_.data.get();
  const std::int64_t steps = std::count(lengths, lengths + size_, 1);
  const auto visit = [&](const char* name, LazyTable<double>& table, std::int64_t rows,
                         bool single) {
    if (rows == size_ && !state.loading()) return table.Visit(state, name, rows);
    std::vector<double> values(static_cast<std::size_t>(rows * table.width));
    double* next = values.data();
    const auto each = [&](const auto& move) {
      for (std::int64_t slot = 0; slot < size_; ++slot) {
        if ((lengths[slot] == 1) != single) continue;
        move(slot, table.Row(slot), std::span(next, table.Row(slot).size()));
        next += table.width;
      }
    };
    if (!state.loading()) {
      each([](std::int64_t, std::span<double> row, std::span<double> value) {
        std::ranges::copy(row, value.begin());
      });
    }
    state.Temporary(name, values, {rows, table.width});
    if (!state.loading()) return;
    if (!AllFinite(std::span<const double>(values))) state.Fail(name, "has a bad number");
    each([&](std::int64_t slot, std::span<double> row, std::span<double> value) {
      std::ranges::copy(value, row.begin());
      // M_11, or the constant of psi
      if (row.back() != static_cast<double>(lengths[slot])) {
        state.Fail(name, StrCat("of slot ", slot, " has another length than it is said to have"));
      }
    });
  };
  visit("psi", psi_, steps, true);
  if (config_.max_length > 1) visit("matrix", matrix_, size_ - steps, false);
}

// All but the configuration.
void SegmentLibrary::VisitContents(const Archive& state) {
  state.Int("offered", offered_, 0, std::int64_t{1} << 60);
  if (state.loading()) size_ = std::min(offered_, config_.capacity);
  PackedTags tags{tags_};
  state.Packed("tags", tags);
  action_.Visit(state, "head_action", size_);
  context_.Visit(state, "context", size_);
  tail_observation_.Visit(state, "tail_observation", size_);
  tail_geometry_.Visit(state, "tail_geometry", size_);
  terminated_.Visit(state, "terminated", size_);
  reward_sum_.Visit(state, "reward_sum", size_);
  length_.Visit(state, "length", size_);
  episode_.Visit(state, "episode", size_);
  sequence_.Visit(state, "sequence", size_);
  uses_.Visit(state, "uses", size_);
  tag_.Visit(state, "tag", size_);
  if (state.loading()) RequireConsistent(state);
  VisitMatrices(state);
  if (index_ != nullptr) index_->Visit(state.Child("index"), context_, sequence_, size_);
  if (!state.loading()) return;
  const std::int64_t size = std::exchange(size_, 0);
  for (; size_ < size;) PutIntoBlock(size_++);
  if (config_.policy == LibraryPolicy::kByValue && size == config_.capacity) BuildHeap();
}

SegmentLibrary SegmentLibrary::FromState(const Archive& state, const LibraryLoadOptions& options) {
  SegmentLibraryConfig config;
  VisitConfig(state, config);
  if (!options.family.empty() && options.family != config.family) {
    state.Fail("family", StrCat("is '", config.family, "', not '", options.family, "'"));
  }
  if (options.lift != nullptr && !(options.lift->id() == config.lift->id())) {
    if (!options.unaligned) {
      state.Fail("lift/id",
                 StrCat("is of the lift ", config.lift->Describe(), ", this is ",
                        options.lift->Describe(), "; only the unaligned control may load it"));
    }
    if (options.lift->m() != config.lift->m() || options.lift->d() != config.lift->d()) {
      state.Fail("lift/d", "is of a lift of another size");
    }
    config.lift = options.lift;
  }
  if (BytesNeeded(config) > static_cast<double>(options.max_bytes)) {
    state.Fail("capacity",
               StrCat("is ", config.capacity, ": more memory than ", options.max_bytes, " bytes"));
  }
  SegmentLibrary library(std::move(config));
  library.VisitContents(state);
  return library;
}

void SegmentLibrary::RequireConsistent(const Archive& state) const {
  const auto each = [&](const char* name, const auto& table, const auto& good) {
    for (std::int64_t slot = 0; slot < size_; ++slot) {
      for (const auto value : table.Row(slot)) {
        if (!good(value)) state.Fail(name, StrCat("is impossible in slot ", slot));
      }
    }
  };
  const auto finite = [](auto value) { return std::isfinite(value); };
  each("head_action", action_, [this](float a) {
    return std::isfinite(a) && (!config_.discrete || (a >= 0.0F && a == std::floor(a)));
  });
  each("context", context_, finite);
  each("tail_observation", tail_observation_, finite);
  each("tail_geometry", tail_geometry_, finite);
  each("terminated", terminated_, [](std::uint8_t value) { return value <= 1; });
  each("reward_sum", reward_sum_, finite);
  each("length", length_, [this](std::int64_t n) { return n >= 1 && n <= config_.max_length; });
  each("uses", uses_, [](std::int64_t n) { return n >= 0; });
  each("tag", tag_, [this](std::int64_t n) { return n >= 0 && n < std::ssize(tags_); });
  each("sequence", sequence_, [this](std::int64_t n) { return n >= 0 && n < offered_; });
  std::vector<std::int64_t> sorted(sequence_.data.get(), sequence_.data.get() + size_);
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) {
    state.Fail("sequence", "names one segment twice");
  }
  for (std::int64_t slot = 0; slot < size_; ++slot) {
    const std::int64_t n = sequence_.data[slot];
    // until it is full a library fills in order; fifo goes round then
    const bool in_place = config_.policy == LibraryPolicy::kFifo
                              ? n % config_.capacity == slot && n >= offered_ - size_
                              : offered_ > config_.capacity || n == slot;
    if (!in_place) state.Fail("sequence", StrCat("is impossible in slot ", slot));
  }
}

void SegmentLibrary::Visit(const Archive& state) {
  if (!state.loading()) {
    VisitConfig(state, config_);
    VisitContents(state);
    return;
  }
  LibraryLoadOptions options;
  options.max_bytes = INT64_MAX;
  SegmentLibrary loaded = FromState(state, options);
  const SegmentLibraryConfig& other = loaded.config_;
  const auto same = [&state](const char* name, const auto& theirs, const auto& ours) {
    if (!(theirs == ours)) state.Fail(name, StrCat("is ", theirs, ", this library's is ", ours));
  };
  same("lift/id", other.lift->id().ToString(), config_.lift->id().ToString());
  same("family", other.family, config_.family);
  same("capacity", other.capacity, config_.capacity);
  same("policy", EnumName(other.policy), EnumName(config_.policy));
  same("max_length", other.max_length, config_.max_length);
  same("context_size", other.context_size, config_.context_size);
  same("action_size", other.action_size, config_.action_size);
  same("observation_size", other.observation_size, config_.observation_size);
  same("discrete", other.discrete, config_.discrete);
  same("exact_limit", other.exact_limit, config_.exact_limit);
  loaded.config_.lift = config_.lift;
  *this = std::move(loaded);
}

void SegmentLibrary::Write(TensorFileBuilder& file) const {
  Archive(file).Save(*this);
  file.SetMetadata("format", kFormat);
  file.SetMetadata("lift_id", config_.lift->id().ToString());
  file.SetMetadata("lift", config_.lift->Describe());
  file.SetMetadata("family", config_.family);
  file.SetMetadata("policy", std::string(EnumName(config_.policy)));
  file.SetMetadata("capacity", StrCat(config_.capacity));
  file.SetMetadata("segments", StrCat(size_));
}

std::string SegmentLibrary::Encode() const {
  TensorFileBuilder file;
  Write(file);
  return file.Encode();
}

void SegmentLibrary::SaveFile(const std::filesystem::path& path) const {
  TensorFileBuilder file;
  Write(file);
  file.Write(path);
}

namespace {

void RequireLibrary(const TensorFile& file) {
  const auto format = file.metadata().find("format");
  if (format == file.metadata().end() || format->second != kFormat) {
    throw UserError(StrCat(file.source(), ": not a segment library"));
  }
}

}  // namespace

SegmentLibrary SegmentLibrary::FromFile(const TensorFile& file, const LibraryLoadOptions& options) {
  RequireLibrary(file);
  const Archive state(file);
  SegmentLibrary library = FromState(state, options);
  state.RequireAllUsed();
  return library;
}

SegmentLibrary SegmentLibrary::Parse(std::span<const std::byte> bytes, std::string_view source,
                                     const LibraryLoadOptions& options) {
  return FromFile(TensorFile::Parse(bytes, source), options);
}

SegmentLibrary SegmentLibrary::LoadFile(const std::filesystem::path& path,
                                        const LibraryLoadOptions& options) {
  RequireLibrary(TensorFile::ReadHeader(path));  // before gigabytes of something else are read
  return FromFile(TensorFile::Read(path), options);
}

std::string SegmentLibrary::ReadContents(const std::filesystem::path& path) {
  RequireLibrary(TensorFile::ReadHeader(path));
  return ReadWholeFile(path, kMaxFileBytes);
}

}  // namespace msrl
