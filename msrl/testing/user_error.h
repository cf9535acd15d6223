// What a call tells the user who made a mistake.
#ifndef MSRL_TESTING_USER_ERROR_H_
#define MSRL_TESTING_USER_ERROR_H_

#include <string>

#include "msrl/core/check.h"

namespace msrl::testing {

// The text of the UserError that f() throws, "no error" if it throws nothing.
template <typename F>
std::string UserErrorText(const F& f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace msrl::testing

#endif  // MSRL_TESTING_USER_ERROR_H_
