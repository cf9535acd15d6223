// Pictures by MuJoCo's own renderer, without a display.
#ifndef MSRL_RENDER_RENDERING_H_
#define MSRL_RENDER_RENDERING_H_

#include <memory>
#include <string>

#include "msrl/mujoco/mujoco_env.h"
#include "msrl/render/view.h"

namespace msrl {

// Through the model's camera "watch", or one that sees all of it. Null where there is no off-screen
// OpenGL; `why_not` then says what was missing. OpenGL is looked for at run time: OSMesa, then EGL;
// the environment variable MUJOCO_GL = osmesa, egl or disable decides otherwise. Must be used and
// destroyed by the thread that made it.
std::unique_ptr<View> MakeRendering(const MujocoEnv& env, ImageSize size, std::string& why_not);

}  // namespace msrl

#endif  // MSRL_RENDER_RENDERING_H_
