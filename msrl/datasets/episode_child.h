// Episodes from files of strangers: only a limited child has the HDF5 library read them.
#ifndef MSRL_DATASETS_EPISODE_CHILD_H_
#define MSRL_DATASETS_EPISODE_CHILD_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "msrl/datasets/episode_file.h"

namespace msrl {

// What `parse` returns, called in a child that can do no harm (limited_child.h), whose limits go by
// the size of the file. UserError if it fails, crashes, or sends what cannot be.
EpisodeFile ParseInChild(std::string_view source, std::size_t file_size,
                         const std::function<EpisodeFile()>& parse);

// How the episodes come from there: for two processes of one machine, and with the same checks as
// if they came from a file.
std::string PackEpisodes(const EpisodeFile& file);
EpisodeFile UnpackEpisodes(std::span<const std::byte> bytes, std::string_view source);

}  // namespace msrl

#endif  // MSRL_DATASETS_EPISODE_CHILD_H_
