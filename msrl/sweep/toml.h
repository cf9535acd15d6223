// toml++ for those that read files of users.
//
// Its parser asserts, or tells the optimiser to assume, that a key begins as keys do, and reports
// the opposite as an error right after: `[=]` in a file would abort a build with assertions.
// Nested tables are destroyed by recursion, so their depth is limited; see also sweep_spec.cc.
#ifndef MSRL_SWEEP_TOML_H_
#define MSRL_SWEEP_TOML_H_

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#endif  // MSRL_SWEEP_TOML_H_
