// One knob for all test tolerances: MSRL_TOL_SCALE in the environment multiplies them.
#ifndef MSRL_TESTING_TOLERANCE_H_
#define MSRL_TESTING_TOLERANCE_H_

namespace msrl::testing {

double Tol(double base);

}  // namespace msrl::testing

#endif  // MSRL_TESTING_TOLERANCE_H_
