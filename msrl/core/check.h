// Two kinds of errors.
//
// InvariantError: the program is wrong. Raised by MSRL_CHECK, which is always on.
// UserError: the input is wrong. One line that says what, where and what to do; the command line
// turns it into exit code 2.
#ifndef MSRL_CORE_CHECK_H_
#define MSRL_CORE_CHECK_H_

#include <stdexcept>
#include <string>

#include "msrl/core/text.h"

namespace msrl {

class InvariantError : public std::logic_error {
  using std::logic_error::logic_error;
};

class UserError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace internal {
[[noreturn]] void FailCheck(const char* file, int line, const char* condition,
                            const std::string& message);
}  // namespace internal
}  // namespace msrl

// MSRL_CHECK(condition, parts of a message ...)
#define MSRL_CHECK(condition, ...)                                                \
  do {                                                                            \
    if (!(condition)) [[unlikely]] {                                              \
      ::msrl::internal::FailCheck(__FILE__, __LINE__, #condition,                 \
                                  ::msrl::StrCat("" __VA_OPT__(, ) __VA_ARGS__)); \
    }                                                                             \
  } while (false)

// The message shows both values.
#define MSRL_CHECK_OP(a, op, b) MSRL_CHECK((a)op(b), "left is ", (a), ", right is ", (b))
#define MSRL_CHECK_EQ(a, b) MSRL_CHECK_OP(a, ==, b)
#define MSRL_CHECK_LE(a, b) MSRL_CHECK_OP(a, <=, b)
#define MSRL_CHECK_LT(a, b) MSRL_CHECK_OP(a, <, b)
#define MSRL_CHECK_GE(a, b) MSRL_CHECK_OP(a, >=, b)
#define MSRL_CHECK_GT(a, b) MSRL_CHECK_OP(a, >, b)

#endif  // MSRL_CORE_CHECK_H_
