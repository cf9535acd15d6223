#include "msrl/artefacts/artefact.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::UserErrorText;

const std::vector<float> kWeights{1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F};
const std::vector<double> kScale{0.5};
const std::vector<std::uint8_t> kFlags{1, 0};

TensorFileBuilder Tensors(std::span<const float> weights = kWeights) {
  TensorFileBuilder tensors;
  tensors.Add("weights", weights, {2, 3});
  tensors.Add("scale", std::span<const double>(kScale), {1});
  tensors.Add("flags", std::span<const std::uint8_t>(kFlags), {2});
  return tensors;
}

ArtefactHeader Example() {
  return {.kind = "example",
          .lift = {0x1234},
          .lift_kind = "compact",
          .shape = {{"width", "3"}},
          .made = {{"sources", "graph-motif"}, {"options", "a = 1; b = \"two\""}}};
}

// The file of the example with one entry changed, taken out ("") or added.
std::string Changed(const std::string& key, const std::string& value) {
  TensorFileBuilder tensors = Tensors();
  const Artefact good = Artefact::Parse(EncodeArtefact(Example(), Tensors()), "good");
  for (const auto& [name, text] : good.tensors().metadata()) {
    if (name != key && name != "msrl_xxh64") tensors.SetMetadata(name, text);
  }
  if (!value.empty()) tensors.SetMetadata(key, value);
  return tensors.Encode();
}

TEST(Artefact, FileKeepsEverything) {
  const std::string contents = EncodeArtefact(Example(), Tensors());
  const Artefact artefact = Artefact::Parse(contents, "file");
  EXPECT_EQ(artefact.header(), Example());
  EXPECT_EQ(artefact.contents(), contents);
  EXPECT_EQ(artefact.source(), "file");
  EXPECT_EQ(artefact.parameter_count(), 7);
  const auto weights = artefact.tensors().F32("weights", {2, 3});
  EXPECT_TRUE(std::equal(weights.begin(), weights.end(), kWeights.begin(), kWeights.end()));
  EXPECT_EQ(artefact.header().Made("sources"), "graph-motif");
  EXPECT_EQ(artefact.header().Made("dataset"), "none");
  EXPECT_EQ(artefact.header().Shape("width"), "3");
  EXPECT_NE(UserErrorText([&] { artefact.header().Shape("depth"); }).find("shape.depth"),
            std::string::npos);
}

TEST(Artefact, KindAndLiftAreRequired) {
  const Artefact artefact = Artefact::Parse(EncodeArtefact(Example(), Tensors()), "file");
  const auto error = [&](const char* kind, LiftId lift, bool any) {
    return UserErrorText([&] { artefact.Require(kind, lift, any); });
  };
  EXPECT_EQ(error("example", {0x1234}, false), "no error");
  EXPECT_EQ(error("example", {5}, true), "no error");
  EXPECT_NE(error("example", {5}, false).find("unaligned"), std::string::npos);
  EXPECT_NE(error("other", {0x1234}, false).find("of kind 'example', not 'other'"),
            std::string::npos);
}

TEST(Artefact, RefusesWhatIsNoArtefact) {
  const auto error = [](const std::string& contents) {
    return UserErrorText([&] { Artefact::Parse(contents, "file"); });
  };
  EXPECT_EQ(error(Changed("made.seed", "7")), "no error");
  EXPECT_EQ(error(Changed("lift_kind", "none")), "no error");
  EXPECT_NE(error("nonsense"), "no error");
  const std::string good = EncodeArtefact(Example(), Tensors());
  for (const std::size_t size : {good.size() - 1, good.size() / 2, std::size_t{20}}) {
    EXPECT_NE(error(good.substr(0, size)), "no error");
  }
  for (const char* key : {"format", "version", "kind", "lift_id", "lift_kind"}) {
    EXPECT_NE(error(Changed(key, "")).find(key), std::string::npos) << key;
    EXPECT_NE(error(Changed(key, "X")), "no error") << key;
  }
  EXPECT_NE(error(Changed("surprise", "1")).find("unknown entry 'surprise'"), std::string::npos);
  EXPECT_NE(error(Changed("made.Who", "me")), "no error");
  EXPECT_NE(error(Changed("version", "2")), "no error");
  EXPECT_NE(error(Changed("made.long", std::string(2'000'000, 'x'))).find("too long"),
            std::string::npos);
  std::vector<float> broken = kWeights;
  broken[4] = NAN;
  EXPECT_NE(error(EncodeArtefact(Example(), Tensors(broken))).find("'weights' holds a number"),
            std::string::npos);
  ArtefactHeader nameless = Example();
  nameless.kind = "";
  EXPECT_THROW(EncodeArtefact(nameless, Tensors()), InvariantError);
}

// What `msrl pretrain` of version 0.1 wrote.
TEST(Artefact, ReadsBranchesFromBeforeThereWereArtefacts) {
  ArtefactTexts old{{"format", "msrl-branch"},
                    {"version", "1"},
                    {"lift_id", "0000000000001234"},
                    {"lift_kind", "compact"},
                    {"features", "selected+endpoints"},
                    {"feature_count", "7"},
                    {"sources", "graph-motif,micro-grid"},
                    {"dataset", "c4fd4b9783f865c5"},
                    {"objective", "shape"},
                    {"control", "none"},
                    {"target", "expert"},
                    {"updates", "5000"},
                    {"seed", "100"},
                    {"gamma", "0.99"},
                    {"reward_unit", "1"},
                    {"width", "64"},
                    {"layers", "2"},
                    {"layer_norm", "1"}};
  const auto parse = [&] {
    TensorFileBuilder tensors = Tensors();
    for (const auto& [key, text] : old) tensors.SetMetadata(key, text);
    return Artefact::Parse(tensors.Encode(), "file").header();
  };
  const ArtefactHeader header = parse();
  EXPECT_EQ(header.kind, "value-branch");
  EXPECT_EQ(header.lift, LiftId{0x1234});
  EXPECT_EQ(header.Shape("width"), "64");
  EXPECT_EQ(header.Made("sources"), "graph-motif,micro-grid");
  EXPECT_EQ(header.Made("updates"), "5000");
  EXPECT_EQ(header.Made("pretrainer"), "value-branch");
  for (const char* key : {"version", "lift_id", "lift_kind", "reward_unit"}) {
    const std::string kept = std::exchange(old[key], "2x");
    EXPECT_NE(UserErrorText(parse), "no error") << key;
    old[key] = kept;
  }
  old["surprise"] = "1";
  EXPECT_NE(UserErrorText(parse).find("unknown entry 'surprise'"), std::string::npos);
  old.erase("surprise");
  old.erase("gamma");
  EXPECT_NE(UserErrorText(parse).find("no entry 'gamma'"), std::string::npos);
}

}  // namespace
}  // namespace msrl
