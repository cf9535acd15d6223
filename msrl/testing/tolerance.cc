#include "msrl/testing/tolerance.h"

#include <cstdlib>

namespace msrl::testing {

double Tol(double base) {
  static const double scale = [] {
    const char* text = std::getenv("MSRL_TOL_SCALE");
    return text == nullptr ? 1.0 : std::atof(text);
  }();
  return base * scale;
}

}  // namespace msrl::testing
