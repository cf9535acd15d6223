// OpenGL without a display.
#ifndef MSRL_RENDER_GL_CONTEXT_H_
#define MSRL_RENDER_GL_CONTEXT_H_

#include <memory>
#include <string>

namespace msrl {

class GlContext {
 public:
  virtual ~GlContext() = default;
  // For the calling thread.
  virtual void MakeCurrent() = 0;
  virtual const char* name() const = 0;
};

// The first kind that works, current. Null if none does; `why_not` then says why, on one line. The
// libraries are found at run time, never unloaded, and the first that works is used by the whole
// process: MuJoCo asks whichever it finds loaded for OpenGL's functions.
std::unique_ptr<GlContext> MakeGlContext(std::string& why_not);

}  // namespace msrl

#endif  // MSRL_RENDER_GL_CONTEXT_H_
