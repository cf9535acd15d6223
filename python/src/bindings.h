// The parts of the extension module msrl._core, and how numbers cross the border.
#ifndef MSRL_PYTHON_SRC_BINDINGS_H_
#define MSRL_PYTHON_SRC_BINDINGS_H_

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace msrl::python {

namespace nb = nanobind;

// Numbers of the caller's, row-major, seen where they lie. The Python layer brings everything else
// to this form.
template <int kDims>
using Numbers = nb::ndarray<const double, nb::ndim<kDims>, nb::c_contig, nb::device::cpu>;
template <typename T>
using NewArray = nb::ndarray<nb::numpy, T>;

// A new array of NumPy's that owns its memory, to be filled.
template <typename T>
NewArray<T> MakeArray(std::initializer_list<std::size_t> shape) {
  std::size_t size = 1;
  for (const std::size_t n : shape) size *= n;
  auto memory = std::make_unique<T[]>(size);
  nb::capsule owner(memory.get(), [](void* data) noexcept { delete[] static_cast<T*>(data); });
  return NewArray<T>(memory.release(), shape, owner);
}

template <typename T, typename Range>
NewArray<T> CopyToArray(const Range& values) {
  NewArray<T> array = MakeArray<T>({static_cast<std::size_t>(std::size(values))});
  std::copy(std::begin(values), std::end(values), array.data());
  return array;
}

inline std::span<const double> SpanOf(const Numbers<1>& numbers) {
  return {numbers.data(), numbers.size()};
}

void BindLifts(nb::module_& module);
void BindMatrices(nb::module_& module);
void BindObstruction(nb::module_& module);
void BindEnvironments(nb::module_& module);
void BindPolicy(nb::module_& module);
void BindTraining(nb::module_& module);
void BindStores(nb::module_& module);

}  // namespace msrl::python

#endif  // MSRL_PYTHON_SRC_BINDINGS_H_
