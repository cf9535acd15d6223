#include "msrl/env/spec.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "msrl/core/check.h"

namespace msrl {
namespace {

[[noreturn]] void WrongKind(const EnvSpec& spec) {
  throw UserError(spec.action.kind == ActionKind::kDiscrete
                      ? StrCat(spec.id, ": continuous action given, but the actions are 0 to ",
                               spec.action.size - 1)
                      : StrCat(spec.id, ": discrete action given, but an action is ",
                               spec.action.size, " numbers in [-1, 1]"));
}

// Each entry of the code is the mean of the dimensions that share it.
void EmbedGroups(const EnvSpec& spec, const Action& action,
                 std::span<double, kActionCodeSize> out) {
  std::array<double, kMaxActionSize> clipped;
  std::array<int, kActionCodeSize> counts{};
  const auto size = static_cast<std::size_t>(spec.action.size);
  MSRL_CHECK_EQ(spec.action_code.size(), size);
  RequireClipped(spec, action, std::span(clipped).first(size));
  for (std::size_t i = 0; i < size; ++i) {
    const auto entry = static_cast<std::size_t>(spec.action_code[i]);
    out[entry] += clipped[i];
    ++counts[entry];
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] /= std::max(counts[i], 1);
}

}  // namespace

const std::vector<GeometrySlot>& AlignedSlots() {
  static const std::vector<GeometrySlot> slots = {
      {"position_x", 1.0}, {"position_y", 1.0}, {"goal_x", 1.0},  {"goal_y", 1.0},
      {"motion_x", 1.0},   {"motion_y", 1.0},   {"posture", 1.0}, {"contact", 1.0}};
  return slots;
}

Lift::Ptr CompactLift(LiftKind kind) {
  return Lift::Make(
      {.kind = kind, .d = kGeometrySize, .q = kActionCodeSize, .slots = AlignedSlots()});
}

int RequireIndex(const EnvSpec& spec, const Action& action) {
  if (spec.action.kind != ActionKind::kDiscrete || action.kind() != ActionKind::kDiscrete) {
    WrongKind(spec);
  }
  if (action.index() < 0 || action.index() >= spec.action.size) {
    throw UserError(
        StrCat(spec.id, ": action ", action.index(), " is not in 0 to ", spec.action.size - 1));
  }
  return action.index();
}

void RequireClipped(const EnvSpec& spec, const Action& action, std::span<double> out) {
  if (spec.action.kind != ActionKind::kContinuous || action.kind() != ActionKind::kContinuous) {
    WrongKind(spec);
  }
  const auto values = action.values();
  if (std::ssize(values) != spec.action.size) {
    throw UserError(
        StrCat(spec.id, ": action has ", values.size(), " entries, needs ", spec.action.size));
  }
  MSRL_CHECK_EQ(out.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      throw UserError(StrCat(spec.id, ": action[", i, "] is ", values[i]));
    }
    out[i] = std::clamp(values[i], -1.0, 1.0);
  }
}

void EmbedAction(const EnvSpec& spec, const Action& action,
                 std::span<double, kActionCodeSize> out) {
  std::fill(out.begin(), out.end(), 0.0);
  if (!spec.action_code.empty()) {
    EmbedGroups(spec, action, out);
    return;
  }
  if (spec.action.size > kActionCodeSize) {
    throw UserError(StrCat(spec.id, ": ", spec.action.size, " actions don't fit into a code of ",
                           kActionCodeSize));
  }
  if (spec.action.kind == ActionKind::kDiscrete) {
    out[static_cast<std::size_t>(RequireIndex(spec, action))] = 1.0;
  } else {
    RequireClipped(spec, action, out.first(static_cast<std::size_t>(spec.action.size)));
  }
}

}  // namespace msrl
