#include <nanobind/eigen/dense.h>
#include <nanobind/operators.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "msrl/core/functional.h"
#include "msrl/core/gauge.h"
#include "msrl/core/gluing.h"
#include "msrl/core/patterns.h"
#include "msrl/core/segment_view.h"
#include "msrl/value/matrix_features.h"
#include "python/src/bindings.h"

namespace msrl::python {
namespace {

using namespace nb::literals;  // NOLINT(google-build-using-namespace)

using SharedLift = std::shared_ptr<Lift>;
using Range = std::pair<Index, Index>;  // [begin, end)

// One state per row there is one state per column here.
SegmentView ViewOf(const Numbers<2>& x, const Numbers<2>& a, const Numbers<1>& r) {
  const auto size = [](std::size_t n) { return static_cast<Index>(n); };
  return {{x.data(), size(x.shape(1)), size(x.shape(0))},
          {a.data(), size(a.shape(1)), size(a.shape(0))},
          {r.data(), size(r.shape(0))}};
}

SegmentMatrix DescribeArrays(const SharedLift& lift, const Numbers<2>& x, const Numbers<2>& a,
                             const Numbers<1>& r) {
  const SegmentView segment = ViewOf(x, a, r);
  const nb::gil_scoped_release release;
  return Describe(lift, segment);
}

NewArray<double> LiftedArrays(const Lift& lift, const Numbers<2>& x, const Numbers<2>& a,
                              const Numbers<1>& r) {
  const Eigen::MatrixXd psi = LiftedSteps(lift, ViewOf(x, a, r));
  NewArray<double> steps = MakeArray<double>(
      {static_cast<std::size_t>(psi.cols()), static_cast<std::size_t>(psi.rows())});
  std::copy(psi.data(), psi.data() + psi.size(), steps.data());
  return steps;
}

NewArray<double> DenseArray(const SegmentMatrix& matrix) {
  const auto m = static_cast<std::size_t>(matrix.dim());
  NewArray<double> dense = MakeArray<double>({m, m});
  const std::span<const double> packed = matrix.packed();
  std::size_t next = 0;
  for (std::size_t j = 0; j < m; ++j) {
    for (std::size_t i = 0; i <= j; ++i, ++next) {
      dense.data()[i * m + j] = packed[next];
      dense.data()[j * m + i] = packed[next];
    }
  }
  return dense;
}

std::vector<Interval> IntervalsOf(const std::vector<Range>& ranges) {
  std::vector<Interval> intervals;
  for (const auto& [begin, end] : ranges) intervals.push_back({begin, end});
  return intervals;
}

std::vector<Range> RangesOf(const std::vector<Interval>& intervals) {
  std::vector<Range> ranges;
  for (const Interval& interval : intervals) ranges.emplace_back(interval.begin, interval.end);
  return ranges;
}

SegmentMatrix GlueNerveOf(const std::vector<std::pair<int, SegmentMatrix>>& family) {
  std::vector<SharedMatrix> shared;
  for (const auto& [members, matrix] : family) {
    if (members < 1) {
      throw UserError(StrCat("a matrix is shared by at least one interval, got ", members));
    }
    shared.push_back({members, matrix});
  }
  return GlueNerve(shared);
}

void BindMatrix(nb::module_& module) {
  nb::class_<SegmentMatrix>(
      module, "SegmentMatrix",
      "M = sum over the steps of psi psi^T: the descriptor of a trajectory segment.\n\n"
      "A symmetric m x m matrix with the lift it was made with. SegmentMatrix(lift) is that of the "
      "empty segment. Immutable from Python.")
      .def(
          "__init__",
          [](SegmentMatrix* self, const SharedLift& lift) { new (self) SegmentMatrix(lift); },
          "lift"_a)
      .def_static(
          "from_dense",
          [](const SharedLift& lift, const Eigen::MatrixXd& dense) {
            return SegmentMatrix::FromDense(lift, dense);
          },
          "lift"_a, "dense"_a,
          "UserError unless it is m x m, finite and symmetric to 1e-12 of its largest entry.")
      .def_static(
          "from_packed",
          [](const SharedLift& lift, std::vector<double> packed) {
            return SegmentMatrix::FromPacked(lift, std::move(packed));
          },
          "lift"_a, "packed"_a)
      .def_prop_ro(
          "lift",
          [](const SegmentMatrix& matrix) { return std::const_pointer_cast<Lift>(matrix.lift()); })
      .def_prop_ro("dim", &SegmentMatrix::dim)
      .def_prop_ro("matrix", &DenseArray, nb::rv_policy::automatic,
                   "The m x m matrix, a new array at every call.")
      .def_prop_ro(
          "packed",
          [](const SegmentMatrix& matrix) {
            const std::span<const double> packed = matrix.packed();
            return nb::ndarray<nb::numpy, const double, nb::ndim<1>>(packed.data(),
                                                                     {packed.size()});
          },
          nb::rv_policy::reference_internal,
          "The m(m+1)/2 numbers of the upper triangle, column by column: a view, not a copy.")
      .def_prop_ro("horizon_entry", &SegmentMatrix::HorizonEntry,
                   "The entry of the constant channel: the horizon T of a genuine segment.")
      .def("block", &SegmentMatrix::Block, "rows"_a, "columns"_a,
           "The part of the matrix with these two blocks of the lift.")
      .def("inner", &SegmentMatrix::Inner, "other"_a, "Frobenius inner product.")
      .def("distance", &SegmentMatrix::Distance, "other"_a, "Frobenius distance.")
      .def_prop_ro("norm", &SegmentMatrix::Norm, "Frobenius norm.")
      .def_prop_ro("trace", &SegmentMatrix::Trace)
      .def_prop_ro("eigenvalues", &SegmentMatrix::Eigenvalues, "Ascending.")
      .def("is_psd", &SegmentMatrix::IsPsd, "tolerance"_a = 1e-10,
           "Smallest eigenvalue >= -tolerance * largest absolute eigenvalue.")
      .def(nb::self + nb::self)
      .def(nb::self - nb::self)
      .def(
          "__mul__", [](SegmentMatrix matrix, double factor) { return matrix *= factor; },
          nb::is_operator())
      .def(
          "__rmul__", [](SegmentMatrix matrix, double factor) { return matrix *= factor; },
          nb::is_operator())
      .def("__eq__", [](const SegmentMatrix& a, const SegmentMatrix& b) { return a == b; })
      .def("__eq__", [](const SegmentMatrix&, const nb::object&) { return false; })
      .def("__repr__", [](const SegmentMatrix& matrix) {
        return StrCat("SegmentMatrix(", matrix.lift()->Describe(), ", horizon entry ",
                      matrix.HorizonEntry(), ")");
      });

  module.def("describe", &DescribeArrays, "lift"_a, "x"_a.noconvert(), "a"_a.noconvert(),
             "r"_a.noconvert());
  module.def("lifted_steps", &LiftedArrays, "lift"_a, "x"_a.noconvert(), "a"_a.noconvert(),
             "r"_a.noconvert());
}

void BindComposition(nb::module_& module) {
  nb::class_<AnchoredMatrix>(
      module, "AnchoredMatrix",
      "A segment's matrix with its first and last state, which composition has to match.")
      .def(
          "__init__",
          [](AnchoredMatrix* self, const SegmentMatrix& matrix, const Eigen::VectorXd& entry,
             const Eigen::VectorXd& exit) {
            const Index d = matrix.lift()->d();
            if (entry.size() != d || exit.size() != d) {
              throw UserError(StrCat("the lift's states have ", d, " coordinates, got ",
                                     entry.size(), " and ", exit.size()));
            }
            new (self) AnchoredMatrix{matrix, entry, exit};
          },
          "segment_matrix"_a, "entry"_a, "exit"_a)
      .def_ro("segment_matrix", &AnchoredMatrix::matrix)
      .def_prop_ro("entry", [](const AnchoredMatrix& anchored) { return anchored.entry; })
      .def_prop_ro("exit", [](const AnchoredMatrix& anchored) { return anchored.exit; });

  module.def(
      "compose",
      [](const AnchoredMatrix& first, const AnchoredMatrix& second, double tolerance) {
        if (!(tolerance >= 0.0)) throw UserError(StrCat("tolerance is ", tolerance));
        return Compose(first, second, tolerance);
      },
      "first"_a, "second"_a, "tolerance"_a = 1e-9,
      "The matrix of `first` followed by `second`. UserError if the first does not end where the "
      "second begins (each coordinate within `tolerance`) or the lifts differ.");

  module.def(
      "glue_nerve", &GlueNerveOf, "family"_a,
      "The sum over S of (-1)^(|S|+1) M_S of pairs (|S|, M_S): a candidate, which need not be "
      "realizable.");
  module.def(
      "plan_interval_gluing",
      [](const std::vector<Range>& cover, Index horizon) {
        const IntervalGluing plan = PlanIntervalGluing(IntervalsOf(cover), horizon);
        return std::pair(RangesOf(plan.pieces), RangesOf(plan.overlaps));
      },
      "cover"_a, "horizon"_a,
      "The pieces and overlaps, as [begin, end), whose matrices glue_intervals needs.");
  module.def(
      "glue_intervals",
      [](const std::vector<Range>& cover, Index horizon,
         const std::function<SegmentMatrix(Index, Index)>& matrix_of) {
        return GlueIntervals(IntervalsOf(cover), horizon, [&matrix_of](Interval interval) {
          return matrix_of(interval.begin, interval.end);
        });
      },
      "cover"_a, "horizon"_a, "matrix_of"_a,
      "The matrix of the steps 0 ... horizon - 1 from those of overlapping intervals [begin, end) "
      "that cover them; matrix_of(begin, end) gives the matrix of one.");
}

void BindGauge(nb::module_& module) {
  nb::class_<Gauge>(module, "Gauge", "A change of coordinates x -> S x, a -> U a.")
      .def(
          "__init__",
          [](Gauge* self, const Eigen::MatrixXd& s, const Eigen::MatrixXd& u) {
            new (self) Gauge{s, u};
          },
          "S"_a, "U"_a)
      .def_static("identity", &Gauge::Identity, "d"_a, "q"_a)
      .def_prop_ro("S", [](const Gauge& gauge) { return gauge.S; })
      .def_prop_ro("U", [](const Gauge& gauge) { return gauge.U; })
      .def("inverse", &Gauge::Inverse, "UserError if a factor is singular.");
  module.def(
      "apply_gauge",
      [](const SegmentMatrix& matrix, const Gauge& gauge) { return ApplyGauge(matrix, gauge); },
      "matrix"_a, "gauge"_a, "H M H^T: the matrix of the same segment in the other coordinates.");
  module.def("congruence_invariants", &CongruenceInvariants, "matrix"_a,
             "Features that do not move under any gauge, up to rounding.");
}

void BindFunctionals(nb::module_& module) {
  nb::class_<AdditiveFunctional>(
      module, "AdditiveFunctional",
      "F = sum over the steps of a + b . psi' + psi' . C psi', with psi = [psi', 1].")
      .def(
          "__init__",
          [](AdditiveFunctional* self, double a, const Eigen::VectorXd& b,
             const Eigen::MatrixXd& c) {
            new (self) AdditiveFunctional{a, b, c};
          },
          "a"_a, "b"_a, "C"_a)
      .def_ro("a", &AdditiveFunctional::a)
      .def_prop_ro("b", [](const AdditiveFunctional& f) { return f.b; })
      .def_prop_ro("C", [](const AdditiveFunctional& f) { return f.C; })
      .def(
          "__call__",
          [](const AdditiveFunctional& f, const SegmentMatrix& matrix) {
            return Evaluate(f, matrix);
          },
          "matrix"_a, "<A, M>.");
  module.def(
      "functional_to_matrix",
      [](const SharedLift& lift, const AdditiveFunctional& functional) {
        return FunctionalToMatrix(lift, functional);
      },
      "lift"_a, "functional"_a, "A = [[C, b/2], [b/2^T, a]], so that F = <A, M>.");
  module.def("matrix_to_functional", &MatrixToFunctional, "matrix"_a,
             "Every symmetric matrix is a functional.");
}

void BindPatterns(nb::module_& module) {
  nb::class_<PatternResidual>(module, "PatternResidual", "How far a matrix is from an identity.")
      .def_ro("name", &PatternResidual::name)
      .def_ro("residual", &PatternResidual::residual, "Frobenius norm of what should vanish.")
      .def_ro("scale", &PatternResidual::scale, "A bound of it.")
      .def_prop_ro("relative", &PatternResidual::Relative)
      .def("holds", &PatternResidual::Holds, "tolerance"_a = 1e-9)
      .def("__repr__", [](const PatternResidual& pattern) {
        return StrCat("PatternResidual(", pattern.name, ", relative ", pattern.Relative(), ")");
      });
  module.def("patterns", &AllPatterns, "matrix"_a,
             "The identities that can be read off the matrix alone.");
  module.def("circulation", &Circulation, "matrix"_a, "The skew part of M_{c delta}.");

  nb::class_<Endpoints>(module, "Endpoints", "The first and last state of a path.")
      .def_ro("defined", &Endpoints::defined, "False if the path is closed.")
      .def_prop_ro("x_0", [](const Endpoints& ends) { return ends.x_0; })
      .def_prop_ro("x_T", [](const Endpoints& ends) { return ends.x_T; })
      .def_ro("amplification", &Endpoints::amplification)
      .def_ro("error_bound", &Endpoints::error_bound);
  module.def("recover_endpoints", &RecoverEndpoints, "matrix"_a,
             "The end points of a path, from its matrix alone.");
}

void BindFeatures(nb::module_& module) {
  nb::class_<MatrixFeatures>(module, "MatrixFeatures",
                             "What networks see of a matrix: bounded numbers of comparable size.")
      .def(
          "__init__",
          [](MatrixFeatures* self, const SharedLift& lift, std::string_view features) {
            new (self) MatrixFeatures(lift, MatrixFeatureOptions::FromName(features));
          },
          "lift"_a, "features"_a = "selected+endpoints", "features: one of FEATURE_SETS.")
      .def_prop_ro("size", &MatrixFeatures::size)
      .def_prop_ro("names", &MatrixFeatures::Names)
      .def(
          "__call__",
          [](const MatrixFeatures& features, const SegmentMatrix& matrix) {
            const auto size = static_cast<std::size_t>(features.size());
            NewArray<double> out = MakeArray<double>({size});
            features.Compute(matrix, std::span(out.data(), size));
            return out;
          },
          "matrix"_a, "The features in double. UserError if the matrix has another lift.")
      .def(
          "pullback",
          [](const MatrixFeatures& features, const SegmentMatrix& matrix,
             const Numbers<1>& d_features) {
            if (std::ssize(SpanOf(d_features)) != features.size()) {
              throw UserError(StrCat("there are ", features.size(), " features, got ",
                                     d_features.size(), " derivatives"));
            }
            return features.Pullback(matrix, SpanOf(d_features));
          },
          "matrix"_a, "d_features"_a,
          "The gradient with respect to the matrix of a function with these derivatives with "
          "respect to the features.");
  module.def("feature_sets", [] {
    constexpr auto kNames = EnumNames(FeatureSet{});
    return std::vector<std::string>(kNames.begin(), kNames.end());
  });
}

}  // namespace

void BindMatrices(nb::module_& module) {
  BindMatrix(module);
  BindComposition(module);
  BindGauge(module);
  BindFunctionals(module);
  BindPatterns(module);
  BindFeatures(module);
}

}  // namespace msrl::python
