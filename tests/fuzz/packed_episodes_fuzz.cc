// Whatever the child that reads a stranger's file sends is valid episodes or a UserError.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "msrl/core/check.h"
#include "msrl/datasets/episode_child.h"
#include "tests/fuzz/damage.h"

namespace {

std::string GoodBytes() {
  msrl::StoredEpisode episode;
  episode.env = "e";
  episode.observations = Eigen::MatrixXf::Constant(2, 4, 0.5F);
  episode.geometry = Eigen::MatrixXf::Constant(3, 4, 0.5F);
  episode.actions = Eigen::MatrixXf::Constant(2, 3, 0.5F);
  episode.rewards = Eigen::VectorXd::Ones(3);
  episode.truncated = true;
  episode.facts["skill"] = 0.5;
  episode.values["mc"] = Eigen::VectorXf::Ones(4);
  msrl::EpisodeFile file;
  file.lift_id = "0";
  file.attributes["split"] = "train";
  file.episodes = {episode, episode};
  return msrl::PackEpisodes(file);
}

msrl::EpisodeFile Unpack(const std::string& bytes) {
  return msrl::UnpackEpisodes(std::as_bytes(std::span(bytes)), "input");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string good = GoodBytes();
  try {
    const msrl::EpisodeFile file = Unpack(msrl::fuzz::Damaged(good, data, size));
    if (Unpack(msrl::PackEpisodes(file)).ContentHash() != file.ContentHash()) std::abort();
  } catch (const msrl::UserError&) {
    if (size < 4) std::abort();  // the good one
  }
  return 0;
}
