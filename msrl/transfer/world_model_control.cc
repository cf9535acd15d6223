#include "msrl/transfer/world_model_control.h"

#include <algorithm>

#include "msrl/nn/random.h"

namespace msrl {

int UpdatesOf(WorldModelControl control, int updates) {
  return control == WorldModelControl::kRandom ? 0 : updates;
}

std::vector<const SourceSequence*> TellersOf(const SourceSequences& set, WorldModelControl control,
                                             std::uint64_t seed) {
  std::vector<const SourceSequence*> tellers;
  for (const SourceSequence& sequence : set.sequences()) tellers.push_back(&sequence);
  if (control == WorldModelControl::kShuffled) {
    Rng rng(seed, "shuffle");
    Shuffle(rng, tellers);
  }
  return tellers;
}

double ShareTold(const std::vector<double>& told, const std::vector<double>& truth) {
  const Eigen::Map<const Eigen::ArrayXd> y(truth.data(), std::ssize(truth));
  const Eigen::Map<const Eigen::ArrayXd> f(told.data(), std::ssize(told));
  return 1.0 - (y - f).square().sum() / std::max(1e-12, (y - y.mean()).square().sum());
}

void SlotErrors::Add(const Eigen::Ref<const Eigen::VectorXd>& told,
                     const Eigen::Ref<const Eigen::VectorXf>& before,
                     const Eigen::Ref<const Eigen::VectorXf>& after) {
  const Eigen::ArrayXd alive = after.tail(kGeometrySize).cast<double>();
  const Eigen::ArrayXd truth = after.head(kGeometrySize).cast<double>();
  const Eigen::ArrayXd now = before.head(kGeometrySize).cast<double>();
  errors += (alive * (told.array() - truth)).square().sum();
  still += (alive * (now - truth)).square().sum();
}

double SlotErrors::ratio() const { return errors / std::max(1e-12, still); }

}  // namespace msrl
