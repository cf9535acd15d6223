#include "msrl/agents/tdmpc/pretrained_model.h"

#include <utility>

#include "msrl/agents/common/aligned_channels.h"
#include "msrl/agents/common/networks.h"
#include "msrl/core/check.h"

namespace msrl {
namespace {

constexpr const char* kTaskVectors = "task/vectors";

// Of a perceptron with a norm in its hidden layers.
std::int64_t CountOf(const std::vector<int>& layers) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
    count += (std::int64_t{layers[i]} + 1) * layers[i + 1];
    if (i + 2 < layers.size()) count += 2 * std::int64_t{layers[i + 1]};
  }
  return count;
}

void VisitModel(const Archive& state, LatentModel& model) {
  VisitValues(state.Child("encoder"), model.encoder());
  VisitValues(state.Child("dynamics"), model.dynamics());
  VisitValues(state.Child("values"), model.values());
  VisitValues(state.Child("policy"), model.policy());
  VisitValues(state.Child("task"), model.task());
}

}  // namespace

LatentModelSpec SlotModel(const LatentSizes& sizes, int tasks) {
  return {.observation = kStateChannels,
          .action = kActionCodeSize,
          .encoder_width = sizes.encoder_width,
          .latent_groups = sizes.latent_groups,
          .width = sizes.model_width,
          .q_count = sizes.q_count,
          .bins = sizes.bins,
          .termination = sizes.termination,
          .tasks = tasks,
          .task_size = sizes.task_size,
          .slots = {}};
}

std::int64_t ParameterCount(const LatentSizes& sizes, int tasks) {
  const int latent = sizes.latent_groups * LatentModel::kGroup;
  const int state = latent + sizes.task_size;
  const int input = state + kActionCodeSize;
  const int width = sizes.model_width;
  const int outputs = sizes.bins > 0 ? sizes.bins : 1;
  const auto head = [width](int in, int out) { return CountOf({in, width, width, out}); };
  return CountOf({kStateChannels + sizes.task_size, sizes.encoder_width, latent}) +
         head(input, latent) + 4 * std::int64_t{latent} +  // the norms before SimNorm
         (1 + std::int64_t{sizes.q_count}) * head(input, outputs) +
         (sizes.termination ? head(state, 1) : 0) + head(state, 2 * kActionCodeSize) +
         std::int64_t{sizes.task_size} * tasks;
}

ArtefactHeader HeaderOf(const LatentSizes& sizes, ArtefactTexts made) {
  const Lift::Ptr lift = CompactLift();
  return {.kind = kLatentModelKind,
          .lift = lift->id(),
          .lift_kind = std::string(LiftKindName(lift->kind())),
          .shape = {{"encoder_width", std::to_string(sizes.encoder_width)},
                    {"latent_groups", std::to_string(sizes.latent_groups)},
                    {"model_width", std::to_string(sizes.model_width)},
                    {"q_count", std::to_string(sizes.q_count)},
                    {"bins", std::to_string(sizes.bins)},
                    {"termination", sizes.termination ? "1" : "0"},
                    {"task_size", std::to_string(sizes.task_size)}},
          .made = std::move(made)};
}

std::string EncodeModel(LatentModel& model, const ArtefactHeader& header) {
  TensorFileBuilder file;
  VisitModel(Archive(file), model);
  return EncodeArtefact(header, std::move(file));
}

LatentSizes SizesOf(const ArtefactHeader& header, const std::string& source) {
  TextReader shape(header.shape, source);
  const auto size = [&shape](const char* key, std::int64_t low, std::int64_t high) {
    return static_cast<int>(shape.Int(key, low, high));
  };
  LatentSizes sizes;
  sizes.encoder_width = size("encoder_width", 1, kMaxHiddenWidth);
  sizes.latent_groups = size("latent_groups", 1, 1024);
  sizes.model_width = size("model_width", 1, kMaxHiddenWidth);
  sizes.q_count = size("q_count", 2, 64);
  sizes.bins = size("bins", 0, 4096);
  if (sizes.bins == 1) shape.Fail("entry 'bins' is '1'");
  sizes.termination = shape.Flag("termination");
  sizes.task_size = size("task_size", 1, kMaxHiddenWidth);
  shape.RequireEnd();
  return sizes;
}

std::unique_ptr<LatentModel> ReadModel(const Artefact& artefact) {
  artefact.Require(kLatentModelKind, CompactLift()->id());
  const LatentSizes sizes = SizesOf(artefact.header(), artefact.source());
  const TensorInfo* const vectors = artefact.tensors().Find(kTaskVectors);
  const auto fail = [&](const char* problem) {
    throw UserError(StrCat(artefact.source(), ": ", problem));
  };
  if (vectors == nullptr || vectors->shape.empty()) fail("no vectors of tasks");
  // one vector is a column, several are rows
  const std::int64_t tasks = vectors->shape.size() == 1 ? 1 : vectors->shape.front();
  if (tasks < 1 || tasks > kMaxTasks) fail("an impossible number of tasks");
  // before memory is asked for
  if (artefact.parameter_count() != ParameterCount(sizes, static_cast<int>(tasks))) {
    fail("its sizes are not those of its tensors");
  }
  auto model =
      std::make_unique<LatentModel>(SlotModel(sizes, static_cast<int>(tasks)), Rng(0, "unused"));
  const Archive state(artefact.tensors());
  VisitModel(state, *model);
  state.RequireAllUsed();
  return model;
}

}  // namespace msrl
