#include "msrl/transfer/pretrainer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "msrl/core/check.h"
#include "msrl/env_list/env_list.h"
#include "msrl/files/atomic_file.h"
#include "msrl/testing/small_pretraining.h"
#include "msrl/testing/user_error.h"
#include "msrl/transfer/collect.h"
#include "msrl/transfer/pretrain_table.h"

namespace msrl {
namespace {

using testing::UserErrorText;

// What every pretrainer promises, by being listed.
class PretrainerContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    checkpoint_ = std::filesystem::path(::testing::TempDir()) /
                  StrCat("pretrainer_test_", GetParam(), "_", getpid(), ".safetensors");
    std::filesystem::remove(checkpoint_);
    for (const Split split : EnumValues<Split>()) {
      CollectOptions options;
      options.episodes = 160;  // enough for rewards of every style
      options.split = split;
      options.targets = entry_.targets(settings_);
      (split == Split::kTrain ? train_ : held_out_) =
          Collect(options, BuiltinEnvs(), BuiltinAgents());
    }
    pretrainer_ = entry_.prepare(settings_, train_, held_out_);
    job_ = Job(5);
  }
  void TearDown() override { std::filesystem::remove(checkpoint_); }

  PretrainJob Job(std::uint64_t seed) const {
    return entry_.JobOf(settings_, SourcesOf(train_), train_.ContentHash(), held_out_.ContentHash(),
                        seed, {{"version", "0"}, {"commit", "test"}});
  }
  // Stops before update `at`; -1: never.
  std::optional<PretrainResult> Train(int at, const std::filesystem::path& checkpoint) const {
    int seen = 0;
    PretrainingOptions options;
    options.checkpoint = checkpoint;
    options.stop = [&] { return seen++ == at; };
    return RunPretraining(*pretrainer_, job_, options);
  }

  const PretrainerEntry& entry_ = BuiltinPretrainers().Find(GetParam());
  const std::vector<std::string> settings_ = [this] {
    std::vector<std::string> settings = testing::SmallSettings(entry_);
    settings.push_back("updates=30");
    return settings;
  }();
  EpisodeFile train_, held_out_;
  std::unique_ptr<Pretrainer> pretrainer_;
  PretrainJob job_;
  std::filesystem::path checkpoint_;
};

TEST_P(PretrainerContract, TheArtefactIsWhatWasAnnounced) {
  const PretrainResult result = Train(-1, {}).value();
  const ArtefactHeader header = Artefact::Parse(result.artefact, "result").header();
  const ArtefactHeader announced = entry_.announce(settings_);
  EXPECT_EQ(header.kind, entry_.id);
  EXPECT_EQ(header.kind, announced.kind);
  EXPECT_EQ(header.lift, announced.lift);
  EXPECT_EQ(header.lift_kind, announced.lift_kind);
  EXPECT_EQ(header.shape, announced.shape);
  for (const char* key : {"pretrainer", "options", "sources", "dataset", "held_out", "target",
                          "control", "seed", "updates", "version", "commit"}) {
    EXPECT_TRUE(header.made.contains(key)) << key;
  }
  for (const auto& [key, text] : job_.made) EXPECT_EQ(header.Made(key), text) << key;
  std::string families;
  for (const std::string& id : SourceFamilies(BuiltinEnvs())) {
    families += (families.empty() ? "" : ",") + id;
  }
  EXPECT_EQ(header.Made("sources"), families);
  EXPECT_EQ(header.Made("seed"), "5");
  std::set<std::string> columns;
  for (const PretrainColumn& column : entry_.columns) {
    columns.insert(column.key);
    EXPECT_TRUE(result.figures.contains(column.key)) << column.key;
  }
  EXPECT_EQ(columns.size(), result.figures.size());
  const PretrainRow row{"mixed", job_.sources, {result.figures}};
  EXPECT_NE(ToJson(std::span(&row, 1), entry_, settings_, "a", "b").find(entry_.id),
            std::string::npos);
}

TEST_P(PretrainerContract, GoesOnBitForBit) {
  const PretrainResult whole = Train(-1, {}).value();
  job_ = Job(6);
  EXPECT_NE(Train(-1, {})->artefact, whole.artefact);
  job_ = Job(5);
  for (const int at : {0, 1, 17}) {
    SCOPED_TRACE(at);
    EXPECT_FALSE(Train(at, checkpoint_));
    EXPECT_FALSE(Train(3, checkpoint_));
    const PretrainResult resumed = Train(-1, checkpoint_).value();
    EXPECT_EQ(resumed.artefact, whole.artefact);
    EXPECT_EQ(resumed.figures, whole.figures);
    // a finished one has nothing left to do
    const std::string state = ReadWholeFile(checkpoint_, 1 << 30);
    EXPECT_EQ(Train(0, checkpoint_)->artefact, whole.artefact);
    EXPECT_EQ(ReadWholeFile(checkpoint_, 1 << 30), state);
    std::filesystem::remove(checkpoint_);
  }
}

TEST_P(PretrainerContract, AnotherJobsStateIsRefused) {
  EXPECT_FALSE(Train(10, checkpoint_));
  const auto error = [this] { return UserErrorText([this] { Train(-1, checkpoint_); }); };
  job_ = Job(6);
  EXPECT_NE(error().find("remove it to begin anew"), std::string::npos);
  job_ = Job(5);
  job_.made["dataset"] = "other";
  EXPECT_NE(error().find("remove it to begin anew"), std::string::npos);
  job_ = Job(5);
  const std::string state = ReadWholeFile(checkpoint_, 1 << 30);
  std::ofstream(checkpoint_, std::ios::binary) << state.substr(0, state.size() / 2);
  EXPECT_NE(error(), "no error");
  std::ofstream(checkpoint_, std::ios::binary) << Train(-1, {})->artefact;
  EXPECT_NE(error().find("no state of a pretraining"), std::string::npos);
  WriteFileAtomically(checkpoint_, state);
  EXPECT_EQ(error(), "no error");
}

TEST_P(PretrainerContract, OptionsAreListedAndChecked) {
  std::set<std::string> keys;
  for (const ConfigField& field : entry_.options({})) {
    EXPECT_TRUE(keys.insert(field.key).second) << field.key;
    EXPECT_FALSE(field.meaning.empty()) << field.key;
  }
  for (const char* key : {"updates", "control"}) EXPECT_TRUE(keys.contains(key)) << key;
  EXPECT_FALSE(entry_.description.empty());
  const std::vector<std::string> unknown{"nonsense=1"};
  EXPECT_NE(UserErrorText([&] { entry_.options(unknown); }), "no error");
  const std::vector<std::string> negative{"updates=-1"};
  EXPECT_NE(UserErrorText([&] { entry_.options(negative); }), "no error");
  job_.sources = {"four-rooms-dense"};
  EXPECT_NE(UserErrorText([&] { Train(-1, {}); }), "no error");
}

INSTANTIATE_TEST_SUITE_P(All, PretrainerContract, ::testing::ValuesIn([] {
                           std::vector<std::string> kinds;
                           for (const PretrainerEntry& e : BuiltinPretrainers())
                             kinds.push_back(e.id);
                           return kinds;
                         }()),
                         [](const auto& which) {
                           std::string name = which.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Pretrainers, AreFoundByKind) {
  PretrainerRegistry own = BuiltinPretrainers();
  EXPECT_EQ(own.FindOrFirst("").id, own.begin()->id);
  EXPECT_EQ(own.FindOrFirst("goal-reading").id, "goal-reading");
  EXPECT_NE(UserErrorText([&] { own.FindOrFirst("value-brunch"); }).find("did you mean"),
            std::string::npos);
  EXPECT_NE(UserErrorText([&] { own.Add(*own.begin()); }).find("there are two"), std::string::npos);
  EXPECT_NE(UserErrorText([] { PretrainerRegistry().FindOrFirst(""); }).find("has no kind"),
            std::string::npos);
}

}  // namespace
}  // namespace msrl
