#include "msrl/agents/agent.h"

#include <algorithm>
#include <cmath>

#include "msrl/agents/feed_forward.h"
#include "msrl/artefacts/artefact.h"
#include "msrl/core/check.h"

namespace msrl {
namespace {

template <typename T>
void RequireAllFinite(std::string_view what, std::span<const T> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) [[likely]]
      continue;
    const std::string place = values.size() == 1 ? "" : StrCat("[", i, "]");
    throw RunError(StrCat(what, place, " is ", values[i]));
  }
}

}  // namespace

void RequireFinite(std::string_view what, std::span<const float> values) {
  RequireAllFinite(what, values);
}
void RequireFinite(std::string_view what, std::span<const double> values) {
  RequireAllFinite(what, values);
}

void Agent::Act(std::span<const Turn> turns, ActMode mode) {
  while (!turns.empty()) {
    const std::size_t count = std::min(turns.size(), std::size_t{kMaxTurns});
    ActInBatch(turns.first(count), mode);
    turns = turns.subspan(count);
  }
}

void Agent::Initialise(const Artefact& artefact) {
  throw UserError(StrCat("this agent takes nothing over from ", artefact.source()));
}

void Agent::TakeSegments(const SegmentLibrary& /*library*/, std::string_view source) {
  throw UserError(StrCat("this agent plans with no library of segments, it can't use ", source));
}

FeedForwardPolicy Agent::ExportPolicy() const {
  throw UserError("it chooses by more than a network of the observation");
}

}  // namespace msrl
