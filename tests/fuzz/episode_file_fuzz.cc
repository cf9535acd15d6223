// Any HDF5 file with the names of ours is a valid file of episodes or a UserError. (Its bytes are
// the HDF5 library's business; damaged bytes don't get past the checksum.)
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "msrl/core/check.h"
#include "msrl/datasets/episode_file.h"
#include "tests/fuzz/hdf5_choices.h"

using msrl::fuzz::Choices;
using msrl::fuzz::Dataset;
using msrl::internal::H5Writer;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  try {
    H5Writer writer;
    writer.TextAttribute("", "format", "msrl-episodes");
    writer.IntAttribute("", "version", 1);
    writer.TextAttribute("", "lift_id", "0");
    writer.IntAttribute("", "action_code_size", choices.Fault() == 0 ? 4 : choices.Next() - 3);
    writer.DoubleAttribute("", "gamma", choices.Fault() == 0 ? 0.99 : choices.Number());
    const int episodes = 1 + choices.Next() % 2;
    writer.IntAttribute("", "total_episodes", choices.Fault() == 0 ? episodes : choices.Next());
    for (int k = 0; k < episodes; ++k) {
      const std::string group = "episode_" + std::to_string(k);
      const std::uint64_t steps = 1 + choices.Next() % 3;
      writer.Group(group);
      writer.IntAttribute(group, "id", k);
      if (choices.Fault() == 0) writer.TextAttribute(group, "seed", "7");
      writer.IntAttribute(group, "total_steps", static_cast<std::int64_t>(steps));
      writer.TextAttribute(group, "env", "e");
      writer.TextAttribute(group, "instance", "");
      writer.DoubleAttribute(group, "reward_scale", choices.Fault() == 0 ? 1.0 : choices.Number());
      if (choices.Fault() != 0) writer.DoubleAttribute(group, "fact_a", choices.Number());
      Dataset(writer, choices, group + "/observations", {steps + 1, 2}, 'f');
      if (choices.Next() % 2 == 0) {
        Dataset(writer, choices, group + "/actions", {steps}, 'i');
      } else {
        Dataset(writer, choices, group + "/actions", {steps, 2}, 'f');
      }
      Dataset(writer, choices, group + "/rewards", {steps}, 'd');
      Dataset(writer, choices, group + "/terminations", {steps}, 'b');
      Dataset(writer, choices, group + "/truncations", {steps}, 'b');
      Dataset(writer, choices, group + "/infos/geometry", {steps + 1, 3}, 'f');
      Dataset(writer, choices, group + "/infos/value_mc", {steps + 1}, 'f');
    }
    writer.TextAttribute("", "content_hash", "0");
    writer.IntAttribute("", "total_steps", 1);
    const std::string bytes = writer.Finish();
    msrl::EpisodeFile file;
    try {
      file = msrl::ParseEpisodes(std::as_bytes(std::span(bytes)), "input");
    } catch (const msrl::UserError& error) {
      // with the wrong hash every file is refused; past it means that all else was right
      if (std::string(error.what()).find("content_hash") == std::string::npos) return 0;
    }
  } catch (const msrl::UserError&) {
    // refused: fine
  }
  return 0;
}
