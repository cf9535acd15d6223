#include "msrl/files/json_text.h"

namespace msrl {

// Brackets and commas outside of texts are all that depth and number of values depend on, also
// where the text is no JSON: a parser goes no further than the first error.
void RequireModestJson(std::string_view text, std::string_view source, const JsonLimits& limits) {
  const auto refuse = [source](std::string_view what, auto limit) {
    throw UserError(StrCat(source, " is damaged: ", what, " than ", limit));
  };
  if (text.size() > limits.bytes) refuse("more bytes", limits.bytes);
  int depth = 0;
  std::size_t values = 1;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
      continue;
    }
    if (c == '"') in_text = true;
    if (c == ']' || c == '}') --depth;
    if (c == '[' || c == '{') {
      if (++depth > limits.depth) refuse("values nested deeper", limits.depth);
    } else if (c != ',') {
      continue;
    }
    if (++values > limits.values) refuse("more values", limits.values);
  }
}

}  // namespace msrl
