// msrl._core: the C++ library as Python sees it. python/msrl makes it comfortable.
#include <nanobind/stl/string_view.h>

#include "msrl/agents/agent.h"
#include "msrl/core/check.h"
#include "msrl/run/run_spec.h"
#include "python/src/bindings.h"

NB_MODULE(_core, module) {
  namespace nb = nanobind;
  module.doc() = "The C++ library of msrl.";
  module.def("version", &msrl::BuildVersion);
  nb::exception<msrl::UserError>(module, "UserError", PyExc_ValueError).doc() =
      "The input is wrong; the message says what, where and what to do.";
  nb::exception<msrl::RunError>(module, "RunError", PyExc_RuntimeError).doc() =
      "A run cannot go on: a number is not finite any more.";
  nb::exception<msrl::InvariantError>(module, "InvariantError", PyExc_RuntimeError).doc() =
      "The library is wrong, not its input. Please report it.";
  msrl::python::BindLifts(module);
  msrl::python::BindMatrices(module);
  msrl::python::BindObstruction(module);
  msrl::python::BindEnvironments(module);
  msrl::python::BindPolicy(module);
  msrl::python::BindStores(module);
  msrl::python::BindTraining(module);
}
