#include "msrl/mujoco/models.h"

#include <algorithm>

#include "msrl/core/check.h"
#include "msrl/mujoco/embedded_models.h"

namespace msrl {
namespace {

std::string_view Embedded(std::string_view name) {
  const auto* found = std::find_if(std::begin(kEmbeddedModels), std::end(kEmbeddedModels),
                                   [&](const EmbeddedModel& model) { return model.name == name; });
  MSRL_CHECK(found != std::end(kEmbeddedModels), "no model ", name);
  return found->text;
}

}  // namespace

std::string ReplaceOnce(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  MSRL_CHECK(at != std::string::npos && text.find(from, at + 1) == std::string::npos,
             "not exactly one ", from);
  return text.replace(at, from.size(), to);
}

std::string ModelText(std::string_view name) {
  return ReplaceOnce(std::string(Embedded(name)), "<!--scene-->", Embedded("scene"));
}

}  // namespace msrl
