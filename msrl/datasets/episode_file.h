// Episodes on disk: HDF5 in the layout of Minari datasets (docs/file-formats.md), one group
// episode_k each. Python's h5py reads what is written here.
#ifndef MSRL_DATASETS_EPISODE_FILE_H_
#define MSRL_DATASETS_EPISODE_FILE_H_

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/segment.h"

namespace msrl {

// One episode of T >= 1 steps. Columns are times. Single precision where the file has it: what is
// in memory equals what is on disk, bit for bit.
struct StoredEpisode {
  std::string env;
  std::uint64_t seed = 0;
  std::string instance;          // the layout, as text
  Eigen::MatrixXf observations;  // n x (T+1)
  bool discrete = false;
  Eigen::MatrixXf actions;   // size x T; discrete: 1 x T, whole numbers
  Eigen::VectorXd rewards;   // T, in the environment's own unit
  Eigen::MatrixXf geometry;  // d x (T+1); 0 x (T+1) if nobody knows it, in a plain file alone
  double reward_scale = 1.0;
  bool terminated = false;
  bool truncated = false;
  // Value of each of the T+1 states by name ("mc", "expert", "fitted", "critic"), in units of
  // reward_scale.
  std::map<std::string, Eigen::VectorXf> values;
  // Facts about behaviour and instance that no observer is told.
  std::map<std::string, double> facts;

  Index horizon() const { return rewards.size(); }
};

struct EpisodeFile {
  std::string lift_id;  // of the compact lift that the geometry is for
  int action_code_size = 10;
  double gamma = 0.99;
  // How it was made: "split", "seed", ...
  std::map<std::string, std::string> attributes;
  std::vector<StoredEpisode> episodes;

  std::int64_t TotalSteps() const;
  // XXH64 of all contents in a fixed order, 16 digits. Does not depend on HDF5.
  std::string ContentHash() const;
};

// What the lift sees: x = geometry, a = one-hot or zero-padded action, r = reward / reward_scale.
Segment ToSegment(const StoredEpisode& episode, int action_code_size);

enum class GeometryIs { kThere, kOptional };
// UserError on the first thing that can't be: sizes, numbers that are not finite, actions that do
// not fit the code, ends in the middle.
void RequireValid(const EpisodeFile& file, std::string_view source,
                  GeometryIs geometry = GeometryIs::kThere);

std::string EncodeEpisodes(const EpisodeFile& file);
// Without our checksum before it: HDF5 and nothing else. Episodes may be without geometry.
std::string EncodePlainEpisodes(const EpisodeFile& file);
void WriteEpisodes(const std::filesystem::path& path, const EpisodeFile& file);

// UserError on anything that is not a whole, valid file. Our own files start with a block that
// holds a checksum, so a damaged file never gets to the HDF5 library.
EpisodeFile ParseEpisodes(std::span<const std::byte> bytes, std::string_view source);
// The same in a child that can do no harm (episode_child.h).
EpisodeFile ReadEpisodes(const std::filesystem::path& path);

}  // namespace msrl

#endif  // MSRL_DATASETS_EPISODE_FILE_H_
