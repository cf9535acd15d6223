#include "msrl/agents/common/slot_view.h"

#include <algorithm>
#include <array>

#include "msrl/core/check.h"

namespace msrl {

EnvView See(const Situation& situation, bool aligned, ChannelWriter& writer,
            std::span<double> seen) {
  if (!aligned) return situation.observation;
  const std::span<const double> geometry(situation.geometry.data(),
                                         static_cast<std::size_t>(situation.geometry.size()));
  std::array<float, kChannels> channels;
  if (situation.step == 0) {
    writer.Begin(geometry, channels);
  } else {
    constexpr std::array<double, kActionCodeSize> kNoAction = {};
    writer.Next(geometry, kNoAction, 0.0, channels);
  }
  std::copy_n(channels.begin(), kStateChannels, seen.begin());
  std::ranges::copy(situation.observation, seen.begin() + kStateChannels);
  return {seen.data(), static_cast<Eigen::Index>(seen.size())};
}

Eigen::MatrixXf SlotsOf(const EnvSpec& spec) {
  if (spec.action_code.empty() && spec.action.size > kActionCodeSize) {
    throw UserError(StrCat(spec.id, ": ", spec.action.size, " actions don't fit into a code of ",
                           kActionCodeSize, "; set aligned=false"));
  }
  Eigen::MatrixXf slots = Eigen::MatrixXf::Zero(kActionCodeSize, spec.action.size);
  for (int i = 0; i < spec.action.size; ++i) {
    slots(spec.action_code.empty() ? i : spec.action_code[static_cast<std::size_t>(i)], i) = 1.0F;
  }
  for (auto entry : slots.rowwise()) entry /= std::max(1.0F, entry.sum());
  return slots;
}

}  // namespace msrl
