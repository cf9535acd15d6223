// A way to look at an environment.
#ifndef MSRL_RENDER_VIEW_H_
#define MSRL_RENDER_VIEW_H_

#include "msrl/render/image.h"

namespace msrl {

// Belongs to one environment, which must outlive it.
class View {
 public:
  virtual ~View() = default;
  // The present state, after the environment's first Reset. Valid until the next call.
  virtual const Image& Draw() = 0;
  // How pictures are made, in a word or two.
  virtual const char* method() const = 0;
};

}  // namespace msrl

#endif  // MSRL_RENDER_VIEW_H_
