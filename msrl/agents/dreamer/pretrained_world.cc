#include "msrl/agents/dreamer/pretrained_world.h"

#include <utility>

#include "msrl/agents/common/aligned_channels.h"
#include "msrl/agents/common/networks.h"
#include "msrl/core/check.h"

namespace msrl {
namespace {

// Weight, bias and the scale of the norm.
std::int64_t DenseCount(std::int64_t in, std::int64_t out) { return (in + 2) * out; }

std::int64_t DenseNetCount(std::int64_t in, int layers, std::int64_t width, std::int64_t out) {
  std::int64_t count = 0;
  for (int i = 0; i < layers; ++i) count += DenseCount(i == 0 ? in : width, width);
  return count + (width + 1) * out;
}

WorldShape ShapeOf(const ArtefactHeader& header, const std::string& source) {
  TextReader reader(header.shape, source);
  const auto size = [&reader](const char* key, std::int64_t low, std::int64_t high) {
    return static_cast<int>(reader.Int(key, low, high));
  };
  WorldShape shape;
  shape.deter = size("deter", 1, kMaxHiddenWidth);
  shape.blocks = size("blocks", 1, 64);
  if (shape.deter % shape.blocks != 0) reader.Fail("entry 'blocks' does not divide 'deter'");
  shape.stoch = size("stoch", 1, 256);
  shape.classes = size("classes", 2, 256);
  shape.hidden = size("hidden", 1, kMaxHiddenWidth);
  shape.units = size("units", 1, kMaxHiddenWidth);
  shape.layers = size("layers", 1, kMaxHiddenLayers);
  reader.RequireEnd();
  return shape;
}

void VisitWorld(const Archive& state, SlotWorld& world) {
  VisitValues(state.Child("world"), world.world);
}

}  // namespace

WorldModelSpec SlotWorldSpec(const WorldShape& shape) {
  return {.sizes = {shape, kStateChannels, kActionChannels}, .aligned = true, .slots = {}};
}

SlotWorld::SlotWorld(const WorldShape& shape, Rng& rng)
    : world({.laprop = LaPropOptions{}}),
      heads({.laprop = LaPropOptions{}}),
      model(SlotWorldSpec(shape), world, heads, rng) {}

std::int64_t ParameterCount(const WorldShape& shape) {
  const std::int64_t deter = shape.deter;
  const std::int64_t hidden = shape.hidden;
  const std::int64_t units = shape.units;
  const std::int64_t latent = shape.latent();
  const std::int64_t block = deter / shape.blocks;
  const std::int64_t encoder =
      DenseCount(kStateChannels, units) + (shape.layers - 1) * DenseCount(units, units);
  const std::int64_t core = DenseCount(deter, hidden) + DenseCount(latent, hidden) +
                            DenseCount(kActionChannels, hidden) +
                            DenseCount(3 * hidden + block, deter) + (block + 1) * 3 * deter;
  const std::int64_t posterior = DenseCount(deter + units, hidden) + (hidden + 1) * latent;
  const std::int64_t prior = DenseNetCount(deter, 2, hidden, latent);
  const std::int64_t decoder = DenseNetCount(shape.features(), shape.layers, units, kGeometrySize);
  return encoder + core + posterior + prior + decoder +
         DenseNetCount(shape.features(), 1, units, 1);
}

ArtefactHeader WorldHeader(const WorldShape& shape, ArtefactTexts made) {
  const Lift::Ptr lift = CompactLift();
  return {.kind = kWorldModelKind,
          .lift = lift->id(),
          .lift_kind = std::string(LiftKindName(lift->kind())),
          .shape = {{"deter", std::to_string(shape.deter)},
                    {"blocks", std::to_string(shape.blocks)},
                    {"stoch", std::to_string(shape.stoch)},
                    {"classes", std::to_string(shape.classes)},
                    {"hidden", std::to_string(shape.hidden)},
                    {"units", std::to_string(shape.units)},
                    {"layers", std::to_string(shape.layers)}},
          .made = std::move(made)};
}

std::string EncodeWorld(SlotWorld& world, const ArtefactHeader& header) {
  TensorFileBuilder file;
  VisitWorld(Archive(file), world);
  return EncodeArtefact(header, std::move(file));
}

std::unique_ptr<SlotWorld> ReadWorld(const Artefact& artefact) {
  artefact.Require(kWorldModelKind, CompactLift()->id());
  const WorldShape shape = ShapeOf(artefact.header(), artefact.source());
  // before memory is asked for
  if (artefact.parameter_count() != ParameterCount(shape)) {
    throw UserError(StrCat(artefact.source(), ": its sizes are not those of its tensors"));
  }
  Rng unused(0, "unused");
  auto world = std::make_unique<SlotWorld>(shape, unused);
  const Archive state(artefact.tensors());
  VisitWorld(state, *world);
  state.RequireAllUsed();
  return world;
}

}  // namespace msrl
