#include "msrl/render/rendering.h"

#include <algorithm>

#include "msrl/core/check.h"
#include "msrl/render/gl_context.h"
#include "msrl/render/posed_model.h"

namespace msrl {
namespace {

constexpr int kDecorations = 100;         // geoms that MuJoCo may add to the model's
constexpr double kMarkHalfHeight = 0.01;  // m
constexpr float kMarkColour[4] = {0.20F, 0.65F, 0.30F, 0.6F};  // as the models' goals

class Rendering : public View {
 public:
  Rendering(const MujocoEnv& env, ImageSize size, std::unique_ptr<GlContext> gl)
      : gl_(std::move(gl)), posed_(env), image_(size), upside_down_(image_.rgb.size()) {
    mjv_defaultOption(&option_);
    mjv_defaultScene(&scene_);
    mjr_defaultContext(&context_);
    mjModel& model = posed_.model();
    model.vis.global.offwidth = size.width;
    model.vis.global.offheight = size.height;
    mjv_defaultFreeCamera(&model, &camera_);
    const int watch = mj_name2id(&model, mjOBJ_CAMERA, "watch");
    if (watch >= 0) {
      camera_.type = mjCAMERA_FIXED;
      camera_.fixedcamid = watch;
    }
    try {
      mjv_makeScene(&model, &scene_, model.ngeom + model.nsite + kDecorations);
      mjr_makeContext(&model, &context_, mjFONTSCALE_50);
      mjr_setBuffer(mjFB_OFFSCREEN, &context_);
      MSRL_CHECK(context_.currentBuffer == mjFB_OFFSCREEN, "no off-screen buffer");
    } catch (...) {
      Free();
      throw;
    }
  }
  Rendering(const Rendering&) = delete;
  Rendering& operator=(const Rendering&) = delete;
  ~Rendering() override { Free(); }

  const Image& Draw() override {
    gl_->MakeCurrent();
    posed_.Update();
    mjv_updateScene(&posed_.model(), &posed_.data(), &option_, nullptr, &camera_, mjCAT_ALL,
                    &scene_);
    AddMark();
    const mjrRect all{0, 0, image_.size.width, image_.size.height};
    mjr_render(all, &scene_, &context_);
    mjr_readPixels(upside_down_.data(), nullptr, all, &context_);
    const std::size_t row = 3 * static_cast<std::size_t>(image_.size.width);
    for (int y = 0; y < image_.size.height; ++y) {
      std::copy_n(upside_down_.data() + image_.Offset(0, image_.size.height - 1 - y), row,
                  image_.At(0, y));
    }
    return image_;
  }
  const char* method() const override { return gl_->name(); }

 private:
  void AddMark() {
    const std::optional<GoalMark> mark = posed_.env().goal_mark();
    if (!mark || scene_.ngeom >= scene_.maxgeom) return;
    const mjtNum size[3] = {mark->radius, kMarkHalfHeight, 0.0};
    const mjtNum position[3] = {mark->x, mark->y, kMarkHalfHeight};
    mjvGeom& geom = scene_.geoms[scene_.ngeom++];
    mjv_initGeom(&geom, mjGEOM_CYLINDER, size, position, nullptr, kMarkColour);
    geom.category = mjCAT_DECOR;
    geom.objtype = mjOBJ_UNKNOWN;
    geom.objid = -1;
    geom.segid = scene_.ngeom - 1;
  }
  void Free() {
    gl_->MakeCurrent();
    mjr_freeContext(&context_);
    mjv_freeScene(&scene_);
  }

  std::unique_ptr<GlContext> gl_;
  PosedModel posed_;
  Image image_;
  std::vector<unsigned char> upside_down_;  // as OpenGL gives it
  mjvOption option_{};
  mjvCamera camera_{};
  mjvScene scene_{};
  mjrContext context_{};
};

}  // namespace

std::unique_ptr<View> MakeRendering(const MujocoEnv& env, ImageSize size, std::string& why_not) {
  std::unique_ptr<GlContext> gl = MakeGlContext(why_not);
  if (gl == nullptr) return nullptr;
  const std::string name = gl->name();
  try {
    return std::make_unique<Rendering>(env, size, std::move(gl));
  } catch (const InvariantError& error) {
    // MuJoCo's errors: an OpenGL that is too old, a picture that is too large
    why_not = StrCat(name, ": ", error.what());
    std::replace(why_not.begin(), why_not.end(), '\n', ' ');
    return nullptr;
  }
}

}  // namespace msrl
