// toml++ for those that read files of users.
//
// Its parser asserts, or tells the optimiser to assume, that a key begins as keys do, and reports
// the opposite as an error right after: `[=]` in a file would abort a build with assertions.
// Nested tables are destroyed by recursion, so their depth is limited; see also toml.cc.
#ifndef MSRL_FILES_TOML_H_
#define MSRL_FILES_TOML_H_

#include <string>
#include <string_view>

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace msrl {

// UserError with file and line on what is no TOML, or TOML too deep or strange for the parser.
toml::table ParseToml(std::string_view text, std::string_view file);

inline bool IsControl(char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }
// An error is one line, whatever a key in quotes may hold.
std::string OneLine(std::string text);

}  // namespace msrl

#endif  // MSRL_FILES_TOML_H_
