#include "msrl/render/sketch.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <string_view>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/render/canvas.h"
#include "msrl/render/posed_model.h"

namespace msrl {
namespace {

// ---- MuJoCo

using Vec3 = Eigen::Vector3d;
using Rotation = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;

// From where a task is drawn.
struct Look {
  std::string_view family;
  bool from_side;  // x to the right and z up; else from above, x to the right and y up
  bool follows;    // in x (and y, from above)
  Vec2 centre;     // what is in the middle, apart from the directions that are followed
  double extent;   // m, of the picture's smaller side
};

Look LookAt(const MujocoEnv& env) {
  static const std::array<Look, 8> looks = {{
      {"reacher", false, false, {0.0, 0.0}, 0.7},
      {"pusher", false, false, {0.3, -0.2}, 1.8},
      {"hopper", true, true, {0.0, 0.8}, 2.2},
      {"walker2d", true, true, {0.0, 0.8}, 2.2},
      {"humanoid", true, true, {0.0, 0.9}, 2.4},
      {"ant", false, true, {0.0, 0.0}, 5.0},
      {"antmaze", false, false, {0.0, 0.0}, 0.0},
      {"pointmaze", false, false, {0.0, 0.0}, 0.0},
  }};
  const auto* found = std::find_if(looks.begin(), looks.end(), [&](const Look& look) {
    return look.family == env.spec().family;
  });
  if (found == looks.end()) {
    throw UserError(StrCat("no sketch of the family '", env.spec().family, "'"));
  }
  Look look = *found;
  if (look.extent == 0.0) {
    // all that stands still
    for (int i = 0; i < env.model().ngeom; ++i) {
      if (env.model().geom_type[i] == mjGEOM_PLANE || env.model().geom_bodyid[i] != 0) continue;
      for (int k = 0; k < 2; ++k) {
        look.extent = std::max(look.extent, 2.0 * (std::abs(env.model().geom_pos[3 * i + k]) +
                                                   env.model().geom_size[3 * i + k]));
      }
    }
  }
  return look;
}

Colour GeomColour(const mjModel& model, int geom) {
  // as MuJoCo: the material's colour unless the geom has one of its own
  const float* own = model.geom_rgba + 4 * geom;
  const bool is_default = own[0] == 0.5F && own[1] == 0.5F && own[2] == 0.5F && own[3] == 1.0F;
  const int material = model.geom_matid[geom];
  const float* rgba = is_default && material >= 0 ? model.mat_rgba + 4 * material : own;
  return {rgba[0], rgba[1], rgba[2], rgba[3]};
}

class MujocoSketch : public View {
 public:
  MujocoSketch(const MujocoEnv& env, ImageSize size)
      : posed_(env),
        canvas_(size),
        look_(LookAt(env)),
        order_(static_cast<std::size_t>(env.model().ngeom)) {}

  const Image& Draw() override {
    posed_.Update();
    const mjData& data = posed_.data();
    Vec2 centre = look_.centre;
    if (look_.follows) {
      const double* robot = data.subtree_com + 3;  // of the first body
      centre.x() = robot[0];
      if (!look_.from_side) centre.y() = robot[1];
    }
    canvas_.Clear(kPaperColour);
    canvas_.Look(centre, look_.extent);
    DrawRuler(canvas_, look_.extent < 1.0 ? 0.1 : 1.0);
    if (!look_.from_side) DrawMark();
    for (int i = 0; i < std::ssize(order_); ++i) order_[static_cast<std::size_t>(i)] = i;
    // far ones first
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return Height(a) < Height(b); });
    for (const int geom : order_) DrawGeom(geom);
    if (look_.from_side) {
      DrawGround();  // it hides what is sunk in it
      DrawMark();
    }
    return canvas_.image();
  }
  const char* method() const override { return "sketch"; }

 private:
  Vec2 Project(const Vec3& p) const { return {p.x(), look_.from_side ? p.z() : p.y()}; }
  // The place nearest to the eye, about.
  double Height(int geom) const {
    const double* p = posed_.data().geom_xpos + 3 * geom;
    return (look_.from_side ? -p[1] : p[2]) + posed_.model().geom_size[3 * geom];
  }

  void DrawGround() {
    const Vec2 low = canvas_.centre() - canvas_.half_shown();
    const Vec2 high = canvas_.centre() + canvas_.half_shown();
    const std::array<Vec2, 4> ground = {Vec2(low.x(), 0.0), Vec2(high.x(), 0.0),
                                        Vec2(high.x(), low.y() - 1.0),
                                        Vec2(low.x(), low.y() - 1.0)};
    canvas_.Hull(ground, kGroundColour);
    for (double x = std::ceil(low.x()); x < high.x(); x += 1.0) {
      canvas_.Capsule({x, 0.0}, {x, -0.05}, canvas_.pixel(), kLineColour);
    }
  }

  void DrawMark() {
    const std::optional<GoalMark> mark = posed_.env().goal_mark();
    if (!mark) return;
    if (look_.from_side) {
      canvas_.Capsule({mark->x - mark->radius, 0.0}, {mark->x + mark->radius, 0.0}, 0.02,
                      kGoalColour);
    } else {
      canvas_.Disc({mark->x, mark->y}, mark->radius, kGoalColour);
    }
  }

  void DrawGeom(int geom) {
    const mjModel& model = posed_.model();
    const Colour colour = GeomColour(model, geom);
    const double* size = model.geom_size + 3 * geom;
    const Vec3 centre(posed_.data().geom_xpos + 3 * geom);
    const Rotation turn(posed_.data().geom_xmat + 9 * geom);
    const auto at = [&](const Vec3& local) { return Project(centre + turn * local); };
    switch (model.geom_type[geom]) {
      case mjGEOM_PLANE:
        break;  // the ground
      case mjGEOM_SPHERE:
        canvas_.Disc(Project(centre), size[0], colour);
        break;
      case mjGEOM_CAPSULE:
        canvas_.Capsule(at({0, 0, size[1]}), at({0, 0, -size[1]}), size[0], colour);
        break;
      case mjGEOM_CYLINDER: {
        constexpr int kSides = 24;
        std::vector<Vec2> rims;
        for (int i = 0; i < kSides; ++i) {
          const double angle = 2.0 * std::numbers::pi * i / kSides;
          for (const double end : {-size[1], size[1]}) {
            rims.push_back(at({size[0] * std::cos(angle), size[0] * std::sin(angle), end}));
          }
        }
        canvas_.Hull(rims, colour);
        break;
      }
      case mjGEOM_BOX: {
        std::vector<Vec2> corners;
        for (int i = 0; i < 8; ++i) {
          corners.push_back(
              at({(i & 1) != 0 ? size[0] : -size[0], (i & 2) != 0 ? size[1] : -size[1],
                  (i & 4) != 0 ? size[2] : -size[2]}));
        }
        canvas_.Hull(corners, colour);
        break;
      }
      default:  // of models that are not ours: the ball around it
        canvas_.Disc(Project(centre), model.geom_rbound[geom], colour);
    }
  }

  PosedModel posed_;
  Canvas canvas_;
  Look look_;
  std::vector<int> order_;  // of the geoms
};

// ---- Environments that draw themselves

class OwnSketch : public View {
 public:
  OwnSketch(const Env& env, ImageSize size) : env_(env), canvas_(size) {}
  const Image& Draw() override {
    canvas_.Clear(kPaperColour);
    env_.Sketch(canvas_);
    return canvas_.image();
  }
  const char* method() const override { return "sketch"; }

 private:
  const Env& env_;
  Canvas canvas_;
};

}  // namespace

std::unique_ptr<View> MakeSketch(Env& env, ImageSize size) {
  if (const auto* mujoco = UnwrapAs<MujocoEnv>(env)) {
    return std::make_unique<MujocoSketch>(*mujoco, size);
  }
  if (env.Unwrapped().has_sketch()) return std::make_unique<OwnSketch>(env.Unwrapped(), size);
  throw UserError(StrCat(env.spec().id, ": there is no picture of this environment"));
}

}  // namespace msrl
