// Whether planning pays: whole training episodes are played with and without it, and it has the say
// only while it earns more.
#ifndef MSRL_AGENTS_MSRL_PLAN_CONTEST_H_
#define MSRL_AGENTS_MSRL_PLAN_CONTEST_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "msrl/files/state.h"

namespace msrl {

class PlanContest {
 public:
  // Episodes of each side before planning can lose.
  static constexpr std::int64_t kFewest = 3;
  // Weight of the newest episode in the mean of its side.
  static constexpr double kRate = 0.1;

  // `trials` is the share of episodes that the side behind gets; 0: planning always.
  explicit PlanContest(double trials) : trials_(trials) {}

  // Whether planning has the say.
  bool planning_leads() const {
    const Side& with = sides_[1];
    const Side& without = sides_[0];
    if (trials_ == 0.0 || with.episodes < kFewest || without.episodes < kFewest) return true;
    return with.mean >= without.mean;
  }
  // The chance that the next training episode is planned.
  double planned_share() const { return planning_leads() ? 1.0 - trials_ : trials_; }
  // What an episode earned.
  void Note(bool planned, double episode_return) {
    Side& side = sides_[planned ? 1 : 0];
    ++side.episodes;
    // the plain mean at first
    const double rate = std::max(kRate, 1.0 / static_cast<double>(side.episodes));
    side.mean += rate * (episode_return - side.mean);
  }
  double mean(bool planned) const { return sides_[planned ? 1 : 0].mean; }
  std::int64_t episodes(bool planned) const { return sides_[planned ? 1 : 0].episodes; }

  void Visit(const Archive& state) {
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      const Archive side = state.Child(i == 0 ? "without" : "with");
      side.Int("episodes", sides_[i].episodes);
      side.Double("mean", sides_[i].mean);
    }
  }

 private:
  struct Side {
    std::int64_t episodes = 0;
    double mean = 0.0;
  };

  double trials_;
  std::array<Side, 2> sides_;  // without planning, with it
};

}  // namespace msrl

#endif  // MSRL_AGENTS_MSRL_PLAN_CONTEST_H_
