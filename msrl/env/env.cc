#include "msrl/env/env.h"

#include <utility>

#include "msrl/core/check.h"

namespace msrl {

ActionBuffer::ActionBuffer(const ActionSpec& spec) : kind_(spec.kind) {
  if (kind_ == ActionKind::kContinuous) {
    MSRL_CHECK_LE(spec.size, kMaxActionSize);
    size_ = static_cast<std::size_t>(spec.size);
  }
}

Action ActionBuffer::view() const {
  return kind_ == ActionKind::kDiscrete ? Action::Discrete(index_) : Action::Continuous(values());
}

void DrawUniformAction(const ActionSpec& spec, Rng& rng, ActionBuffer& out) {
  if (spec.kind == ActionKind::kDiscrete) {
    out.set_index(static_cast<int>(rng.Index(spec.size)));
  } else {
    for (double& value : out.values()) value = rng.Uniform(-1.0, 1.0);
  }
}

EnvBase::EnvBase(EnvSpec spec, std::string_view options)
    : spec_(std::move(spec)),
      observation_(Eigen::VectorXd::Zero(spec_.observation_size)),
      options_id_(StableHash(StrCat(spec_.id, "\n", options))) {}

void EnvBase::Reset(std::uint64_t seed) {
  Begin(seed);
  seed_ = seed;
  started_ = true;
  Publish();
}

void EnvBase::EnsureInstance(std::uint64_t seed) {
  if (HasInstance(seed)) return;
  Begin(seed);
  seed_ = seed;
  started_ = true;
}

std::vector<std::byte> EnvBase::Snapshot() const {
  MSRL_CHECK(started_, spec_.id, ": Snapshot before the first Reset");
  ByteWriter writer;
  writer.U64(options_id_);
  writer.U64(seed_);
  WriteState(writer);
  return writer.Take();
}

void EnvBase::Restore(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, StrCat(spec_.id, ": snapshot"));
  if (reader.U64() != options_id_) {
    throw UserError(
        StrCat(spec_.id, ": the snapshot is of another environment or of other options"));
  }
  const std::uint64_t seed = reader.U64();
  ReadState(reader, seed);
  Publish();
}

}  // namespace msrl
