// The MJCF models, embedded in the library (models/*.xml).
#ifndef MSRL_MUJOCO_MODELS_H_
#define MSRL_MUJOCO_MODELS_H_

#include <string>
#include <string_view>

namespace msrl {

// The text of models/<name>.xml with the shared scene put in. InvariantError on an unknown name.
std::string ModelText(std::string_view name);

// Replaces the only occurrence of `from`; InvariantError if there is none or several.
std::string ReplaceOnce(std::string text, std::string_view from, std::string_view to);

}  // namespace msrl

#endif  // MSRL_MUJOCO_MODELS_H_
