#include "msrl/env/time_limit.h"

#include "msrl/core/check.h"

namespace msrl {

void TimeLimit::Reset(std::uint64_t seed) {
  inner().Reset(seed);
  elapsed_ = 0;
  running_ = true;
}

StepResult TimeLimit::Step(const Action& action) {
  if (!running_) {
    throw UserError(StrCat(spec().id, ": step outside an episode; call Reset first"));
  }
  StepResult result = inner().Step(action);
  ++elapsed_;
  result.truncated = elapsed_ >= inner().horizon();
  running_ = !result.terminated && !result.truncated;
  return result;
}

std::vector<std::byte> TimeLimit::Snapshot() const {
  ByteWriter writer;
  writer.I64(elapsed_);
  writer.Bool(running_);
  writer.Blob(inner().Snapshot());
  return writer.Take();
}

void TimeLimit::Restore(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, StrCat(spec().id, ": snapshot"));
  const auto elapsed = static_cast<int>(reader.I64In(0, spec().step_limit));
  const bool running = reader.Bool();
  const auto inside = reader.Blob();
  reader.RequireEnd();
  inner().Restore(inside);
  elapsed_ = elapsed;
  running_ = running;
}

}  // namespace msrl
