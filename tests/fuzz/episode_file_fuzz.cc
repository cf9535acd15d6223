// Any HDF5 file with the names of ours is a valid file of episodes or a UserError. (Its bytes are
// the HDF5 library's business; damaged bytes don't get past the checksum.)
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/datasets/episode_file.h"
#include "msrl/datasets/hdf5.h"

namespace {

using msrl::internal::H5Shape;
using msrl::internal::H5Writer;

class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::uint8_t Next() { return next_ < size_ ? data_[next_++] : 0; }
  // Mostly 0: most of the file stays as it should be.
  int Fault() {
    const int choice = Next();
    return choice < 200 ? 0 : 1 + choice % 5;
  }
  double Number() {
    switch (Next() % 8) {
      case 0:
        return std::bit_cast<double>(0x7ff8000000000000u);
      case 1:
        return 1e308;
      case 2:
        return -1.0;
      default:
        return Next() / 16.0;
    }
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t next_ = 0;
};

std::uint64_t Count(const H5Shape& shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t size : shape) count *= size;
  return count;
}

void Dataset(H5Writer& writer, Choices& choices, const std::string& path, H5Shape shape,
             char type) {
  switch (choices.Fault()) {
    case 1:
      return;  // missing
    case 2:
      shape.back() = choices.Next() % 5;
      break;
    case 3:
      shape.push_back(1);
      break;
    case 4:
      type = "fdib"[choices.Next() % 4];
      break;
    case 5:
      writer.Group(path);
      return;
    default:
      break;
  }
  std::vector<double> values(Count(shape));
  for (double& v : values) v = choices.Next() < 250 ? 0.0 : choices.Number();
  const std::vector<float> floats(values.begin(), values.end());
  std::vector<std::int64_t> ints;
  std::vector<std::uint8_t> bools;
  for (const double v : values) {
    ints.push_back(v >= -2.0 && v < 1e6 ? static_cast<std::int64_t>(v) : 7);
    bools.push_back(static_cast<std::uint8_t>(ints.back()));
  }
  if (type == 'f') writer.Floats(path, floats, shape);
  if (type == 'd') writer.Doubles(path, values, shape);
  if (type == 'i') writer.Ints(path, ints, shape);
  if (type == 'b') writer.Bools(path, bools, shape);
}

}  // namespace

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
