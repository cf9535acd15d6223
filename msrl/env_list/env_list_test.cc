#include "msrl/env_list/env_list.h"

#include <gtest/gtest.h>

#include "msrl/env/four_rooms.h"
#include "msrl/env/graph_motif.h"
#include "msrl/env/time_limit.h"
#include "msrl/testing/config_fields.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

std::string ErrorOf(std::string_view id, const std::vector<std::string>& options) {
  return testing::UserErrorText([&] { MakeEnv(id, options)->Reset(1); });
}

TEST(Registry, NamesTheNearestEnvironment) {
  EXPECT_EQ(ErrorOf("grph-motif", {}),
            "unknown environment 'grph-motif'; did you mean 'graph-motif'?");
}

TEST(Registry, NamesTheNearestOption) {
  EXPECT_EQ(ErrorOf("graph-motif", {"motiv=path"}),
            "unknown setting 'motiv'; did you mean 'motif'?");
  EXPECT_EQ(ErrorOf("four-rooms-sparse", {"size=3"}), "four-rooms-sparse has no option 'size=3'");
}

TEST(Registry, RefusesImpossibleSizes) {
  EXPECT_EQ(ErrorOf("graph-motif", {"size=3"}), "setting 'size' must be 4 to 32 or 0, got 3");
  EXPECT_EQ(ErrorOf("graph-motif", {"actions=11"}), "setting 'actions' must be 4 to 10, got 11");
  EXPECT_EQ(ErrorOf("micro-grid", {"width=2"}), "setting 'width' must be 3 to 12 or 0, got 2");
  EXPECT_EQ(ErrorOf("micro-grid", {"height=-1"}), "setting 'height' must be 3 to 12 or 0, got -1");
  EXPECT_EQ(ErrorOf("point-rooms", {"horizon=100000"}),
            "setting 'horizon' must be 1 to 400 or 0, got 100000");
  EXPECT_EQ(ErrorOf("dubins-reacher", {"noise=1"}), "setting 'noise' must be 0 to 0.02, got 1");
  EXPECT_EQ(ErrorOf("dubins-reacher", {"task=arm", "reward=survival"}),
            "dubins-reacher: the task 'arm' has no reward style 'survival'");
  EXPECT_EQ(ErrorOf("micro-grid", {"split=test"}),
            "setting 'split' needs one of train held-out, got 'test'");
}

TEST(Registry, EveryExtremeSizeWorks) {
  for (const char* motif : {"path", "cycle", "branch", "reversal-pair", "lollipop"}) {
    for (const char* size : {"size=4", "size=5", "size=32"}) {
      EXPECT_EQ(ErrorOf("graph-motif", {std::string("motif=") + motif, size}), "no error");
    }
  }
  for (const char* kind :
       {"open", "maze", "bottleneck", "blocked", "one-way", "key-door", "loop"}) {
    for (const char* side : {"3", "12"}) {
      EXPECT_EQ(ErrorOf("micro-grid", {std::string("kind=") + kind, std::string("width=") + side,
                                       std::string("height=") + side}),
                "no error");
    }
  }
}

TEST(Registry, UnwrapsToTheConcreteEnvironment) {
  const auto env = MakeEnv("graph-motif");
  EXPECT_NE(dynamic_cast<TimeLimit*>(env.get()), nullptr);
  EXPECT_NE(UnwrapAs<GraphMotif>(*env), nullptr);
}

TEST(Registry, OptionsKeepToTheirRanges) {
  for (const EnvEntry& entry : BuiltinEnvs()) {
    testing::ExpectRangesHold(entry.id, entry.options(), [&](const std::string& assignment) {
      entry.make(std::span(&assignment, 1));
      return std::vector<ConfigField>();
    });
  }
}

// Checkpoints hold the hash of this text: another one would make them unreadable.
TEST(Registry, SnapshotsOfEarlierVersionsStayReadable) {
  std::string all;
  for (const EnvEntry& entry : BuiltinEnvs()) {
    if (entry.id.starts_with("arena-") || entry.id.starts_with("pointmaze-")) continue;  // later
    std::vector<ConfigField> fields = entry.options();
    // a wrapper's, which writes it into its own part of a snapshot
    std::erase_if(fields, [](const ConfigField& field) { return field.key == "hidden"; });
    // came later: PointRooms.SnapshotsFromBeforeDetoursStayReadable
    std::erase_if(fields, [](const ConfigField& field) { return field.key == "detour"; });
    all += IdentityText(fields);
  }
  EXPECT_EQ(Hex(StableHash(all)), "78a03b8045cc05ae");
  EXPECT_EQ(IdentityText(ListFields(FourRoomsConfig{})),
            "# 1 within 0.3 of the goal, or minus a quarter of the distance (sparse | dense)\n"
            "reward = \"sparse\"\n");
}

TEST(Registry, ListsOptionsWithTheirMeaning) {
  for (const EnvEntry& entry : BuiltinEnvs()) {
    const auto env = entry.make({});
    EXPECT_EQ(env->spec().id, entry.id);
    EXPECT_FALSE(env->spec().description.empty()) << entry.id;
    for (const ConfigField& field : entry.options()) {
      EXPECT_FALSE(field.meaning.empty()) << entry.id << " " << field.key;
    }
  }
}

}  // namespace
}  // namespace msrl
