#include "msrl/transfer/foreign_dataset.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "msrl/datasets/hdf5.h"
#include "msrl/testing/slurp.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::Slurp;
using ::msrl::testing::UserErrorText;

const std::string kMap = R"(
env = "rod"
reward_scale = 8
action_low = -2.0
action_high = 2.0
[geometry]
position = [1, 0]
goal = { at = [0.5, 1] }
motion = { entries = 2, unit = 8 }
posture = 1
)";

DatasetMap Map(const std::string& text = kMap) { return ParseDatasetMap(text, "map.toml"); }

TEST(DatasetMap, SlotsAreAffine) {
  const DatasetMap map = Map();
  EXPECT_EQ(map.env, "rod");
  EXPECT_EQ(map.reward_scale, 8.0);
  EXPECT_EQ(map.geometry.MinObservationSize(), 3);
  Eigen::MatrixXf observations(3, 2);
  observations << 1.0F, 0.25F,  //
      -0.5F, 0.75F,             //
      4.0F, 80.0F;
  Eigen::MatrixXf expected = Eigen::MatrixXf::Zero(kGeometrySize, 2);
  expected.col(0) << -0.5F, 1.0F, 1.0F, 0.0F, 0.5F, 0.0F, -0.5F, 0.0F;
  expected.col(1) << 0.75F, 0.25F, -0.25F, 0.75F, 4.0F, 0.0F, 0.75F, 0.0F;  // 10 is cut to 4
  EXPECT_EQ(map.geometry.Apply(observations), expected);
}

TEST(DatasetMap, AGoalThatIsAPlaceHasTheUnitOfThePosition) {
  const SlotMap slots =
      Map("env='a'\n[geometry]\nposition = {entries = [0, 1], unit = 2}\ngoal = {place = [2, 3]}\n")
          .geometry;
  const Eigen::Vector4f observation(1.0F, 2.0F, 5.0F, 4.0F);
  const Eigen::MatrixXf geometry = slots.Apply(observation);
  EXPECT_EQ(geometry(0, 0), 0.5F);
  EXPECT_EQ(geometry(2, 0), 2.0F);
  EXPECT_EQ(geometry(3, 0), 1.0F);
}

TEST(DatasetMap, MistakesAreToldWithTheirLine) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"env = 'a'", "no section [geometry]"},
      {"[geometry]\n", "there is no env"},
      {"env = 'a'\n[geometry]\nposture = [1, 2]\n", "map.toml:3: posture has 1 to 1 slots, got 2"},
      {"env = 'a'\n[geometry]\npostur = 1\n", "did you mean 'posture'?"},
      {"env = 'a'\n[geometry]\nposition = -1\n", "must name entries"},
      {"env = 'a'\n[geometry]\nposition = 1.5\n", "must name entries"},
      {"env = 'a'\n[geometry]\nmotion = {entries = 1, unit = 0}\n", "unit must be more than 0"},
      {"env = 'a'\n[geometry]\ngoal = {at = [1, 2]}\n", "no position to see it from"},
      {"env = 'a'\n[geometry]\ngoal = {at = 1, place = 2}\n", "one of them only"},
      {"env = 'a'\ngamma = 1\n[geometry]\n", "map.toml:2: gamma must be less than 1"},
      {"env = 'a'\naction_low = [1]\naction_high = [0]\n[geometry]\n", "a pair for each action"},
      {"env = 'a'\nreward_scale = inf\n[geometry]\n", "must be a finite number"},
      {"env = \n", "not TOML"},
  };
  for (const auto& [text, what] : cases) {
    const std::string error = UserErrorText([&text = text] { Map(text); });
    EXPECT_NE(error.find(what), std::string::npos) << text << "\n" << error;
  }
}

// Flat lists of five steps: two episodes of 3 and 2, and what follows on each.
struct Flat {
  std::vector<float> observations{0, 1, 2, 10, 11};
  std::vector<float> next{1, 2, 3, 11, 12};
  std::vector<float> actions{-2, 0, 2, 1, -1};
  std::vector<float> rewards{1, 2, 3, 4, 5};
  std::vector<std::uint8_t> terminals{0, 0, 1, 0, 0};
  std::vector<std::uint8_t> timeouts{0, 0, 0, 0, 1};
  bool with_next = true;

  EpisodeFile Parse(const std::string& map =
                        "env='a'\naction_low=-2\naction_high=2\n[geometry]\nposture=0\n") const {
    internal::H5Writer writer;
    writer.Floats("observations", observations, {5, 1});
    if (with_next) writer.Floats("next_observations", next, {5, 1});
    writer.Floats("actions", actions, {5, actions.size() / 5});
    writer.Floats("rewards", rewards, {5});
    writer.Bools("terminals", terminals, {5});
    writer.Bools("timeouts", timeouts, {5});
    const std::string bytes = writer.Finish();
    return ParseForeignEpisodes(std::as_bytes(std::span(bytes)), "flat.hdf5", Map(map));
  }
};

TEST(ForeignDataset, FlatListsAreCutIntoEpisodes) {
  const EpisodeFile file = Flat().Parse();
  ASSERT_EQ(file.episodes.size(), 2U);
  const StoredEpisode& first = file.episodes[0];
  EXPECT_EQ(first.observations, (Eigen::MatrixXf(1, 4) << 0, 1, 2, 3).finished());
  EXPECT_EQ(first.actions, (Eigen::MatrixXf(1, 3) << -1, 0, 1).finished());
  EXPECT_EQ(first.rewards, Eigen::Vector3d(1, 2, 3));
  EXPECT_EQ(first.geometry.row(6), (Eigen::RowVectorXf(4) << 0, 1, 2, 3).finished());
  EXPECT_TRUE(first.terminated);
  EXPECT_FALSE(first.truncated);
  EXPECT_EQ(file.episodes[1].observations, (Eigen::MatrixXf(1, 3) << 10, 11, 12).finished());
  EXPECT_FALSE(file.episodes[1].terminated);
  EXPECT_TRUE(file.episodes[1].truncated);
}

TEST(ForeignDataset, OnePairOfBoundsIsForEveryAction) {
  Flat flat;
  flat.actions = {-2, 2, 0, 1, 2, 0, 1, -1, -1, -2};
  const Eigen::MatrixXf expected = (Eigen::MatrixXf(2, 3) << -1, 0, 1, 1, 0.5, 0).finished();
  EXPECT_EQ(flat.Parse().episodes[0].actions, expected);
  EXPECT_EQ(flat.Parse("env='a'\naction_low=[-2,-2]\naction_high=[2,2]\n[geometry]\n")
                .episodes[0]
                .actions,
            expected);
}

TEST(ForeignDataset, WithoutNextObservationsTheLastStepIsLeftOut) {
  Flat flat;
  flat.with_next = false;
  const EpisodeFile file = flat.Parse();
  ASSERT_EQ(file.episodes.size(), 2U);
  EXPECT_EQ(file.episodes[0].observations, (Eigen::MatrixXf(1, 3) << 0, 1, 2).finished());
  EXPECT_EQ(file.episodes[0].rewards, Eigen::Vector2d(1, 2));
  EXPECT_FALSE(file.episodes[0].terminated);
  EXPECT_TRUE(file.episodes[0].truncated);
  EXPECT_EQ(file.episodes[1].horizon(), 1);
}

// Some files join episodes without a word.
TEST(ForeignDataset, AnObservationThatDoesNotFollowBeginsAnEpisode) {
  Flat flat;
  flat.terminals[2] = 0;
  const EpisodeFile file = flat.Parse();
  ASSERT_EQ(file.episodes.size(), 2U);
  EXPECT_EQ(file.episodes[0].horizon(), 3);
  EXPECT_FALSE(file.episodes[0].terminated);
  EXPECT_TRUE(file.episodes[0].truncated);
}

TEST(ForeignDataset, MistakesAreTold) {
  const auto expect = [](const auto& f, const std::string& what) {
    const std::string error = UserErrorText(f);
    EXPECT_NE(error.find(what), std::string::npos) << error;
  };
  expect([] { Flat().Parse("env='a'\n[geometry]\n"); }, "actions beyond [-1, 1]");
  expect([] { Flat().Parse("env='a'\naction_low=-2\naction_high=2\n[geometry]\nposture=1\n"); },
         "have 1 entries; the map names entry 1");
  expect([] { Flat().Parse("env='a'\naction_low=[0,0]\naction_high=[1,1]\n[geometry]\n"); },
         "has 1 numbers, action_low 2");
  expect([] { Flat().Parse("env='a'\nobservations=['o']\n[geometry]\n"); }, "observations/o");
  Flat broken;
  broken.rewards[1] = std::nanf("");
  expect([&] { broken.Parse(); }, "not finite");
  const std::string nothing = internal::H5Writer().Finish();
  expect([&] { ParseForeignEpisodes(std::as_bytes(std::span(nothing)), "x", Map()); },
         "neither episode_0 (Minari) nor");
  expect([] { ParseForeignEpisodes({}, "x", Map()); }, "not an HDF5 file");
}

class MinariTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("msrl_minari_" + std::to_string(getpid()));
};

// What is written as a dataset of Minari is read as one, numbers and ends the same.
TEST_F(MinariTest, ThereAndBack) {
  EpisodeFile file = Flat().Parse();
  AddValues(file);
  EXPECT_EQ(file.episodes[0].values.count("mc"), 1U);
  EXPECT_EQ(file.episodes[0].values.count("fitted"), 1U);
  const auto data = WriteMinari(folder_, {"msrl/rod-v0", 0}, file, Existing::kRefuse);
  const auto metadata = nlohmann::json::parse(Slurp(data / "metadata.json"));
  EXPECT_EQ(metadata.at("total_steps"), 5);
  EXPECT_EQ(metadata.at("dataset_id"), "msrl/rod-v0");
  const EpisodeFile back =
      ReadForeignEpisodes(folder_ / "msrl/rod-v0", Map("env='a'\n[geometry]\nposture=0\n"));
  ASSERT_EQ(back.episodes.size(), 2U);
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_EQ(back.episodes[k].observations, file.episodes[k].observations);
    EXPECT_EQ(back.episodes[k].actions, file.episodes[k].actions);
    EXPECT_EQ(back.episodes[k].rewards, file.episodes[k].rewards);
    EXPECT_EQ(back.episodes[k].geometry, file.episodes[k].geometry);
    EXPECT_EQ(back.episodes[k].terminated, file.episodes[k].terminated);
  }
  EXPECT_THROW(WriteMinari(folder_, {"msrl/rod-v0", 0}, file, Existing::kRefuse), UserError);
  for (const char* id : {"rod", "../rod-v0", "a/b/c-v0", "rod-v", "-v0", "a b-v0"}) {
    EXPECT_THROW(WriteMinari(folder_, {id, 0}, file, Existing::kRefuse), UserError) << id;
  }
  file.episodes[1].env = "other";
  EXPECT_NE(UserErrorText([&] {
              WriteMinari(folder_, {"x-v0", 0}, file, Existing::kRefuse);
            }).find("one environment"),
            std::string::npos);
}

}  // namespace
}  // namespace msrl
