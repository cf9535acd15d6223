// Datasets of others: Minari's and D4RL's HDF5 in, Minari's out (docs/datasets.md).
#ifndef MSRL_TRANSFER_FOREIGN_DATASET_H_
#define MSRL_TRANSFER_FOREIGN_DATASET_H_

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "msrl/datasets/episode_file.h"
#include "msrl/files/atomic_file.h"
#include "msrl/transfer/dataset_map.h"

namespace msrl {

// Groups episode_0, episode_1, ... are Minari's; else there must be D4RL's flat lists, which are
// cut into episodes where they end, and where an observation does not follow on the one before.
// Without next_observations nobody knows where the last step of an episode led: it is left out, and
// the episode counts as truncated. UserError on anything that does not fit.
EpisodeFile ParseForeignEpisodes(std::span<const std::byte> bytes, std::string_view source,
                                 const DatasetMap& map);
// A file, or the folder of a dataset of Minari, read in a child that can do no harm.
EpisodeFile ReadForeignEpisodes(const std::filesystem::path& path, const DatasetMap& map);

// Values of all states that pretraining knows without the environment: mc and fitted.
void AddValues(EpisodeFile& file);

struct MinariDataset {
  std::string id;                          // "msrl/reacher-v0"
  int actions = 0;                         // how many, of discrete ones
  std::string algorithm = "msrl collect";  // what chose them
};

// Writes ROOT/ID/data/main_data.hdf5 and metadata.json, as minari.load_dataset wants them.
// UserError if the id is none, if the episodes are of several environments, or if the folder is not
// empty and must not be replaced. Returns the folder.
std::filesystem::path WriteMinari(const std::filesystem::path& root, const MinariDataset& dataset,
                                  const EpisodeFile& file, Existing existing);

}  // namespace msrl

#endif  // MSRL_TRANSFER_FOREIGN_DATASET_H_
