// What is kept in files: recorded episodes, segment libraries, pretrained artefacts.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "msrl/artefacts/artefact.h"
#include "msrl/datasets/episode_file.h"
#include "msrl/datasets/segment_sources.h"
#include "msrl/env/spec.h"
#include "msrl/files/atomic_file.h"
#include "msrl/memory/segment_library.h"
#include "msrl/run/start_from.h"
#include "python/src/bindings.h"

namespace msrl::python {
namespace {

using namespace nb::literals;  // NOLINT(google-build-using-namespace)

template <typename T, int kDims>
using Given = nb::ndarray<const T, nb::ndim<kDims>, nb::c_contig, nb::device::cpu>;

// A state per row in NumPy is a state per column here, in the same memory.
Eigen::MatrixXf Columns(const Given<float, 2>& rows) {
  return Eigen::Map<const Eigen::MatrixXf>(rows.data(), static_cast<Eigen::Index>(rows.shape(1)),
                                           static_cast<Eigen::Index>(rows.shape(0)));
}
NewArray<float> Rows(const Eigen::MatrixXf& columns) {
  NewArray<float> rows = MakeArray<float>(
      {static_cast<std::size_t>(columns.cols()), static_cast<std::size_t>(columns.rows())});
  std::copy_n(columns.data(), columns.size(), rows.data());
  return rows;
}

void BindEpisodes(nb::module_& module) {
  nb::class_<StoredEpisode>(module, "Episode", "A recorded episode of T steps.")
      .def_ro("env", &StoredEpisode::env)
      .def_ro("seed", &StoredEpisode::seed)
      .def_ro("instance", &StoredEpisode::instance, "The layout, as text.")
      .def_ro("discrete", &StoredEpisode::discrete, "Whether actions are indices.")
      .def_ro("reward_scale", &StoredEpisode::reward_scale)
      .def_ro("terminated", &StoredEpisode::terminated)
      .def_ro("truncated", &StoredEpisode::truncated)
      .def_ro("facts", &StoredEpisode::facts, "What no observer is told.")
      .def_prop_ro("steps", &StoredEpisode::horizon, "T.")
      .def_prop_ro(
          "observations", [](const StoredEpisode& self) { return Rows(self.observations); },
          "(T + 1) x n, float32.", nb::rv_policy::automatic)
      .def_prop_ro(
          "actions", [](const StoredEpisode& self) { return Rows(self.actions); },
          "T x size, float32; T x 1 whole numbers if discrete.", nb::rv_policy::automatic)
      .def_prop_ro(
          "rewards", [](const StoredEpisode& self) { return CopyToArray<double>(self.rewards); },
          "T, in the environment's own unit.", nb::rv_policy::automatic)
      .def_prop_ro(
          "geometry", [](const StoredEpisode& self) { return Rows(self.geometry); },
          "(T + 1) x 8, float32: the aligned slots.", nb::rv_policy::automatic)
      .def_prop_ro(
          "values",
          [](const StoredEpisode& self) {
            std::map<std::string, NewArray<float>> values;
            for (const auto& [name, column] : self.values) {
              values.emplace(name, CopyToArray<float>(column));
            }
            return values;
          },
          "Value of each of the T + 1 states by name, in units of reward_scale.",
          nb::rv_policy::automatic)
      .def(
          "__init__",
          [](StoredEpisode* self, const std::string& env, const Given<float, 2>& observations,
             const Given<float, 2>& actions, const Given<double, 1>& rewards,
             const Given<float, 2>& geometry, bool discrete, double reward_scale, bool terminated,
             bool truncated, std::uint64_t seed, const std::string& instance,
             const std::map<std::string, Given<float, 1>>& values,
             const std::map<std::string, double>& facts) {
            StoredEpisode episode;
            episode.env = env;
            episode.observations = Columns(observations);
            episode.actions = Columns(actions);
            episode.rewards = Eigen::Map<const Eigen::VectorXd>(
                rewards.data(), static_cast<Eigen::Index>(rewards.size()));
            episode.geometry = Columns(geometry);
            episode.discrete = discrete;
            episode.reward_scale = reward_scale;
            episode.terminated = terminated;
            episode.truncated = truncated;
            episode.seed = seed;
            episode.instance = instance;
            for (const auto& [name, column] : values) {
              episode.values[name] = Eigen::Map<const Eigen::VectorXf>(
                  column.data(), static_cast<Eigen::Index>(column.size()));
            }
            episode.facts = facts;
            new (self) StoredEpisode(std::move(episode));
          },
          nb::kw_only(), "env"_a, "observations"_a, "actions"_a, "rewards"_a, "geometry"_a,
          "discrete"_a, "reward_scale"_a, "terminated"_a, "truncated"_a, "seed"_a, "instance"_a,
          "values"_a, "facts"_a);

  nb::class_<EpisodeFile>(module, "Dataset", "Recorded episodes, as in a file of msrl collect.")
      .def(
          "__init__",
          [](EpisodeFile* self, const std::vector<StoredEpisode>& episodes, double gamma,
             const std::map<std::string, std::string>& attributes) {
            EpisodeFile file;
            file.lift_id = CompactLift()->id().ToString();
            file.action_code_size = kActionCodeSize;
            file.gamma = gamma;
            file.attributes = attributes;
            file.episodes = episodes;
            RequireValid(file, "dataset");
            new (self) EpisodeFile(std::move(file));
          },
          "episodes"_a, "gamma"_a = 0.99, "attributes"_a = std::map<std::string, std::string>(),
          "UserError on the first thing that cannot be.")
      .def_ro("lift_id", &EpisodeFile::lift_id)
      .def_ro("gamma", &EpisodeFile::gamma)
      .def_ro("attributes", &EpisodeFile::attributes, "How it was made.")
      .def_ro("episodes", &EpisodeFile::episodes)
      .def_prop_ro("steps", &EpisodeFile::TotalSteps)
      .def_prop_ro("content_hash", &EpisodeFile::ContentHash)
      .def("__len__", [](const EpisodeFile& self) { return self.episodes.size(); });
  module.def(
      "read_dataset", [](const std::string& path) { return ReadEpisodes(path); }, "path"_a);
  module.def(
      "write_dataset",
      [](const std::string& path, const EpisodeFile& file) { WriteEpisodes(path, file); }, "path"_a,
      "dataset"_a);
}

class Library {
 public:
  explicit Library(SegmentLibrary library)
      : library_(std::make_unique<SegmentLibrary>(std::move(library))) {}

  static Library Build(const EpisodeFile& file, const std::string& family, std::int64_t length,
                       std::int64_t stride, std::int64_t capacity, const std::string& policy,
                       const std::string& lift, std::uint64_t seed) {
    if (file.episodes.empty()) throw UserError("there are no episodes to make a library of");
    const Lift::Ptr made_with = CompactLift(LiftKindFromName(lift));
    SegmentLibraryConfig config = ConfigFor(file.episodes[0], made_with);
    config.capacity = capacity;
    config.policy = ParseEnum<LibraryPolicy>("policy", policy);
    config.max_length = length;
    config.family = family;
    Library library{SegmentLibrary(config)};
    Rng rng(seed, "library");
    for (std::size_t i = 0; i < file.episodes.size(); ++i) {
      AddEpisode(file.episodes[i], static_cast<std::int64_t>(i),
                 {.length = length, .stride = stride}, rng, *library.library_);
    }
    if (library.size() == 0) throw UserError(StrCat("no episode has ", length, " steps"));
    return library;
  }

  std::int64_t size() const { return library_->size(); }
  const SegmentLibrary& get() const { return *library_; }

  // Slots and distances, nearest first.
  std::tuple<NewArray<std::int64_t>, NewArray<double>> Query(
      const Given<float, 1>& context, int k, double radius,
      const std::optional<Given<float, 1>>& head_action, double action_radius, bool exactly) const {
    if (k < 1) throw UserError(StrCat("k must be at least 1, got ", k));
    Require("context", context, library_->config().context_size);
    QueryOptions options{.k = static_cast<int>(std::min<std::int64_t>(k, size())),
                         .radius = static_cast<float>(radius)};
    if (head_action) {
      Require("head_action", *head_action, library_->config().action_size);
      options.head_action = {head_action->data(), head_action->size()};
      options.action_radius = static_cast<float>(action_radius);
    }
    std::vector<Neighbour> found(static_cast<std::size_t>(options.k));
    const std::span<const float> place(context.data(), context.size());
    found.resize(static_cast<std::size_t>(exactly ? library_->QueryExactly(place, options, found)
                                                  : library_->Query(place, options, found)));
    NewArray<std::int64_t> slots = MakeArray<std::int64_t>({found.size()});
    NewArray<double> distances = MakeArray<double>({found.size()});
    for (std::size_t i = 0; i < found.size(); ++i) {
      slots.data()[i] = found[i].slot;
      distances.data()[i] = found[i].distance;
    }
    return {slots, distances};
  }
  SegmentMatrix Matrix(std::int64_t slot) const {
    SegmentMatrix matrix(library_->config().lift);
    library_->AddMatrixTo(Slot(slot), matrix);
    return matrix;
  }
  std::int64_t Slot(std::int64_t slot) const {
    if (slot < 0 || slot >= size()) {
      throw UserError(StrCat("slot ", slot, " is not in 0 to ", size() - 1));
    }
    return slot;
  }

 private:
  static void Require(const char* what, const Given<float, 1>& values, int size) {
    if (std::ssize(std::span(values.data(), values.size())) != size) {
      throw UserError(StrCat(what, " must have ", size, " numbers, got ", values.size()));
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values.data()[i])) throw UserError(StrCat(what, " is not finite"));
    }
  }

  std::unique_ptr<SegmentLibrary> library_;
};

// A segment of a library: a copy of its parts.
struct LibrarySegment {
  std::string env;
  std::int64_t length, episode, uses;
  double reward_sum;
  bool terminated;
  std::vector<float> head_action, context, tail_observation, tail_geometry;
};

LibrarySegment SegmentAt(const Library& library, std::int64_t slot) {
  const SegmentLibrary& all = library.get();
  slot = library.Slot(slot);
  const auto list = [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  };
  return {.env = all.env(slot),
          .length = all.length(slot),
          .episode = all.episode(slot),
          .uses = all.uses(slot),
          .reward_sum = all.reward_sum(slot),
          .terminated = all.terminated(slot),
          .head_action = list(all.head_action(slot)),
          .context = list(all.context(slot)),
          .tail_observation = list(all.tail_observation(slot)),
          .tail_geometry = list(all.tail_geometry(slot))};
}

void BindLibrary(nb::module_& module) {
  nb::class_<LibrarySegment>(module, "LibrarySegment", "A segment of a library.")
      .def_ro("env", &LibrarySegment::env)
      .def_ro("length", &LibrarySegment::length, "Steps.")
      .def_ro("episode", &LibrarySegment::episode, "Which one it was cut from.")
      .def_ro("uses", &LibrarySegment::uses)
      .def_ro("reward_sum", &LibrarySegment::reward_sum, "In units of reward_scale.")
      .def_ro("terminated", &LibrarySegment::terminated, "Nothing can follow.")
      .def_prop_ro(
          "head_action", [](const LibrarySegment& s) { return CopyToArray<float>(s.head_action); },
          "The first action.", nb::rv_policy::automatic)
      .def_prop_ro(
          "context", [](const LibrarySegment& s) { return CopyToArray<float>(s.context); },
          "What its beginning is compared by.", nb::rv_policy::automatic)
      .def_prop_ro(
          "tail_observation",
          [](const LibrarySegment& s) { return CopyToArray<float>(s.tail_observation); },
          "The observation after the last step.", nb::rv_policy::automatic)
      .def_prop_ro(
          "tail_geometry",
          [](const LibrarySegment& s) { return CopyToArray<float>(s.tail_geometry); },
          "The geometry after the last step.", nb::rv_policy::automatic);
  nb::class_<Library>(module, "NativeLibrary", "A segment library.")
      .def_prop_ro("family", [](const Library& self) { return self.get().config().family; })
      .def_prop_ro("capacity", [](const Library& self) { return self.get().config().capacity; })
      .def_prop_ro("lift",
                   [](const Library& self) {
                     return std::const_pointer_cast<Lift>(self.get().config().lift);
                   })
      .def("__len__", &Library::size)
      .def("query", &Library::Query, "context"_a, "k"_a, "radius"_a, "head_action"_a.none(),
           "action_radius"_a, "exactly"_a)
      .def("segment", &SegmentAt, "slot"_a)
      .def("matrix", &Library::Matrix, "slot"_a)
      .def(
          "save", [](const Library& self, const std::string& path) { self.get().SaveFile(path); },
          "path"_a);
  module.def(
      "read_library",
      [](const std::string& place) {
        return Library(ReadSegments(place, [](const std::string& text) {
          PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 2);
        }));
      },
      "place"_a);
  module.def("build_library", &Library::Build, nb::kw_only(), "dataset"_a, "family"_a, "length"_a,
             "stride"_a, "capacity"_a, "policy"_a, "lift"_a, "seed"_a);
}

using Tensor =
    std::variant<NewArray<float>, NewArray<double>, NewArray<std::int64_t>, NewArray<std::uint8_t>>;
using GivenTensor = std::variant<nb::ndarray<const float, nb::c_contig, nb::device::cpu>,
                                 nb::ndarray<const double, nb::c_contig, nb::device::cpu>,
                                 nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>,
                                 nb::ndarray<const std::uint8_t, nb::c_contig, nb::device::cpu>>;

template <typename T>
NewArray<T> Shaped(std::span<const T> values, const Shape& shape) {
  auto memory = std::make_unique<T[]>(values.size());
  std::copy(values.begin(), values.end(), memory.get());
  nb::capsule owner(memory.get(), [](void* data) noexcept { delete[] static_cast<T*>(data); });
  const std::vector<std::size_t> sizes(shape.begin(), shape.end());
  return NewArray<T>(memory.release(), sizes.size(), sizes.data(), owner);
}

std::map<std::string, Tensor> TensorsOf(const Artefact& artefact) {
  std::map<std::string, Tensor> tensors;
  const TensorFile& file = artefact.tensors();
  for (const TensorInfo& info : file.tensors()) {
    switch (info.type) {
      case TensorType::kF32:
        tensors.emplace(info.name, Shaped(file.F32(info.name, info.shape), info.shape));
        break;
      case TensorType::kF64:
        tensors.emplace(info.name, Shaped(file.F64(info.name, info.shape), info.shape));
        break;
      case TensorType::kI64:
        tensors.emplace(info.name, Shaped(file.I64(info.name, info.shape), info.shape));
        break;
      case TensorType::kU8:
        tensors.emplace(info.name, Shaped(file.U8(info.name, info.shape), info.shape));
        break;
    }
  }
  return tensors;
}

void WriteArtefact(const std::string& path, const std::string& kind,
                   const std::map<std::string, GivenTensor>& tensors,
                   const std::shared_ptr<Lift>& lift, const ArtefactTexts& shape,
                   const ArtefactTexts& made) {
  ArtefactHeader header{.kind = kind, .lift = {}, .shape = shape, .made = made};
  if (lift) {
    header.lift = lift->id();
    header.lift_kind = LiftKindName(lift->kind());
  }
  TensorFileBuilder builder;
  for (const auto& entry : tensors) {
    const std::string& key = entry.first;
    std::visit(
        [&builder, &key](const auto& array) {
          Shape sizes;
          for (std::size_t i = 0; i < array.ndim(); ++i) {
            sizes.push_back(static_cast<std::int64_t>(array.shape(i)));
          }
          builder.Add(key, std::span(array.data(), array.size()), sizes);
        },
        entry.second);
  }
  const std::string contents = EncodeArtefact(header, std::move(builder));
  Artefact::Parse(contents, path);  // what cannot be read is not written
  WriteFileAtomically(path, contents);
}

void BindArtefacts(nb::module_& module) {
  nb::class_<Artefact>(module, "Artefact", "Something pretrained: its kind, lift and tensors.")
      .def_prop_ro("kind", [](const Artefact& self) { return self.header().kind; })
      .def_prop_ro(
          "lift_kind", [](const Artefact& self) { return self.header().lift_kind; },
          "Of the matrices that it was trained with; 'none' if it saw none.")
      .def_prop_ro("lift_id", [](const Artefact& self) { return self.header().lift.ToString(); })
      .def_prop_ro(
          "shape", [](const Artefact& self) { return self.header().shape; },
          "What its kind has to know to read the tensors.")
      .def_prop_ro(
          "made", [](const Artefact& self) { return self.header().made; }, "What made it.")
      .def_prop_ro("parameter_count", &Artefact::parameter_count)
      .def_prop_ro("tensors", &TensorsOf, "New arrays, by name.", nb::rv_policy::automatic);
  module.def(
      "read_artefact", [](const std::string& path) { return Artefact::Read(path); }, "path"_a);
  module.def("write_artefact", &WriteArtefact, "path"_a, "kind"_a, "tensors"_a, "lift"_a.none(),
             "shape"_a, "made"_a);
}

}  // namespace

void BindStores(nb::module_& module) {
  BindEpisodes(module);
  BindLibrary(module);
  BindArtefacts(module);
}

}  // namespace msrl::python
