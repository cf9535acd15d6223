#include "msrl/memory/segment_library.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "msrl/memory/context_scan.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/archived.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;
using ::msrl::testing::AllocationCount;
using ::msrl::testing::Archived;
using ::msrl::testing::Unarchive;
using ::msrl::testing::UserErrorText;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr auto kPolicies = EnumValues<LibraryPolicy>();

Lift::Ptr TestLift() { return Lift::Make({LiftKind::kCompact, 2, 2, {{"x", 1.0}, {"y", 2.0}}}); }

SegmentLibraryConfig TestConfig(std::int64_t capacity, LibraryPolicy policy = LibraryPolicy::kFifo,
                                bool discrete = false) {
  SegmentLibraryConfig config;
  config.capacity = capacity;
  config.policy = policy;
  config.lift = TestLift();
  config.max_length = 3;
  config.context_size = 3;
  config.action_size = discrete ? 1 : 2;
  config.observation_size = 4;
  config.discrete = discrete;
  config.family = "rooms";
  return config;
}

// A segment with its own storage.
struct Owned {
  std::int64_t length = 1;
  Eigen::MatrixXd psi;  // one column per step
  SegmentMatrix matrix{TestLift()};
  std::vector<float> action, context, observation, geometry;
  bool terminated = false;
  std::string env;
  double reward_sum = 0.0;
  std::int64_t episode = 0;

  SegmentView View() const {
    SegmentView view;
    view.length = length;
    view.psi = {psi.data(), static_cast<std::size_t>(psi.rows())};
    view.matrix = &matrix;
    view.head_action = action;
    view.context = context;
    view.tail_observation = observation;
    view.tail_geometry = geometry;
    view.terminated = terminated;
    view.env = env;
    view.reward_sum = reward_sum;
    view.episode = episode;
    return view;
  }
};

std::vector<float> Draw(Rng& rng, int count, bool coarse) {
  std::vector<float> values(static_cast<std::size_t>(count));
  // coarse numbers make equal distances
  for (float& v : values)
    v = coarse ? static_cast<float>(rng.Index(3)) : static_cast<float>(rng.Normal());
  return values;
}

Owned DrawSegment(const SegmentLibraryConfig& config, Rng& rng, bool coarse = false) {
  Owned s;
  s.length = 1 + rng.Index(config.max_length);
  s.psi.resize(config.lift->m(), s.length);
  for (Index t = 0; t < s.length; ++t) {
    const Eigen::Vector2d x(rng.Normal(), rng.Normal());
    const Eigen::Vector2d a(rng.Normal(), rng.Normal());
    const Eigen::Vector2d next(rng.Normal(), rng.Normal());
    config.lift->Apply(x, a, rng.Normal(), next, s.psi.col(t));
    s.matrix.AddStep(s.psi.col(t));
  }
  s.action = Draw(rng, config.action_size, coarse || config.discrete);
  s.context = Draw(rng, config.context_size, coarse);
  s.observation = Draw(rng, config.observation_size, false);
  s.geometry = Draw(rng, 2, false);
  s.terminated = rng.Bernoulli(0.3);
  s.env = rng.Bernoulli(0.5) ? "four-rooms" : "";
  s.reward_sum = coarse ? static_cast<double>(rng.Index(3)) : rng.Normal();
  s.episode = rng.Index(10);
  return s;
}

SegmentLibrary ParseFile(const std::string& bytes, const LibraryLoadOptions& options = {}) {
  return SegmentLibrary::Parse(std::as_bytes(std::span(bytes)), "test", options);
}

struct Kept {
  Owned segment;
  std::int64_t sequence;
  std::int64_t uses = 0;
};

float Squared(const std::vector<float>& a, std::span<const float> b) {
  float sum = 0.0F;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

// By sorting all of them.
std::vector<Neighbour> PlainQuery(const std::vector<Kept>& model, std::span<const float> context,
                                  const QueryOptions& options, bool discrete) {
  std::vector<Neighbour> found;
  for (std::size_t slot = 0; slot < model.size(); ++slot) {
    const Owned& s = model[slot].segment;
    const float squared = Squared(s.context, context);
    if (!(squared <= options.radius * options.radius)) continue;
    if (!options.head_action.empty()) {
      const bool fits = discrete ? s.action[0] == options.head_action[0]
                                 : Squared(s.action, options.head_action) <=
                                       options.action_radius * options.action_radius;
      if (!fits) continue;
    }
    found.push_back({static_cast<std::int64_t>(slot), std::sqrt(squared)});
  }
  const auto before = [&](const Neighbour& a, const Neighbour& b) {
    const auto& x = model[static_cast<std::size_t>(a.slot)];
    const auto& y = model[static_cast<std::size_t>(b.slot)];
    const float dx = Squared(x.segment.context, context);
    const float dy = Squared(y.segment.context, context);
    return dx != dy ? dx < dy : x.sequence < y.sequence;
  };
  std::ranges::sort(found, before);
  if (found.size() > static_cast<std::size_t>(options.k))
    found.resize(static_cast<std::size_t>(options.k));
  return found;
}

void ExpectEqualsModel(const SegmentLibrary& library, const std::vector<Kept>& model) {
  RC_ASSERT(library.size() == static_cast<std::int64_t>(model.size()));
  for (std::int64_t slot = 0; slot < library.size(); ++slot) {
    const Kept& kept = model[static_cast<std::size_t>(slot)];
    const Owned& s = kept.segment;
    RC_ASSERT(std::ranges::equal(library.head_action(slot), s.action));
    RC_ASSERT(std::ranges::equal(library.context(slot), s.context));
    RC_ASSERT(std::ranges::equal(library.tail_observation(slot), s.observation));
    RC_ASSERT(std::ranges::equal(library.tail_geometry(slot), s.geometry));
    RC_ASSERT(library.terminated(slot) == s.terminated);
    RC_ASSERT(library.env(slot) == s.env);
    RC_ASSERT(library.reward_sum(slot) == s.reward_sum);
    RC_ASSERT(library.length(slot) == s.length);
    RC_ASSERT(library.episode(slot) == s.episode);
    RC_ASSERT(library.sequence(slot) == kept.sequence);
    RC_ASSERT(library.uses(slot) == kept.uses);
    // to the bit, also on top of something
    SegmentMatrix z(library.config().lift);
    z.AddStep(Eigen::VectorXd::Constant(z.dim(), 0.1));
    SegmentMatrix expected = z;
    if (s.length == 1) {
      expected.AddStep(s.psi.col(0));
    } else {
      expected += s.matrix;
    }
    library.AddMatrixTo(slot, z);
    RC_ASSERT(z == expected);
  }
}

RC_GTEST_PROP(SegmentLibrary, HoldsAndFindsWhatANaiveListDoes, ()) {
  const auto policy = *rc::gen::elementOf(kPolicies);
  const bool discrete = *rc::gen::arbitrary<bool>();
  const bool coarse = *rc::gen::arbitrary<bool>();
  const auto capacity = *rc::gen::inRange<std::int64_t>(1, 60);
  const int adds = *rc::gen::inRange(0, 150);
  const int reload_at = *rc::gen::inRange(0, 150);
  Rng rng(*rc::gen::arbitrary<std::uint64_t>(), "segments");
  Rng policy_rng(7, "library");
  Rng model_rng(7, "library");
  const SegmentLibraryConfig config = TestConfig(capacity, policy, discrete);
  SegmentLibrary library(config);
  std::vector<Kept> model;
  for (int n = 0; n < adds; ++n) {
    if (n == reload_at) {
      const std::string bytes = Archived(library);
      SegmentLibrary loaded(config);
      Unarchive(bytes, loaded);
      RC_ASSERT(Archived(loaded) == bytes);
      library = std::move(loaded);
    }
    const Owned segment = DrawSegment(config, rng, coarse);
    std::int64_t slot = static_cast<std::int64_t>(model.size());
    if (slot == capacity) {
      const auto value = [](const Owned& s) {
        return s.reward_sum / static_cast<double>(s.length);
      };
      const auto worst = std::ranges::min_element(model, [&](const Kept& a, const Kept& b) {
        const double x = value(a.segment);
        const double y = value(b.segment);
        return x != y ? x < y : a.sequence < b.sequence;
      });
      const auto oldest = std::ranges::min_element(model, {}, &Kept::sequence);
      if (policy == LibraryPolicy::kFifo) slot = oldest - model.begin();
      if (policy == LibraryPolicy::kReservoir) slot = model_rng.Index(n + 1);
      if (policy == LibraryPolicy::kByValue)
        slot = value(segment) < value(worst->segment) ? capacity : worst - model.begin();
      if (slot >= capacity) slot = -1;
    } else {
      model.emplace_back();
    }
    RC_ASSERT(library.Add(segment.View(), policy_rng) == slot);
    if (slot < 0) continue;
    model[static_cast<std::size_t>(slot)] = {segment, n};
    if (rng.Bernoulli(0.3)) {
      library.NoteUse(slot);
      ++model[static_cast<std::size_t>(slot)].uses;
    }
  }
  ExpectEqualsModel(library, model);
  for (int i = 0; i < 5; ++i) {
    const std::vector<float> context = Draw(rng, config.context_size, coarse);
    const std::vector<float> action = Draw(rng, config.action_size, coarse || discrete);
    QueryOptions options;
    options.k = 1 + static_cast<int>(rng.Index(10));
    if (rng.Bernoulli(0.5)) options.radius = static_cast<float>(rng.Uniform(0.0, 3.0));
    if (rng.Bernoulli(0.5)) options.head_action = action;
    options.action_radius = 1.0F;
    std::vector<Neighbour> out(12);
    const int count = library.Query(context, options, out);
    out.resize(static_cast<std::size_t>(count));
    RC_ASSERT(out == PlainQuery(model, context, options, discrete));
  }
}

TEST(ContextScan, AllInstructionSetsGiveTheSameBits) {
  const internal::ScanKernel* const fast = internal::Avx2Scan();
  if (fast == nullptr) GTEST_SKIP() << "this processor has no AVX2";
  Rng rng(5, "scan");
  for (const int size : {1, 3, 8, 27}) {
    constexpr std::int64_t kBlocks = 40;
    std::vector<float> blocks(static_cast<std::size_t>(kBlocks * size * internal::kScanBlock));
    for (float& v : blocks) v = static_cast<float>(rng.Normal());
    blocks[5] = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> query(static_cast<std::size_t>(size));
    for (float& v : query) v = static_cast<float>(rng.Normal());
    int found = 0;
    for (const float bound : {0.0F, 0.5F, 1.5F * static_cast<float>(size), kInfinity}) {
      for (std::int64_t begin = 0; begin <= kBlocks; ++begin) {
        std::vector<float> a(internal::kScanBlock, -1.0F);
        std::vector<float> b(internal::kScanBlock, -1.0F);
        const auto block_a =
            fast->next_within(blocks.data(), begin, kBlocks, size, query.data(), bound, a.data());
        const auto block_b = internal::PortableScan().next_within(
            blocks.data(), begin, kBlocks, size, query.data(), bound, b.data());
        ASSERT_EQ(block_a, block_b);
        ASSERT_EQ(0, std::memcmp(a.data(), b.data(), sizeof(float) * a.size()));
        found += block_a < kBlocks ? 1 : 0;
      }
    }
    EXPECT_GT(found, kBlocks);
  }
}

TEST(SegmentLibrary, ReservoirKeepsEverySegmentWithTheSameProbability) {
  SegmentLibraryConfig config = TestConfig(10, LibraryPolicy::kReservoir);
  config.max_length = 1;
  Rng rng(1, "segments");
  const Owned segment = DrawSegment(config, rng);
  Rng policy_rng(3, "library");
  constexpr int kOffered = 40;
  constexpr int kRounds = 4000;
  std::vector<int> kept(kOffered, 0);
  for (int round = 0; round < kRounds; ++round) {
    SegmentLibrary library(config);
    for (int n = 0; n < kOffered; ++n) library.Add(segment.View(), policy_rng);
    for (std::int64_t slot = 0; slot < 10; ++slot)
      ++kept[static_cast<std::size_t>(library.sequence(slot))];
  }
  const double expected = kRounds * 10.0 / kOffered;
  for (const int count : kept) EXPECT_NEAR(count, expected, 5 * std::sqrt(expected));
}

TEST(SegmentLibrary, AddAndQueryDoNotAllocate) {
  for (const LibraryPolicy policy : kPolicies) {
    const SegmentLibraryConfig config = TestConfig(50, policy);
    Rng rng(1, "segments");
    std::vector<Owned> segments;
    for (int n = 0; n < 200; ++n) segments.push_back(DrawSegment(config, rng));
    SegmentLibrary library(config);
    for (int n = 0; n < 10; ++n) library.Add(segments[static_cast<std::size_t>(n)].View(), rng);
    std::vector<Neighbour> out(8);
    SegmentMatrix z(config.lift);
    QueryOptions options;
    options.head_action = segments[0].action;
    options.action_radius = 2.0F;
    const std::int64_t before = AllocationCount();
    for (const Owned& segment : segments) {
      library.Add(segment.View(), rng);
      const int found = library.Query(segment.context, options, out);
      for (int i = 0; i < found; ++i) library.AddMatrixTo(out[static_cast<std::size_t>(i)].slot, z);
    }
    EXPECT_EQ(AllocationCount(), before) << EnumName(policy);
  }
}

TEST(SegmentLibrary, WhatDoesNotFitIsADefect) {
  const SegmentLibraryConfig config = TestConfig(5);
  SegmentLibrary library(config);
  Rng rng(1, "segments");
  const Owned good = DrawSegment(config, rng);
  const auto refused = [&](const std::function<void(Owned&)>& change) {
    Owned bad = good;
    change(bad);
    EXPECT_THROW(library.Add(bad.View(), rng), InvariantError);
  };
  refused([](Owned& s) { s.action.pop_back(); });
  refused([](Owned& s) { s.context[1] = std::nanf(""); });
  refused([](Owned& s) { s.observation.push_back(0.0F); });
  refused([](Owned& s) { s.geometry[0] = kInfinity; });
  refused([](Owned& s) { s.reward_sum = std::nan(""); });
  refused([](Owned& s) { s.length = 4; });
  refused([](Owned& s) { s.length = s.length == 2 ? 3 : 2; });
  EXPECT_EQ(library.offered(), 0);
  library.Add(good.View(), rng);
  EXPECT_THROW(library.length(1), InvariantError);
  EXPECT_THROW(library.NoteUse(-1), InvariantError);
  std::vector<Neighbour> out(3);
  EXPECT_THROW(library.Query(good.context, {.k = 4}, out), InvariantError);
  EXPECT_THROW(library.Query(good.action, {.k = 1}, out), InvariantError);
  SegmentMatrix other(Lift::Make({LiftKind::kCompact, 2, 2, {}}));
  EXPECT_THROW(library.AddMatrixTo(0, other), UserError);
}

TEST(SegmentLibrary, ImpossibleSettingsAreRefused) {
  const auto text = [](const std::function<void(SegmentLibraryConfig&)>& change) {
    SegmentLibraryConfig config = TestConfig(5);
    change(config);
    return UserErrorText([&] { SegmentLibrary{config}; });
  };
  EXPECT_EQ(text([](SegmentLibraryConfig&) {}), "no error");
  EXPECT_NE(text([](auto& c) { c.capacity = 0; }).find("0 segments"), std::string::npos);
  EXPECT_NE(text([](auto& c) { c.max_length = 0; }).find("max_length"), std::string::npos);
}

SegmentLibrary Filled(const SegmentLibraryConfig& config, int adds) {
  Rng rng(1, "segments");
  SegmentLibrary library(config);
  for (int n = 0; n < adds; ++n) library.Add(DrawSegment(config, rng).View(), rng);
  return library;
}

TEST(SegmentLibrary, FileKeepsAllAndSaysWhatItIs) {
  const fs::path path =
      fs::temp_directory_path() / ("msrl_library_" + std::to_string(getpid()) + ".safetensors");
  for (const int adds : {0, 3, 40}) {
    const SegmentLibrary library = Filled(TestConfig(20, LibraryPolicy::kByValue), adds);
    library.SaveFile(path);
    const SegmentLibrary again = SegmentLibrary::LoadFile(path, {.lift = TestLift()});
    EXPECT_EQ(again.Encode(), library.Encode());
    EXPECT_EQ(again.config().lift->spec().slots[1].name, "y");
    EXPECT_EQ(again.config().family, "rooms");
  }
  const TensorFile file = TensorFile::Read(path);
  EXPECT_EQ(file.metadata().at("lift_id"), TestLift()->id().ToString());
  EXPECT_EQ(file.metadata().at("family"), "rooms");
  fs::remove(path);
}

TEST(SegmentLibrary, AnotherLiftOrFamilyIsRefused) {
  const std::string bytes = Filled(TestConfig(20), 30).Encode();
  const Lift::Ptr other = Lift::Make({LiftKind::kCompact, 2, 2, {}});
  const std::string lift_error = UserErrorText([&] { ParseFile(bytes, {.lift = other}); });
  EXPECT_NE(lift_error.find(other->id().ToString()), std::string::npos) << lift_error;
  EXPECT_NE(lift_error.find(TestLift()->id().ToString()), std::string::npos) << lift_error;
  const SegmentLibrary unaligned = ParseFile(bytes, {.lift = other, .unaligned = true});
  SegmentMatrix z(other);
  unaligned.AddMatrixTo(0, z);
  EXPECT_GT(z.HorizonEntry(), 0.5);
  const Lift::Ptr larger = Lift::Make({LiftKind::kCompact, 3, 2, {}});
  EXPECT_NE(
      UserErrorText([&] { ParseFile(bytes, {.lift = larger, .unaligned = true}); }).find("size"),
      std::string::npos);

  const std::string family_error = UserErrorText([&] { ParseFile(bytes, {.family = "arm"}); });
  EXPECT_NE(family_error.find("'rooms'"), std::string::npos) << family_error;
  EXPECT_NE(family_error.find("'arm'"), std::string::npos) << family_error;
  EXPECT_NE(UserErrorText([&] { ParseFile(bytes, {.max_bytes = 1000}); }).find("memory"),
            std::string::npos);
}

TEST(SegmentLibrary, StateOfAnotherConfigurationIsRefused) {
  const std::string bytes = Archived(Filled(TestConfig(20), 30));
  const auto text = [&](const std::function<void(SegmentLibraryConfig&)>& change) {
    SegmentLibraryConfig config = TestConfig(20);
    change(config);
    SegmentLibrary library(config);
    const std::string error = UserErrorText([&] { Unarchive(bytes, library); });
    EXPECT_EQ(library.size(), error == "no error" ? 20 : 0);
    return error;
  };
  const auto names = [&](const char* name, const std::function<void(SegmentLibraryConfig&)>& f) {
    const std::string error = text(f);
    EXPECT_NE(error.find(StrCat(name, " is ")), std::string::npos) << error;
  };
  EXPECT_EQ(text([](auto&) {}), "no error");
  names("capacity", [](auto& c) { c.capacity = 21; });
  names("policy", [](auto& c) { c.policy = LibraryPolicy::kReservoir; });
  names("max_length", [](auto& c) { c.max_length = 4; });
  names("context_size", [](auto& c) { c.context_size = 4; });
  names("action_size", [](auto& c) { c.action_size = 3; });
  names("observation_size", [](auto& c) { c.observation_size = 3; });
  names("family", [](auto& c) { c.family = "arm"; });
  names("exact_limit", [](auto& c) { c.exact_limit = 7; });
  names("lift/id", [](auto& c) { c.lift = Lift::Make({LiftKind::kCompact, 2, 2, {}}); });
}

// The file with one tensor changed, and its checksum put right.
template <typename T>
std::string Changed(const std::string& bytes, const std::string& name,
                    const std::function<void(std::span<T>)>& change) {
  const TensorFile file = TensorFile::Parse(std::as_bytes(std::span(bytes)), "test");
  TensorFileBuilder builder;
  for (const auto& [key, value] : file.metadata()) {
    if (key != "msrl_xxh64") builder.SetMetadata(key, value);
  }
  const auto copy = [&](const TensorInfo& info, auto values) {
    using V = typename decltype(values)::value_type;
    std::vector<std::remove_const_t<V>> copied(values.begin(), values.end());
    if constexpr (std::is_same_v<std::remove_const_t<V>, T>) {
      if (info.name == name) change(copied);
    }
    builder.AddCopy(info.name, std::span<const std::remove_const_t<V>>(copied), info.shape);
  };
  for (const TensorInfo& info : file.tensors()) {
    if (info.type == TensorType::kF32) copy(info, file.F32(info.name, info.shape));
    if (info.type == TensorType::kF64) copy(info, file.F64(info.name, info.shape));
    if (info.type == TensorType::kI64) copy(info, file.I64(info.name, info.shape));
    if (info.type == TensorType::kU8) copy(info, file.U8(info.name, info.shape));
  }
  return builder.Encode();
}

TEST(SegmentLibrary, ImpossibleContentsAreRefused) {
  const std::string bytes = Filled(TestConfig(20), 30).Encode();
  EXPECT_EQ(ParseFile(Changed<float>(bytes, "", {})).size(), 20);
  const auto refused_float = [&](const char* name, float value) {
    const std::string error = UserErrorText(
        [&] { ParseFile(Changed<float>(bytes, name, [=](std::span<float> v) { v[1] = value; })); });
    EXPECT_NE(error.find(name), std::string::npos) << error;
  };
  refused_float("context", std::nanf(""));
  refused_float("head_action", kInfinity);
  refused_float("tail_observation", -kInfinity);
  refused_float("tail_geometry", std::nanf(""));
  const auto refused_double = [&](const char* name, double value) {
    const std::string error = UserErrorText([&] {
      ParseFile(
          Changed<double>(bytes, name, [=](std::span<double> v) { v[v.size() - 1] = value; }));
    });
    EXPECT_NE(error.find(name), std::string::npos) << error;
  };
  refused_double("reward_sum", std::nan(""));
  refused_double("psi", std::nan(""));
  refused_double("psi", 2.0);     // not the constant channel
  refused_double("matrix", 7.0);  // not the length
  const auto refused_int = [&](const char* name, std::int64_t value) {
    const std::string error = UserErrorText(
        [&] { ParseFile(Changed<std::int64_t>(bytes, name, [=](auto v) { v[0] = value; })); });
    EXPECT_NE(error.find(name), std::string::npos) << name << ": " << error;
  };
  refused_int("length", 0);
  refused_int("length", 4);
  refused_int("uses", -1);
  refused_int("tag", 2);
  refused_int("sequence", 30);
  refused_int("sequence", 0);   // long gone
  refused_int("sequence", 21);  // in another slot
  refused_int("offered", -1);
  refused_int("capacity", 0);
  refused_int("capacity", 1'000'000'000);
  refused_int("lift/d", 0);
  refused_int("lift/id", 0);
  EXPECT_NE(UserErrorText([&] {
              ParseFile(Changed<std::uint8_t>(bytes, "terminated", [](auto v) { v[3] = 2; }));
            }).find("terminated"),
            std::string::npos);
  EXPECT_NE(UserErrorText([&] {
              ParseFile(Changed<std::uint8_t>(bytes, "policy", [](auto v) { v[0] = 'x'; }));
            }).find("policy"),
            std::string::npos);

  std::string damaged = bytes;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  EXPECT_NE(UserErrorText([&] { ParseFile(damaged); }).find("checksum"), std::string::npos);
  TensorFileBuilder other;
  other.SetMetadata("format", "something");
  EXPECT_NE(UserErrorText([&] { ParseFile(other.Encode()); }).find("not a segment library"),
            std::string::npos);
}

TEST(SegmentLibrary, DiscreteActionsOfAFileAreWholeNumbers) {
  const std::string bytes = Filled(TestConfig(20, LibraryPolicy::kFifo, true), 30).Encode();
  for (const float bad : {-1.0F, 0.5F}) {
    EXPECT_NE(UserErrorText([&] {
                ParseFile(Changed<float>(bytes, "head_action", [=](auto v) { v[0] = bad; }));
              }).find("head_action"),
              std::string::npos);
  }
}

// A library that is searched through the index: contexts along random walks, or a few points that
// come again and again.
class IndexedTest : public ::testing::TestWithParam<std::tuple<LibraryPolicy, bool>> {
 protected:
  static constexpr std::int64_t kCapacity = 1000;

  IndexedTest() : library_(Config()), walk_(8) {}

  static SegmentLibraryConfig Config() {
    SegmentLibraryConfig config = TestConfig(kCapacity, std::get<0>(GetParam()), true);
    config.max_length = 1;
    config.context_size = 8;
    config.exact_limit = 100;
    return config;
  }
  static bool Coarse() { return std::get<1>(GetParam()); }

  void AddTo(SegmentLibrary& library, int count) {
    for (int n = 0; n < count; ++n) {
      Owned segment = template_;
      segment.psi = Eigen::VectorXd::Ones(library.config().lift->m());
      segment.observation.assign(4, 0.0F);
      segment.geometry.assign(2, 0.0F);
      // action 7 is rare
      segment.action = {rng_.Bernoulli(0.01) ? 7.0F : static_cast<float>(rng_.Index(4))};
      segment.context = NextContext();
      segment.reward_sum = rng_.Normal();
      library.Add(segment.View(), policy_rng_);
    }
  }
  std::vector<float> NextContext() {
    if (Coarse()) {
      std::vector<float> context(8, 0.0F);
      for (std::size_t i = 0; i < 3; ++i) context[i] = static_cast<float>(rng_.Index(3) - 1);
      context[3] = -0.0F;
      return context;
    }
    const bool starts = rng_.Bernoulli(0.01);
    for (float& v : walk_) {
      const auto normal = static_cast<float>(rng_.Normal());
      v = starts ? normal : v + 0.05F * normal;
    }
    return walk_;
  }
  // Near one of the contexts, or equal to it.
  std::vector<float> QueryContext(const SegmentLibrary& library) {
    const std::span<const float> known = library.context(rng_.Index(library.size()));
    std::vector<float> context(known.begin(), known.end());
    if (!Coarse()) {
      for (float& v : context) v += 0.05F * static_cast<float>(rng_.Normal());
    }
    return context;
  }
  // Share of the true neighbours that are found, over many queries; all found must be right.
  double Recall(const SegmentLibrary& library, const QueryOptions& options) {
    int wanted = 0;
    int got = 0;
    for (int i = 0; i < 100; ++i) {
      const std::vector<float> context = QueryContext(library);
      std::vector<Neighbour> found(8);
      std::vector<Neighbour> truth(8);
      found.resize(static_cast<std::size_t>(library.Query(context, options, found)));
      truth.resize(static_cast<std::size_t>(library.QueryExactly(context, options, truth)));
      wanted += static_cast<int>(truth.size());
      for (std::size_t j = 0; j < found.size(); ++j) {
        const auto [slot, distance] = found[j];
        const std::span<const float> own = library.context(slot);
        EXPECT_EQ(distance, std::sqrt(Squared({own.begin(), own.end()}, context)));
        EXPECT_LE(distance, options.radius);
        if (!options.head_action.empty()) {
          EXPECT_EQ(library.head_action(slot)[0], options.head_action[0]);
        }
        if (j > 0) {
          EXPECT_GE(distance, found[j - 1].distance);
        }
        EXPECT_EQ(std::ranges::count(found, slot, &Neighbour::slot), 1);
        got += std::ranges::find(truth, found[j]) != truth.end() ? 1 : 0;
      }
    }
    EXPECT_GT(wanted, 0);
    return static_cast<double>(got) / wanted;
  }

  Rng rng_{1, "segments"};
  Rng policy_rng_{2, "library"};
  SegmentLibrary library_;
  std::vector<float> walk_;
  Owned template_;
};

TEST_P(IndexedTest, FindsNearlyAllNeighboursHoweverManyWereReplaced) {
  const float rare = 7.0F;
  const float common = 2.0F;
  const float missing = 9.0F;
  for (int round = 0; round < 9; ++round) {
    AddTo(library_, 400);
    const double least = Coarse() ? 1.0 : 0.97;
    EXPECT_GE(Recall(library_, {.k = 8}), least) << round;
    EXPECT_GE(Recall(library_, {.k = 8, .radius = Coarse() ? 1.0F : 0.4F}), least) << round;
    EXPECT_GE(Recall(library_, {.k = 3, .head_action = {&common, 1}}), least) << round;
    // the nearest of half a dozen are far away, behind all that does not pass
    EXPECT_GE(Recall(library_, {.k = 2, .head_action = {&rare, 1}}), Coarse() ? 1.0 : 0.9) << round;
    std::vector<Neighbour> out(8);
    EXPECT_EQ(library_.Query(NextContext(), {.k = 8, .head_action = {&missing, 1}}, out), 0);
  }
}

TEST_P(IndexedTest, GoesOnBitForBitAfterLoading) {
  for (const int adds : {0, 50, 700, 300, 450}) {
    AddTo(library_, adds);
    const std::string bytes = Archived(library_);
    SegmentLibrary loaded(Config());
    Unarchive(bytes, loaded);
    ASSERT_TRUE(Archived(loaded) == bytes) << adds;
    const Rng rng = rng_;
    const Rng policy_rng = policy_rng_;
    const std::vector<float> walk = walk_;
    AddTo(library_, 200);
    rng_ = rng;
    policy_rng_ = policy_rng;
    walk_ = walk;
    AddTo(loaded, 200);
    ASSERT_TRUE(Archived(loaded) == Archived(library_)) << adds;
    std::vector<Neighbour> a(8);
    std::vector<Neighbour> b(8);
    for (int i = 0; i < 20; ++i) {
      const std::vector<float> context = NextContext();
      ASSERT_EQ(library_.Query(context, {.k = 8}, a), loaded.Query(context, {.k = 8}, b));
      ASSERT_EQ(a, b);
    }
  }
}

TEST_P(IndexedTest, QueriesDoNotAllocate) {
  AddTo(library_, 1500);
  const float action = 7.0F;
  std::vector<Neighbour> out(8);
  std::vector<std::vector<float>> contexts;
  for (int i = 0; i < 50; ++i) contexts.push_back(NextContext());
  const std::int64_t before = AllocationCount();
  for (const std::vector<float>& context : contexts) {
    library_.Query(context, {.k = 8}, out);
    library_.Query(context, {.k = 8, .head_action = {&action, 1}}, out);
  }
  EXPECT_EQ(AllocationCount(), before);
}

TEST_P(IndexedTest, ADamagedIndexIsRefusedOrWorks) {
  AddTo(library_, 1350);
  const std::string bytes = library_.Encode();
  const float action = 1.0F;
  int refused = 0;
  for (const char* name :
       {"index/young/lowest", "index/old/lowest", "index/young/upper", "index/old/upper"}) {
    for (int i = 0; i < 6; ++i) {
      const std::string damaged = Changed<std::uint8_t>(bytes, name, [&](auto v) {
        if (v.empty()) return;
        v[static_cast<std::size_t>(rng_.Index(std::ssize(v)))] ^=
            static_cast<std::uint8_t>(1 + rng_.Index(255));
      });
      try {
        SegmentLibrary loaded = ParseFile(damaged);
        std::vector<Neighbour> out(8);
        loaded.Query(NextContext(), {.k = 8, .head_action = {&action, 1}}, out);
        AddTo(loaded, 20);
      } catch (const UserError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 4);
  const auto refused_int = [&](const std::string& name, std::int64_t value) {
    const std::string error = UserErrorText([&] {
      ParseFile(Changed<std::int64_t>(bytes, name, [=](auto v) { v[v.size() / 2] = value; }));
    });
    EXPECT_NE(error.find(name), std::string::npos) << error;
  };
  refused_int("index/cycle", 0);
  refused_int("index/cursor", kCapacity);
  refused_int("index/location", -1);
  refused_int("index/location", 1'000'000);
  refused_int("index/young/nodes", 1'000'000);
  refused_int("index/young/nodes", -1);
}

INSTANTIATE_TEST_SUITE_P(All, IndexedTest,
                         ::testing::Combine(::testing::ValuesIn(kPolicies), ::testing::Bool()),
                         [](const auto& test) {
                           std::string name(EnumName(std::get<0>(test.param)));
                           std::erase(name, '-');
                           return name + (std::get<1>(test.param) ? "Repeating" : "Walks");
                         });

TEST(SegmentLibrary, TakesTheSegmentsOfAnother) {
  for (const LibraryPolicy policy : kPolicies) {
    SCOPED_TRACE(EnumName(policy));
    Rng rng(3, "other");
    SegmentLibrary other(TestConfig(20, policy));
    for (int i = 0; i < 50; ++i) other.Add(DrawSegment(other.config(), rng).View(), rng);
    other.NoteUse(7);

    SegmentLibrary all(TestConfig(30));
    all.AddAll(other, "other", rng);
    ASSERT_EQ(all.size(), 20);
    EXPECT_EQ(all.offered(), 20);
    std::vector<std::int64_t> slots(20);
    for (std::int64_t slot = 0; slot < 20; ++slot) slots[static_cast<std::size_t>(slot)] = slot;
    std::ranges::sort(slots, {}, [&](std::int64_t slot) { return other.sequence(slot); });
    const auto same = [](std::span<const float> a, std::span<const float> b) {
      return std::ranges::equal(a, b);
    };
    int longer = 0;
    for (std::int64_t slot = 0; slot < 20; ++slot) {
      const std::int64_t from = slots[static_cast<std::size_t>(slot)];
      SegmentMatrix ours(TestLift()), theirs(TestLift());
      all.AddMatrixTo(slot, ours);
      other.AddMatrixTo(from, theirs);
      EXPECT_EQ(ours, theirs);
      EXPECT_TRUE(same(all.head_action(slot), other.head_action(from)));
      EXPECT_TRUE(same(all.context(slot), other.context(from)));
      EXPECT_TRUE(same(all.tail_observation(slot), other.tail_observation(from)));
      EXPECT_TRUE(same(all.tail_geometry(slot), other.tail_geometry(from)));
      EXPECT_EQ(all.terminated(slot), other.terminated(from));
      EXPECT_EQ(all.env(slot), other.env(from));
      EXPECT_EQ(all.reward_sum(slot), other.reward_sum(from));
      EXPECT_EQ(all.length(slot), other.length(from));
      EXPECT_EQ(all.episode(slot), other.episode(from));
      EXPECT_EQ(all.uses(slot), 0);
      longer += all.length(slot) > 1 ? 1 : 0;
    }
    EXPECT_GT(longer, 3);
    EXPECT_LT(longer, 20);

    // what does not fit in makes room as always: here the newest stay
    SegmentLibrary few(TestConfig(5));
    few.AddAll(other, "other", rng);
    EXPECT_EQ(few.size(), 5);
    EXPECT_TRUE(same(few.context(0), other.context(slots[15])));
    EXPECT_TRUE(same(few.context(4), other.context(slots[19])));
  }
}

TEST(SegmentLibrary, TakesNothingThatDoesNotFit) {
  Rng rng(3, "other");
  const auto refusal = [&](const auto& change) {
    SegmentLibraryConfig config = TestConfig(20);
    change(config);
    SegmentLibrary other(config);
    Owned segment = DrawSegment(TestConfig(20), rng);
    while (segment.length != 3) segment = DrawSegment(TestConfig(20), rng);
    if (config.max_length == 3 && config.action_size == 2 && config.observation_size == 4 &&
        config.context_size == 3 && config.lift->id() == TestLift()->id()) {
      other.Add(segment.View(), rng);
    }
    SegmentLibraryConfig ours = TestConfig(20);
    if (config.family == "rooms" && other.size() == 1) ours.max_length = 2;
    SegmentLibrary library(ours);
    const std::string text =
        UserErrorText([&] { library.AddAll(other, "other.safetensors", rng); });
    EXPECT_EQ(library.offered(), 0);
    return text;
  };
  const auto expect = [&](const char* what, const auto& change) {
    const std::string text = refusal(change);
    EXPECT_TRUE(text.starts_with("other.safetensors: ")) << text;
    EXPECT_NE(text.find(what), std::string::npos) << text;
  };
  expect("of the lift", [](SegmentLibraryConfig& c) {
    c.lift = Lift::Make({LiftKind::kCompact, 2, 2, {{"x", 1.0}, {"y", 3.0}}});
  });
  expect("segments of 'corridors' don't fit 'rooms'",
         [](SegmentLibraryConfig& c) { c.family = "corridors"; });
  expect("actions of 3", [](SegmentLibraryConfig& c) { c.action_size = 3; });
  expect("discrete actions", [](SegmentLibraryConfig& c) {
    c.action_size = 1;
    c.discrete = true;
  });
  expect("observations of 5", [](SegmentLibraryConfig& c) { c.observation_size = 5; });
  expect("contexts of 4", [](SegmentLibraryConfig& c) { c.context_size = 4; });
  expect("a segment of 3 steps, this library takes at most 2", [](SegmentLibraryConfig&) {});
}

TEST(SegmentLibrary, AsksForSeveralActionsAtOnce) {
  for (const bool discrete : {false, true}) {
    Rng rng(4, "several");
    SegmentLibrary library(TestConfig(3000, LibraryPolicy::kFifo, discrete));
    int some = 0, full = 0;
    for (int i = 0; i < 60; ++i) {
      for (int n = 0; n < 60; ++n) {
        library.Add(DrawSegment(library.config(), rng, /*coarse=*/i % 2 == 0).View(), rng);
      }
      const std::vector<float> context = Draw(rng, 3, i % 2 == 0);
      const int size = library.config().action_size;
      const std::vector<float> actions = Draw(rng, 5 * size, discrete || i % 2 == 0);
      const QueryOptions options{
          .k = 4, .radius = i % 3 == 0 ? 0.3F : 2.5F, .action_radius = i % 4 == 0 ? 0.05F : 0.8F};
      std::vector<Neighbour> out(20), expected(4);
      std::vector<int> counts(5);
      const std::int64_t before = AllocationCount();
      library.QueryEach(context, options, actions, out, counts);
      EXPECT_EQ(AllocationCount(), before);
      for (int a = 0; a < 5; ++a) {
        QueryOptions one = options;
        one.head_action = std::span(actions).subspan(static_cast<std::size_t>(a * size),
                                                     static_cast<std::size_t>(size));
        const int count = library.Query(context, one, expected);
        ASSERT_EQ(counts[static_cast<std::size_t>(a)], count);
        for (int j = 0; j < count; ++j) {
          EXPECT_EQ(out[static_cast<std::size_t>(4 * a + j)],
                    expected[static_cast<std::size_t>(j)]);
        }
        ++(count == 4 ? full : some);
      }
    }
    EXPECT_GT(some, 20);
    EXPECT_GT(full, 20);
  }
}

}  // namespace
}  // namespace msrl
