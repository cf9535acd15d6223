// Any HDF5 file with the names of Minari's or D4RL's is a valid file of episodes or a UserError.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "msrl/core/check.h"
#include "msrl/transfer/foreign_dataset.h"
#include "tests/fuzz/hdf5_choices.h"

using msrl::fuzz::Choices;
using msrl::fuzz::Dataset;
using msrl::internal::H5Writer;

namespace {

// `steps` of a list, and one more state if it is an episode.
void Steps(H5Writer& writer, Choices& choices, const std::string& prefix, std::uint64_t steps,
           std::uint64_t states) {
  Dataset(writer, choices, prefix + "observations", {states, 2}, 'f');
  if (choices.Next() % 2 == 0) {
    Dataset(writer, choices, prefix + "actions", {steps}, 'i');
  } else {
    Dataset(writer, choices, prefix + "actions", {steps, 2}, 'f');
  }
  Dataset(writer, choices, prefix + "rewards", {steps}, 'd');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const msrl::DatasetMap map = msrl::ParseDatasetMap(
      "env = 'e'\n[geometry]\nposition = [0, 1]\ngoal = {at = [1, 0]}", "map");
  Choices choices(data, size);
  try {
    H5Writer writer;
    const std::uint64_t steps = 1 + choices.Next() % 5;
    if (choices.Next() % 2 == 0) {
      const int episodes = 1 + choices.Next() % 2;
      for (int k = 0; k < episodes; ++k) {
        const std::string prefix = "episode_" + std::to_string(k) + "/";
        Steps(writer, choices, prefix, steps, steps + 1);
        Dataset(writer, choices, prefix + "terminations", {steps}, 'b');
        Dataset(writer, choices, prefix + "truncations", {steps}, 'b');
      }
    } else {
      Steps(writer, choices, "", steps, steps);
      Dataset(writer, choices, "terminals", {steps}, 'b');
      Dataset(writer, choices, "timeouts", {steps}, 'b');
      if (choices.Next() % 2 == 0) {
        Dataset(writer, choices, "next_observations", {steps, 2}, 'f');
      }
    }
    const std::string bytes = writer.Finish();
    const msrl::EpisodeFile file =
        msrl::ParseForeignEpisodes(std::as_bytes(std::span(bytes)), "input", map);
    // what the rest of the program relies on
    if (file.episodes.empty()) std::abort();
    msrl::RequireValid(file, "input");
  } catch (const msrl::UserError&) {
    // refused: fine
  }
  return 0;
}
