// Pictures of any environment, drawn by ourselves: MuJoCo's geoms as seen from the side or from
// above, the plane of the other tasks.
#ifndef MSRL_RENDER_SKETCH_H_
#define MSRL_RENDER_SKETCH_H_

#include <memory>

#include "msrl/env/env.h"
#include "msrl/render/view.h"

namespace msrl {

// UserError if there is no picture of this kind of environment.
std::unique_ptr<View> MakeSketch(Env& env, ImageSize size);

}  // namespace msrl

#endif  // MSRL_RENDER_SKETCH_H_
