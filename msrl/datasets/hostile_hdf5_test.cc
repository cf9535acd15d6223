// Files of strangers that try to read other files, to take all memory, or to hang or crash us.
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "msrl/core/rng.h"
#include "msrl/datasets/episode_file.h"
#include "msrl/datasets/hdf5.h"
#include "msrl/testing/cheap_refusal.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;
using internal::H5Reader;
using ::msrl::testing::CheapRefusal;
using ::msrl::testing::UserErrorText;

std::string Build(const std::function<void(hid_t)>& fill) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(access, 1 << 16, 0);
  const hid_t file = H5Fcreate("hostile", H5F_ACC_TRUNC, H5P_DEFAULT, access);
  fill(file);
  H5Fflush(file, H5F_SCOPE_GLOBAL);
  std::string bytes(static_cast<std::size_t>(H5Fget_file_image(file, nullptr, 0)), '\0');
  H5Fget_file_image(file, bytes.data(), bytes.size());
  H5Fclose(file);
  H5Pclose(access);
  return bytes;
}

// A dataset "values" of this many floats, none of them written.
std::string Unwritten(hsize_t count, const std::function<void(hid_t)>& how) {
  return Build([&](hid_t file) {
    const hid_t space = H5Screate_simple(1, &count, nullptr);
    const hid_t made = H5Pcreate(H5P_DATASET_CREATE);
    how(made);
    const hid_t data =
        H5Dcreate2(file, "values", H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT);
    EXPECT_GE(data, 0);
    H5Dclose(data);
    H5Pclose(made);
    H5Sclose(space);
  });
}

std::string ReadProblem(const std::string& bytes, std::uint64_t count = 0) {
  return CheapRefusal([&] {
    const H5Reader reader(std::as_bytes(std::span(bytes)), "it");
    if (count > 0) reader.Floats("values", {count});
  });
}

TEST(HostileHdf5, LinksAreNotFollowed) {
  const std::string bytes = Build([](hid_t file) {
    H5Lcreate_external("/etc/passwd", "/", file, "episode_0", H5P_DEFAULT, H5P_DEFAULT);
    const hid_t group = H5Gcreate2(file, "deep", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/deep", group, "loop", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(group);
  });
  const H5Reader reader(std::as_bytes(std::span(bytes)), "it");
  for (const char* place : {"episode_0", "deep/loop"}) {
    const std::string problem = "it: " + std::string(place) + ": is a link; links are not followed";
    const std::string below = std::string(place) + "/rewards";
    const std::function<void()> ways[] = {[&] { reader.Has(place); },
                                          [&] { reader.Has(below); },
                                          [&] { reader.Names(place); },
                                          [&] { reader.ShapeOf(below, 1, 10); },
                                          [&] { reader.IsInteger(below); },
                                          [&] { reader.Floats(below, {1}); },
                                          [&] { reader.Bools(below, {1}); },
                                          [&] { reader.HasAttribute(place, "id"); },
                                          [&] { reader.AttributeNames(place); },
                                          [&] { reader.TextAttribute(place, "id"); },
                                          [&] { reader.IntAttribute(place, "id"); }};
    for (const auto& way : ways) EXPECT_EQ(UserErrorText(way), problem);
  }
  EXPECT_TRUE(reader.Has("deep"));
  EXPECT_EQ(reader.Names(""), (std::vector<std::string>{"deep", "episode_0"}));
}

TEST(HostileHdf5, ValuesInOtherFilesAreNotRead) {
  const std::string problem = "it: values: has its values in other files";
  EXPECT_EQ(
      ReadProblem(Unwritten(4, [](hid_t made) { H5Pset_external(made, "/etc/passwd", 0, 16); }), 4),
      problem);
  EXPECT_EQ(ReadProblem(Unwritten(4,
                                  [](hid_t made) {
                                    const hsize_t four = 4;
                                    const hid_t space = H5Screate_simple(1, &four, nullptr);
                                    H5Pset_virtual(made, space, "/etc/passwd", "x", space);
                                    H5Sclose(space);
                                  }),
                        4),
            problem);
}

TEST(HostileHdf5, FewBytesAreNotTakenForMany) {
  const hsize_t count = 1'000'000'000;
  const std::string bytes = Unwritten(count, [](hid_t made) {
    const hsize_t chunk = 1000;
    H5Pset_chunk(made, 1, &chunk);
  });
  EXPECT_LT(bytes.size(), 10'000U);
  const std::string problem = ReadProblem(bytes, count);
  EXPECT_NE(problem.find("it: values: the file is too small for so many values"), std::string::npos)
      << problem;
  // what is asked for in small pieces adds up
  const std::string small = Unwritten(100'000, [](hid_t) {});
  const H5Reader reader(std::as_bytes(std::span(small)), "it");
  EXPECT_NE(UserErrorText([&] {
              for (int i = 0; i < 1000; ++i) reader.Floats("values", {100'000});
            }).find("too small"),
            std::string::npos);
}

class HostileHdf5File : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove(path_); }
  const fs::path path_ =
      fs::temp_directory_path() / ("msrl_hostile_" + std::to_string(getpid()) + ".h5");
};

TEST_F(HostileHdf5File, APipeDoesNotHang) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(UserErrorText([this] { ReadEpisodes(path_); }),
            "cannot read " + path_.string() + ": it is a pipe");
}

// A child reads it; whatever becomes of that is an error of one line.
TEST_F(HostileHdf5File, DamageIsAnErrorAndNoCrash) {
  const std::string good = Unwritten(1000, [](hid_t) {});
  for (std::size_t i = 0; i < 60; ++i) {
    std::string bad = good;
    const std::size_t at = i * good.size() / 60;
    for (std::size_t k = at; k < std::min(at + 8, bad.size()); ++k) bad[k] = '\xff';
    std::ofstream(path_, std::ios::binary) << bad;
    EXPECT_NE(UserErrorText([this] { ReadEpisodes(path_); }), "no error") << i;
  }
}

// An episode file of ours without the checksum that would find out every change.
std::string Unprotected() {
  StoredEpisode episode;
  episode.env = "somewhere";
  episode.discrete = false;
  episode.observations = Eigen::MatrixXf::Constant(3, 6, 0.5F);
  episode.geometry = Eigen::MatrixXf::Constant(8, 6, 0.5F);
  episode.actions = Eigen::MatrixXf::Constant(2, 5, 0.5F);
  episode.rewards = Eigen::VectorXd::Ones(5);
  episode.truncated = true;
  episode.values["mc"] = Eigen::VectorXf::Ones(6);
  EpisodeFile file;
  file.lift_id = "0123456789abcdef";
  file.action_code_size = 10;
  file.gamma = 0.99;
  file.episodes = {episode, episode};
  const std::string bytes = EncodeEpisodes(file);
  return bytes.substr(bytes.find("\x89HDF"));
}

// MSRL_HDF5_CASES=100000 searches for longer (ctest -C Long -L fuzz-long).
TEST_F(HostileHdf5File, RandomDamageIsReadOrRefused) {
  const std::string good = Unprotected();
  std::ofstream(path_, std::ios::binary) << good;
  ASSERT_EQ(ReadEpisodes(path_).episodes.size(), 2U);
  const char* wanted = std::getenv("MSRL_HDF5_CASES");
  const int cases = wanted == nullptr ? 60 : std::atoi(wanted);
  Rng rng(10, "damage");
  int read = 0;
  for (int i = 0; i < cases; ++i) {
    std::string bad = good;
    const auto place = [&] {
      return static_cast<std::size_t>(rng.Index(static_cast<std::int64_t>(bad.size())));
    };
    for (std::int64_t n = 1 + rng.Index(4); n > 0; --n) {
      switch (rng.Index(4)) {
        case 0:
          bad[place()] = static_cast<char>(rng.Index(256));
          break;
        case 1:
          bad[place()] ^= static_cast<char>(1 << rng.Index(8));
          break;
        case 2: {
          const std::size_t from = place(), to = place();
          const std::size_t size = std::min<std::size_t>({64, bad.size() - from, bad.size() - to});
          bad.replace(to, size, bad.substr(from, size));
          break;
        }
        default: {
          const std::size_t at = place();
          bad.replace(at, std::min<std::size_t>(8, bad.size() - at), 8, '\xff');
        }
      }
    }
    if (rng.Index(10) == 0) bad.resize(place());
    std::ofstream(path_, std::ios::binary) << bad;
    const std::string problem = UserErrorText([this] { ReadEpisodes(path_); });
    EXPECT_EQ(problem.find('\n'), std::string::npos) << problem;
    read += problem == "no error";
  }
  RecordProperty("read", read);
}

}  // namespace
}  // namespace msrl
