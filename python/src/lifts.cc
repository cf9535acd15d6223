#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "msrl/core/lift.h"
#include "msrl/env/spec.h"
#include "python/src/bindings.h"

namespace msrl::python {
namespace {

// nanobind shares objects that may be changed; a lift has no function that would.
std::shared_ptr<Lift> Share(const Lift::Ptr& lift) { return std::const_pointer_cast<Lift>(lift); }

std::shared_ptr<Lift> MakeLift(std::string_view kind, Index d, Index q,
                               const std::vector<std::pair<std::string, double>>& slots) {
  LiftSpec spec{.kind = LiftKindFromName(kind), .d = d, .q = q, .slots = {}};
  for (const auto& [name, scale] : slots) spec.slots.push_back({name, scale});
  return Share(Lift::Make(std::move(spec)));
}

std::string_view RoleName(BlockRole role) {
  switch (role) {
    case BlockRole::kGeometry:
      return "geometry";
    case BlockRole::kAction:
      return "action";
    case BlockRole::kActionGeometry:
      return "action-geometry";
    case BlockRole::kInvariant:
      return "invariant";
  }
  MSRL_CHECK(false, "no such role");
  return {};
}

}  // namespace

void BindLifts(nb::module_& module) {
  using namespace nb::literals;  // NOLINT(google-build-using-namespace)

  nb::class_<LiftBlock>(module, "LiftBlock", "A named range of the channels of a lift.")
      .def_ro("name", &LiftBlock::name)
      .def_ro("offset", &LiftBlock::offset)
      .def_ro("size", &LiftBlock::size)
      .def_prop_ro(
          "role", [](const LiftBlock& block) { return RoleName(block.role); },
          "How a gauge (S, U) acts on it: 'geometry' (S), 'action' (U), 'action-geometry' "
          "(U (x) S) or 'invariant'.")
      .def("__repr__", [](const LiftBlock& block) {
        return StrCat("LiftBlock(", block.name, ", offset=", block.offset, ", size=", block.size,
                      ")");
      });

  nb::class_<Lift>(module, "Lift",
                   "The step lift: one transition (x, a, r, x') becomes a vector of m channels.\n\n"
                   "Immutable. Matrices of lifts with different ids cannot be mixed.")
      .def(nb::new_(&MakeLift), "kind"_a, "d"_a, "q"_a,
           "slots"_a = std::vector<std::pair<std::string, double>>{},
           "kind: one of LIFT_KINDS; d, q: dimensions of states and actions; slots: what each "
           "coordinate of a state means, as (name, scale), or nothing.")
      .def_prop_ro("kind", [](const Lift& lift) { return LiftKindName(lift.kind()); })
      .def_prop_ro("d", &Lift::d, "Dimension of a state.")
      .def_prop_ro("q", &Lift::q, "Dimension of an action.")
      .def_prop_ro("m", &Lift::m, "Number of channels: the matrix is m x m.")
      .def_prop_ro(
          "id", [](const Lift& lift) { return lift.id().ToString(); },
          "The lift's identity: a hash of kind, dimensions, order of blocks, slots and scales.")
      .def_prop_ro("blocks", [](const Lift& lift) { return lift.blocks(); })
      .def_prop_ro("labels", &Lift::Labels, "A name per row and column of the matrix.")
      .def_prop_ro("slots",
                   [](const Lift& lift) {
                     std::vector<std::pair<std::string, double>> slots;
                     for (const GeometrySlot& slot : lift.spec().slots) {
                       slots.emplace_back(slot.name, slot.scale);
                     }
                     return slots;
                   })
      .def("block", &Lift::FindBlock, "name"_a, nb::rv_policy::copy, "The block of this name.")
      .def("__eq__", [](const Lift& a, const Lift& b) { return a.id() == b.id(); })
      .def("__eq__", [](const Lift&, const nb::object&) { return false; })
      .def("__hash__", [](const Lift& lift) { return lift.id().value; })
      .def("__repr__", [](const Lift& lift) { return StrCat("Lift(", lift.Describe(), ")"); });

  module.def("lift_kinds", [] {
    constexpr auto kNames = EnumNames(LiftKind{});
    return std::vector<std::string>(kNames.begin(), kNames.end());
  });

  module.def(
      "aligned_lift",
      [](std::string_view kind) { return Share(CompactLift(LiftKindFromName(kind))); },
      "kind"_a = "compact",
      "The lift of all environments: 8 aligned slots of geometry, 10 of action code. `kind` is one "
      "of the compact ones.");
}

}  // namespace msrl::python
