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
#include "msrl/env/dubins_reacher.h"
#include "msrl/env/four_rooms.h"
#include "msrl/env/point_rooms.h"
#include "msrl/env/tabular_env.h"
#include "msrl/render/canvas.h"
#include "msrl/render/posed_model.h"

namespace msrl {
namespace {

constexpr Colour kPaper{0.96F, 0.97F, 0.98F};
constexpr Colour kGround{0.76F, 0.78F, 0.80F};
constexpr Colour kLines{0.55F, 0.58F, 0.62F};
constexpr Colour kFaint{0.84F, 0.86F, 0.88F};
constexpr Colour kBody{0.85F, 0.45F, 0.15F};
constexpr Colour kLimb{0.25F, 0.40F, 0.60F};
constexpr Colour kGoal{0.20F, 0.65F, 0.30F, 0.6F};

// Squares, so that motion can be seen.
void DrawRuler(Canvas& canvas, double tile) {
  const Vec2 low = canvas.centre() - canvas.half_shown();
  const Vec2 high = canvas.centre() + canvas.half_shown();
  const double line = 0.75 * canvas.pixel();
  for (double x = std::ceil(low.x() / tile) * tile; x < high.x(); x += tile) {
    canvas.Capsule({x, low.y()}, {x, high.y()}, line, kFaint);
  }
  for (double y = std::ceil(low.y() / tile) * tile; y < high.y(); y += tile) {
    canvas.Capsule({low.x(), y}, {high.x(), y}, line, kFaint);
  }
}

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
  static const std::array<Look, 7> looks = {{
      {"reacher", false, false, {0.0, 0.0}, 0.7},
      {"pusher", false, false, {0.3, -0.2}, 1.8},
      {"hopper", true, true, {0.0, 0.8}, 2.2},
      {"walker2d", true, true, {0.0, 0.8}, 2.2},
      {"humanoid", true, true, {0.0, 0.9}, 2.4},
      {"ant", false, true, {0.0, 0.0}, 5.0},
      {"antmaze", false, false, {0.0, 0.0}, 0.0},
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
    canvas_.Clear(kPaper);
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
    canvas_.Hull(ground, kGround);
    for (double x = std::ceil(low.x()); x < high.x(); x += 1.0) {
      canvas_.Capsule({x, 0.0}, {x, -0.05}, canvas_.pixel(), kLines);
    }
  }

  void DrawMark() {
    const std::optional<GoalMark> mark = posed_.env().goal_mark();
    if (!mark) return;
    if (look_.from_side) {
      canvas_.Capsule({mark->x - mark->radius, 0.0}, {mark->x + mark->radius, 0.0}, 0.02, kGoal);
    } else {
      canvas_.Disc({mark->x, mark->y}, mark->radius, kGoal);
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

// ---- The tasks in the plane

void DrawWalls(Canvas& canvas, const Walls& walls) {
  const double half = walls.half_width();
  const double thick = 0.01 * half;
  const std::array<Vec2, 4> corners = {Vec2(-half, -half), Vec2(half, -half), Vec2(half, half),
                                       Vec2(-half, half)};
  for (std::size_t i = 0; i < 4; ++i) {
    canvas.Capsule(corners[i], corners[(i + 1) % 4], thick, kLines);
  }
  for (int i = 0; i < walls.count(); ++i) {
    const Wall& wall = walls[i];
    std::vector<double> gaps(wall.gap.begin(), wall.gap.begin() + wall.gaps);
    std::sort(gaps.begin(), gaps.end());
    const auto point = [&](double along) {
      return wall.axis == 0 ? Vec2(wall.position, along) : Vec2(along, wall.position);
    };
    double from = -half;
    for (const double gap : gaps) {
      canvas.Capsule(point(from), point(gap - wall.gap_half_width), thick, kLines);
      from = gap + wall.gap_half_width;
    }
    canvas.Capsule(point(from), point(half), thick, kLines);
  }
}

// The wanted velocity as a line from the mover, ten steps long.
void DrawTarget(Canvas& canvas, const Vec2& from, const Vec2& velocity) {
  const Vec2 to = from + 10.0 * velocity;
  canvas.Capsule(from, to, 0.012, kGoal);
  canvas.Disc(to, 0.03, kGoal);
}

constexpr double kArena = 1.25;  // half width of the sources' arenas
constexpr double kMover = 0.05;  // radius of what moves

void DrawPlane(Canvas& canvas, const PointRooms& env) {
  const PointRoomsModel& model = env.model();
  const Vec2& position = env.state().position;
  if (model.rule.HasGoal()) {
    canvas.Look({0, 0}, 2.1 * kArena);
    DrawWalls(canvas, model.walls);
    canvas.Disc(model.goal, model.radius, kGoal);
  } else {
    canvas.Look(position, 2.1 * kArena);
    DrawRuler(canvas, 0.5);
    DrawTarget(canvas, position, model.target_velocity);
  }
  canvas.Disc(position, kMover, kBody);
}

void DrawPlane(Canvas& canvas, const FourRooms& env) {
  canvas.Look({0, 0}, 2.1 * env.model().walls.half_width());
  DrawWalls(canvas, env.model().walls);
  canvas.Disc(env.model().goal, FourRoomsModel::kGoalRadius, kGoal);
  canvas.Disc(env.state().position, 1.5 * kMover, kBody);
}

void DrawPlane(Canvas& canvas, const DubinsReacher& env) {
  const DubinsReacherModel& model = env.model();
  const DubinsReacherModel::State& state = env.state();
  const bool has_goal = model.rule.HasGoal();
  const auto direction = [](double angle) { return Vec2(std::cos(angle), std::sin(angle)); };
  switch (model.task) {
    case ControlTask::kDubins: {
      canvas.Look(has_goal ? Vec2(0, 0) : state.position, 2.1 * kArena);
      if (has_goal) {
        DrawWalls(canvas, Walls(kArena));
        canvas.Disc(model.goal, model.radius, kGoal);
      } else {
        DrawRuler(canvas, 0.5);
        DrawTarget(canvas, state.position, model.target_velocity);
      }
      const Vec2 ahead = kMover * direction(state.angle[0]);
      const Vec2 left(-ahead.y(), ahead.x());
      const std::array<Vec2, 3> car = {Vec2(state.position + 1.6 * ahead),
                                       Vec2(state.position - ahead + left),
                                       Vec2(state.position - ahead - left)};
      canvas.Hull(car, kBody);
      break;
    }
    case ControlTask::kArm: {
      canvas.Look({0, 0}, 2.1 * kArena);
      DrawRuler(canvas, 0.5);
      if (has_goal) canvas.Disc(model.goal, model.radius, kGoal);
      const Vec2 elbow = model.link[0] * direction(state.angle[0]);
      canvas.Capsule({0, 0}, elbow, 0.03, kLimb);
      canvas.Capsule(elbow, state.position, 0.025, kLimb);
      canvas.Disc(state.position, kMover, kBody);
      break;
    }
    case ControlTask::kBalance: {
      const Vec2 foot(state.position.x(), 0.0);
      canvas.Look(foot + Vec2(0, 0.5), 2.0);
      DrawRuler(canvas, 0.5);
      canvas.Capsule(foot - Vec2(9, 0), foot + Vec2(9, 0), 0.01, kLines);
      const auto lean = [&](double tilt) {
        return Vec2(foot + Vec2(std::sin(tilt), std::cos(tilt)));
      };
      for (const double limit : {-model.tilt_limit, model.tilt_limit}) {
        canvas.Capsule(foot, lean(limit), 0.006, kFaint);
      }
      canvas.Capsule(foot, lean(state.angle[0]), 0.04, kLimb);
      canvas.Disc(lean(state.angle[0]), 2.0 * kMover, kBody);
      break;
    }
  }
}

void DrawPlane(Canvas& canvas, const TabularEnv& env) {
  const TabularInstance& instance = env.instance();
  double half = 0.1;
  for (const Vec2& p : instance.position) half = std::max(half, p.cwiseAbs().maxCoeff());
  canvas.Look({0, 0}, 2.4 * half);
  const double node = 0.06 * half;
  const auto position = [&](int state) -> const Vec2& {
    return instance.position[static_cast<std::size_t>(state)];
  };
  for (int state = 0; state < instance.mdp.states; ++state) {
    for (int action = 0; action < instance.mdp.actions; ++action) {
      // thick where an edge begins, so that one-way edges can be told
      const Vec2& to = position(instance.mdp.next[instance.mdp.At(state, action)]);
      const Vec2 middle = 0.5 * (position(state) + to);
      canvas.Capsule(position(state), to, 0.1 * node, kLines);
      canvas.Capsule(position(state), middle, 0.22 * node, kLines);
    }
  }
  for (int state = 0; state < instance.mdp.states; ++state) {
    canvas.Disc(position(state), 0.7 * node, kFaint);
  }
  canvas.Disc(instance.goal, 1.5 * node, kGoal);
  canvas.Disc(position(env.state()), node, kBody);
}

template <typename Concrete>
class PlaneSketch : public View {
 public:
  PlaneSketch(const Concrete& env, ImageSize size) : env_(env), canvas_(size) {}
  const Image& Draw() override {
    canvas_.Clear(kPaper);
    DrawPlane(canvas_, env_);
    return canvas_.image();
  }
  const char* method() const override { return "sketch"; }

 private:
  const Concrete& env_;
  Canvas canvas_;
};

// Null if the environment is of another type.
template <typename Concrete>
std::unique_ptr<View> MakePlane(Env& env, ImageSize size) {
  const auto* concrete = UnwrapAs<Concrete>(env);
  if (concrete == nullptr) return nullptr;
  return std::make_unique<PlaneSketch<Concrete>>(*concrete, size);
}

}  // namespace

std::unique_ptr<View> MakeSketch(Env& env, ImageSize size) {
  if (const auto* mujoco = UnwrapAs<MujocoEnv>(env)) {
    return std::make_unique<MujocoSketch>(*mujoco, size);
  }
  for (const auto make : {MakePlane<PointRooms>, MakePlane<FourRooms>, MakePlane<DubinsReacher>,
                          MakePlane<TabularEnv>}) {
    if (std::unique_ptr<View> view = make(env, size)) return view;
  }
  throw UserError(StrCat(env.spec().id, ": there is no picture of this environment"));
}

}  // namespace msrl
