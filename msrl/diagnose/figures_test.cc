#include "msrl/diagnose/figures.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/diagnose/svg.h"
#include "msrl/files/atomic_file.h"

namespace msrl {
namespace {

constexpr const char* kFiles[] = {"graph-motif.svg", "micro-grid.svg", "point-rooms.svg",
                                  "dubins-reacher.svg"};

// Whether tags are balanced, attributes quoted, and no markup character stands alone in text.
bool IsWellFormed(std::string_view text) {
  std::vector<std::string> open;
  bool had_root = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t tag = std::min(text.find('<', at), text.size());
    const std::string_view between = text.substr(at, tag - at);
    if (between.find('>') != std::string_view::npos) return false;
    for (std::size_t i = between.find('&'); i != std::string_view::npos;
         i = between.find('&', i + 1)) {
      const std::string_view rest = between.substr(i);
      if (!rest.starts_with("&amp;") && !rest.starts_with("&lt;") && !rest.starts_with("&gt;") &&
          !rest.starts_with("&quot;")) {
        return false;
      }
    }
    if (tag == text.size()) break;
    if (open.empty() && had_root) return false;
    had_root = true;
    std::size_t end = tag + 1;
    bool quoted = false;
    for (; end < text.size() && (quoted || text[end] != '>'); ++end) {
      if (text[end] == '"') quoted = !quoted;
      if (text[end] == '<') return false;
    }
    if (end >= text.size()) return false;
    const std::string_view inside = text.substr(tag + 1, end - tag - 1);
    const std::string name(inside.substr(0, inside.find_first_of(" /", 1)));
    if (name.starts_with('/')) {
      if (open.empty() || "/" + open.back() != name) return false;
      open.pop_back();
    } else if (!inside.ends_with('/')) {
      open.push_back(name);
    }
    at = end + 1;
  }
  return had_root && open.empty();
}

class FiguresTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("msrl_figures_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string Read(const std::filesystem::path& path) {
    return ReadWholeFile(path, 10'000'000);
  }

  std::filesystem::path folder_;
};

TEST(WellFormedTest, TellsGoodFromBad) {
  EXPECT_TRUE(IsWellFormed("<a x=\"1 > 0\"><b/>t &amp; u</a>\n"));
  for (const char* bad :
       {"", "<a>", "<a></b>", "<a/><b/>", "<a>&</a>", "<a>></a>", "<a x=\"></a>", "</a>", "<a"}) {
    EXPECT_FALSE(IsWellFormed(bad)) << bad;
  }
}

TEST(SvgTest, EscapesTextAndFormatsNumbers) {
  Svg svg(10, 10, "a < b");
  svg.Text({1, 2}, "x > \"y\" & z");
  const std::string text = svg.Document();
  EXPECT_TRUE(IsWellFormed(text));
  EXPECT_NE(text.find("<title>a &lt; b</title>"), std::string::npos);
  EXPECT_NE(text.find(">x &gt; &quot;y&quot; &amp; z</text>"), std::string::npos);
  EXPECT_EQ(Fixed(-0.001, 2), "0.00");
  EXPECT_EQ(Fixed(-1.255e1, 1), "-12.6");
  EXPECT_EQ(Fixed(1e6, 0), "1000000");
}

TEST_F(FiguresTest, WritesOneSelfContainedPicturePerFamily) {
  std::set<std::string> kinds;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    WriteFigures(folder_ / "new" / "folder", seed);
    for (const char* file : kFiles) {
      const std::string text = Read(folder_ / "new" / "folder" / file);
      ASSERT_TRUE(IsWellFormed(text)) << file << ", seed " << seed;
      for (const char* label : {">c<", ">δ<", ">ξ⊗c<", ">ξ⊗δ<", ">r<", ">1<", ">start<", ">end<"}) {
        ASSERT_NE(text.find(label), std::string::npos) << file << " lacks " << label;
      }
      for (const char* part : {"horizon T = ", "instance: ", "reward: ", "return "}) {
        ASSERT_NE(text.find(part), std::string::npos) << file << " lacks " << part;
      }
      const std::size_t kind = text.find("instance: ") + 10;
      kinds.insert(text.substr(kind, text.find(' ', kind) - kind));
      ASSERT_EQ(text.find("href"), std::string::npos);
      ASSERT_EQ(text.find("nan"), std::string::npos);
      ASSERT_EQ(text.find("inf"), std::string::npos);
    }
  }
  // every kind of instance with a goal was drawn
  EXPECT_EQ(kinds,
            (std::set<std::string>{"path", "cycle", "branch", "reversal-pair", "lollipop", "open",
                                   "maze", "bottleneck", "blocked", "one-way", "key-door", "loop",
                                   "wall", "corridor", "dubins", "arm"}));
}

TEST_F(FiguresTest, SameSeedSameBytes) {
  WriteFigures(folder_ / "a", 5);
  WriteFigures(folder_ / "b", 5);
  WriteFigures(folder_ / "c", 6);
  for (const char* file : kFiles) {
    EXPECT_EQ(Read(folder_ / "a" / file), Read(folder_ / "b" / file));
    EXPECT_NE(Read(folder_ / "a" / file), Read(folder_ / "c" / file));
  }
}

TEST_F(FiguresTest, FolderThatCannotBeWrittenIsNamed) {
  std::filesystem::create_directory(folder_);
  WriteFileAtomically(folder_ / "file", "x");
  try {
    WriteFigures(folder_ / "file" / "pictures", 1);
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("pictures"), std::string::npos);
  }
  EXPECT_THROW(WriteFigures(folder_ / "file", 1), UserError);
}

}  // namespace
}  // namespace msrl
