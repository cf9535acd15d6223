#include "msrl/diagnose/figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/core/segment.h"
#include "msrl/diagnose/heat_map.h"
#include "msrl/diagnose/svg.h"
#include "msrl/env/dubins_reacher.h"
#include "msrl/env/env_registry.h"
#include "msrl/env/graph_motif.h"
#include "msrl/env/micro_grid.h"
#include "msrl/env/point_rooms.h"
#include "msrl/env/record.h"
#include "msrl/files/atomic_file.h"

namespace msrl {
namespace {

// Colours that stay apart for colour-blind readers (Okabe and Ito).
constexpr std::string_view kPathColour = "#e69f00";
constexpr std::string_view kStartColour = "#0072b2";
constexpr std::string_view kGoalColour = "#009e73";
constexpr std::string_view kDark = "#222222";
constexpr std::string_view kGrey = "#8a8a8a";
constexpr std::string_view kLight = "#d8d8d8";

const Vec2 kPage(1000.0, 520.0);
const Vec2 kPanelCorner(30.0, 58.0);
constexpr double kPanelSide = 400.0;
const Vec2 kMatrixCorner(552.0, 88.0);
constexpr double kMatrixSide = 350.0;
constexpr double kLaneShift = 5.0;  // of arrows to the right of their line
constexpr double kNodeTrim = 8.0;   // room for the circle of a node

// The square of the plane that the left panel shows.
struct View {
  Vec2 centre{0, 0};
  double half_width = 1.0;

  double pixels() const { return 0.5 * kPanelSide / half_width; }
  Vec2 operator()(const Vec2& p) const {
    const Vec2 offset = (p - centre) * pixels();
    return kPanelCorner + Vec2(0.5 * kPanelSide + offset.x(), 0.5 * kPanelSide - offset.y());
  }

  // All points, with room around them.
  static View Around(std::span<const Vec2> points) {
    Vec2 low = points[0];
    Vec2 high = low;
    for (const Vec2& p : points) {
      low = low.cwiseMin(p);
      high = high.cwiseMax(p);
    }
    return {0.5 * (low + high), 0.5 * (high - low).maxCoeff() * 1.15};
  }
};

template <typename Concrete>
using StateOf = std::decay_t<decltype(std::declval<const Concrete&>().state())>;

// A way to the goal: what the descriptor sees of it, and the environment's own states.
template <typename Concrete>
struct Trip {
  std::unique_ptr<Env> env;
  Segment segment;
  std::vector<StateOf<Concrete>> states;

  const Concrete& concrete() const { return *UnwrapAs<Concrete>(*env); }
};

template <typename Concrete, typename Config>
Trip<Concrete> FindTrip(const char* id, std::uint64_t seed) {
  constexpr int kAttempts = 10'000;
  Trip<Concrete> trip{MakeEnv(MakeEnvEntry<Concrete, Config>(id)), {}, {}};
  Rng rng(seed, "figures");
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    trip.env->Reset(rng.NextU64());
    Behaviour behaviour(*trip.env, {.skill = 0.9, .persistence = 1.0}, Rng(rng.NextU64(), "act"));
    if (!trip.env->Success().has_value()) continue;
    trip.segment = Record(*trip.env, behaviour, 0).segment;
    trip.states = {trip.concrete().state()};
    bool running = true;
    while (running && !*trip.env->Success()) {
      const Recording step = Record(*trip.env, behaviour, 1);
      trip.segment = Concatenate(trip.segment, step.segment, 0.0);
      trip.states.push_back(trip.concrete().state());
      running = !step.terminated && !step.truncated;
    }
    const Index steps = trip.segment.horizon();
    if (*trip.env->Success() && steps >= 6 && steps <= 60) return trip;
  }
  MSRL_CHECK(false, id, ": no way to a goal in ", kAttempts, " instances");
  return trip;
}

void MarkStart(Svg& svg, const Vec2& at) {
  svg.Circle(at, 6.5, {.stroke = "#ffffff", .width = 1.5, .fill = kStartColour});
}

void MarkEnd(Svg& svg, const Vec2& at) {
  svg.Rect(at - Vec2(5.5, 5.5), {11, 11}, {.stroke = "#ffffff", .width = 1.5, .fill = kDark});
}

void MarkGoal(Svg& svg, const Vec2& at, double radius) {
  svg.Circle(at, radius, {.fill = kGoalColour, .opacity = 0.25});
  svg.Circle(at, radius, {.stroke = kGoalColour, .width = 2.5});
}

// One arrow per step, each on the right of its line, so that ways back stay apart, and `trim` short
// of both ends; a ring is a step that did not move.
void DrawSteps(Svg& svg, const View& view, const std::vector<Vec2>& points, double trim) {
  const Paint paint{.stroke = kPathColour, .width = 3.5};
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const Vec2 from = view(points[i]);
    const Vec2 to = view(points[i + 1]);
    if ((to - from).norm() < 1e-9) {
      svg.Circle(from, 11.0, {.stroke = kPathColour, .width = 2.0});
      continue;
    }
    const Vec2 along = (to - from).normalized();
    const Vec2 side(-kLaneShift * along.y(), kLaneShift * along.x());
    svg.Arrow(from + trim * along + side, to - trim * along + side, 10.0, paint);
  }
}

void DrawLegend(Svg& svg, std::string_view goal) {
  const double y = kPanelCorner.y() + kPanelSide + 20.0;
  const Paint path{.stroke = kPathColour, .width = 3.5};
  MarkStart(svg, {42, y - 4});
  svg.Text({54, y}, "start");
  MarkEnd(svg, {112, y - 4});
  svg.Text({124, y}, "end");
  MarkGoal(svg, {174, y - 4}, 6.5);
  svg.Text({187, y}, goal);
  svg.Arrow({268, y - 4}, {296, y - 4}, 10.0, path);
  svg.Text({303, y}, "trajectory");
}

// All but the instance: the frame that the four pictures share.
template <typename Concrete>
Svg BeginPicture(const Trip<Concrete>& trip, std::string_view kind, std::string_view note,
                 const RewardRule& rule) {
  const EnvSpec& spec = trip.env->spec();
  Svg svg(kPage.x(), kPage.y(), StrCat(spec.id, ": an instance and the matrix of a trajectory"));
  const TextStyle heading{.size = 16, .bold = true};
  svg.Text({30, 28}, StrCat(spec.id, ": ", kind), heading);
  svg.Text({30, 46}, note, {.colour = "#555555"});
  svg.Text({kMatrixCorner.x(), 28}, "M(τ) = Σ ψ ψᵀ of the trajectory", heading);
  svg.Text({kMatrixCorner.x(), 46},
           "full lift of the position; colours by cube root; fine lines between actions",
           {.colour = "#555555"});
  svg.Rect(kPanelCorner, {kPanelSide, kPanelSide}, {.stroke = kLight, .fill = "#fcfcfc"});

  const Segment& whole = trip.segment;
  const Index q = spec.action.size;
  const Segment seen{.x = whole.x.topRows(2), .a = whole.a.topRows(q), .r = whole.r};
  const Lift::Ptr lift = Lift::Make({.kind = LiftKind::kFull, .d = 2, .q = q, .slots = {}});
  DrawHeatMap(svg, Describe(lift, seen), kMatrixCorner, kMatrixSide);
  svg.Text({0.5 * kPage.x(), 507},
           StrCat("horizon T = ", whole.horizon(), "   ·   instance: ", kind, "   ·   reward: ",
                  EnumName(rule.style), "   ·   return ", Fixed(whole.r.sum(), 2)),
           {.size = 13, .anchor = TextAnchor::kMiddle});
  return svg;
}

std::vector<Vec2> PositionsOf(const TabularEnv& env, const std::vector<int>& states) {
  std::vector<Vec2> points;
  for (const int state : states) {
    points.push_back(env.instance().position[static_cast<std::size_t>(state)]);
  }
  return points;
}

std::string DrawGraphMotif(std::uint64_t seed) {
  const Trip<GraphMotif> trip = FindTrip<GraphMotif, GraphMotifConfig>(GraphMotif::kId, seed);
  const TabularInstance& instance = trip.concrete().instance();
  const FiniteMdp& mdp = instance.mdp;
  Svg svg = BeginPicture(
      trip, EnumName(trip.concrete().motif()),
      StrCat(mdp.states,
             " nodes; solid: forward, dotted: back, dashed: side or chord, ring: no move"),
      instance.rule);

  const View view = View::Around(instance.position);
  constexpr std::string_view kDashes[] = {"", "1.5 5", "7 5"};
  for (int s = 0; s < mdp.states; ++s) {
    for (int a = 0; a < mdp.actions; ++a) {
      const int next = mdp.next[mdp.At(s, a)];
      if (next == s) continue;
      const Vec2 from = view(instance.position[static_cast<std::size_t>(s)]);
      const Vec2 to = view(instance.position[static_cast<std::size_t>(next)]);
      const Vec2 along = (to - from).normalized();
      const Vec2 side(-kLaneShift * along.y(), kLaneShift * along.x());
      svg.Arrow(from + kNodeTrim * along + side, to - kNodeTrim * along + side, 8.0,
                {.stroke = kGrey, .width = 1.4, .dash = kDashes[std::min(a, 2)]});
    }
  }
  const std::vector<Vec2> points = PositionsOf(trip.concrete(), trip.states);
  MarkGoal(svg, view(instance.goal), 14.0);
  for (const Vec2& p : instance.position) {
    svg.Circle(view(p), 7.0, {.stroke = kDark, .width = 1.4, .fill = "#ffffff"});
  }
  DrawSteps(svg, view, points, kNodeTrim);
  MarkStart(svg, view(points.front()));
  MarkEnd(svg, view(points.back()));
  DrawLegend(svg, "goal node");
  return svg.Document();
}

// Walls and marks of the passage between a cell and the one above (move 0) or right of it (move 1).
void DrawPassage(Svg& svg, const View& view, const GridLayout& grid, int cell, int move,
                 const Vec2& here, double step) {
  const int other = cell + (move == 0 ? grid.width : 1);
  const auto is_open = [&](int from, int direction) {
    return (grid.passable[static_cast<std::size_t>(from)] >> direction & 1) != 0;
  };
  const bool there = is_open(cell, move);
  const bool back = is_open(other, move + 2);
  const Vec2 along = move == 0 ? Vec2(0, 0.5 * step) : Vec2(0.5 * step, 0);
  const Vec2 across(along.y(), along.x());
  const Vec2 middle = view(here + along);
  if (there != back) {
    const Vec2 direction = view(here + along) - view(here);
    svg.Line(view(here + along - across), view(here + along + across),
             {.stroke = kGrey, .width = 2.0, .dash = "4 5"});
    svg.Head(middle, there ? direction : Vec2(-direction), 15.0, {.fill = kStartColour});
  } else if (!there) {
    svg.Line(view(here + along - across), view(here + along + across),
             {.stroke = kDark, .width = 4.0});
  }
  if (cell == grid.door_cell && move == 1) {
    const double height = 0.8 * step * view.pixels();
    svg.Rect(middle - Vec2(4, 0.5 * height), {8, height},
             {.stroke = kDark, .width = 1.2, .fill = "#cc79a7"});
  }
}

void DrawKey(Svg& svg, const Vec2& at) {
  const Paint paint{.stroke = "#8d3f69", .width = 2.5};
  const Vec2 bow = at + Vec2(-9, -12);
  svg.Circle(bow, 4.5, paint);
  svg.Line(bow + Vec2(4.5, 0), bow + Vec2(19, 0), paint);
  svg.Line(bow + Vec2(18, 0), bow + Vec2(18, 5), paint);
  svg.Line(bow + Vec2(13, 0), bow + Vec2(13, 4), paint);
}

std::string DrawMicroGrid(std::uint64_t seed) {
  const Trip<MicroGrid> trip = FindTrip<MicroGrid, MicroGridConfig>(MicroGrid::kId, seed);
  const MicroGrid& env = trip.concrete();
  const GridLayout& grid = env.layout();
  const double step = env.instance().step_length;
  std::string note = StrCat(grid.width, " x ", grid.height, " cells; thick: wall");
  if (grid.kind == GridKind::kOneWay) note += ", blue mark: one way";
  if (grid.key >= 0) note += ", purple: key and door";
  note += ", ring: no move";
  Svg svg = BeginPicture(trip, EnumName(grid.kind), note, env.instance().rule);

  const View view{Vec2::Zero(), 0.5 * step * (std::max(grid.width, grid.height) + 0.3)};
  const Vec2 size(step * grid.width, step * grid.height);
  const auto place = [&](int cell) {
    const int column = cell % grid.width;
    const int row = cell / grid.width;
    return Vec2(step * (column + 0.5) - 0.5 * size.x(), step * (row + 0.5) - 0.5 * size.y());
  };
  const Vec2 corner = view({-0.5 * size.x(), 0.5 * size.y()});
  for (int cell = 0; cell < grid.cells(); ++cell) {
    const bool is_solid = grid.passable[static_cast<std::size_t>(cell)] == 0;
    svg.Rect(view(place(cell) + Vec2(-0.5, 0.5) * step),
             Vec2(step * view.pixels(), step * view.pixels()),
             {.stroke = kLight, .fill = is_solid ? "#c4c4c4" : "#ffffff"});
  }
  for (int cell = 0; cell < grid.cells(); ++cell) {
    const bool has_up = cell / grid.width + 1 < grid.height;
    const bool has_right = cell % grid.width + 1 < grid.width;
    if (has_up) DrawPassage(svg, view, grid, cell, 0, place(cell), step);
    if (has_right) DrawPassage(svg, view, grid, cell, 1, place(cell), step);
  }
  svg.Rect(corner, size * view.pixels(), {.stroke = kDark, .width = 4.0});
  MarkGoal(svg, view(place(grid.goal)), 0.32 * step * view.pixels());
  const std::vector<Vec2> points = PositionsOf(env, trip.states);
  DrawSteps(svg, view, points, 0.0);
  if (grid.key >= 0) DrawKey(svg, view(place(grid.key)));
  MarkStart(svg, view(points.front()));
  MarkEnd(svg, view(points.back()));
  DrawLegend(svg, "goal cell");
  return svg.Document();
}

std::string DrawPointRooms(std::uint64_t seed) {
  const Trip<PointRooms> trip = FindTrip<PointRooms, PointRoomsConfig>(PointRoomsModel::kId, seed);
  const PointRoomsModel& model = trip.concrete().model();
  const Walls& walls = model.walls;
  const double half = walls.half_width();
  Svg svg = BeginPicture(trip, model.layout.substr(0, model.layout.find(' ')),
                         "point mass; thick: walls; one dot per step", model.rule);

  const View view{Vec2::Zero(), 1.06 * half};
  const auto wall_line = [&](const Wall& wall, double from, double to) {
    const auto point = [&](double other) {
      return wall.axis == 0 ? Vec2(wall.position, other) : Vec2(other, wall.position);
    };
    svg.Line(view(point(from)), view(point(to)), {.stroke = kDark, .width = 5.0});
  };
  for (int i = 0; i < walls.count(); ++i) {
    const Wall& wall = walls[i];
    std::vector<double> gaps(wall.gap.begin(), wall.gap.begin() + wall.gaps);
    std::sort(gaps.begin(), gaps.end());
    double from = -half;
    for (const double gap : gaps) {
      if (gap - wall.gap_half_width > from) wall_line(wall, from, gap - wall.gap_half_width);
      from = gap + wall.gap_half_width;
    }
    if (from < half) wall_line(wall, from, half);
  }
  svg.Rect(view({-half, half}), Vec2::Constant(2.0 * half * view.pixels()),
           {.stroke = kDark, .width = 4.0});
  MarkGoal(svg, view(model.goal), model.radius * view.pixels());
  std::vector<Vec2> points;
  for (const auto& state : trip.states) points.push_back(view(state.position));
  svg.Polyline(points, {.stroke = kPathColour, .width = 3.0});
  for (const Vec2& p : points) svg.Circle(p, 3.0, {.fill = "#b36b00"});
  MarkStart(svg, points.front());
  MarkEnd(svg, points.back());
  DrawLegend(svg, "goal area");
  return svg.Document();
}

std::string DrawDubinsReacher(std::uint64_t seed) {
  const Trip<DubinsReacher> trip =
      FindTrip<DubinsReacher, DubinsReacherConfig>(DubinsReacherModel::kId, seed);
  const DubinsReacherModel& model = trip.concrete().model();
  const bool is_arm = model.task == ControlTask::kArm;
  Svg svg = BeginPicture(trip, EnumName(model.task),
                         is_arm ? "two-link arm; later postures are darker; one dot per step"
                                : "car with bounded turn rate; marks point along its heading",
                         model.rule);

  const auto elbow = [&](const DubinsReacherModel::State& state) -> Vec2 {
    return model.link[0] * Vec2(std::cos(state.angle[0]), std::sin(state.angle[0]));
  };
  const Vec2 reach = Vec2::Constant(model.radius);
  std::vector<Vec2> shown = {model.goal - reach, model.goal + reach};
  for (const auto& state : trip.states) shown.push_back(state.position);
  if (is_arm) {
    shown.emplace_back(Vec2::Zero());
    for (const auto& state : trip.states) shown.push_back(elbow(state));
  }
  const View view = View::Around(shown);
  MarkGoal(svg, view(model.goal), model.radius * view.pixels());
  const std::size_t count = trip.states.size();
  std::vector<Vec2> points;
  for (const auto& state : trip.states) points.push_back(view(state.position));
  if (is_arm) {
    constexpr std::size_t kPostures = 6;
    for (std::size_t k = 0; k < kPostures; ++k) {
      const auto& state = trip.states[k * (count - 1) / (kPostures - 1)];
      const std::array<Vec2, 3> joints = {view(Vec2::Zero()), view(elbow(state)),
                                          view(state.position)};
      const double opacity = 0.15 + 0.65 * static_cast<double>(k) / (kPostures - 1);
      svg.Polyline(joints, {.stroke = kDark, .width = 5.0, .opacity = opacity});
      svg.Circle(joints[1], 4.5, {.fill = kDark, .opacity = opacity});
    }
    svg.Circle(view(Vec2::Zero()), 8.0, {.stroke = kDark, .width = 2.5, .fill = "#ffffff"});
  }
  svg.Polyline(points, {.stroke = kPathColour, .width = 3.0});
  Vec2 last = points[0];
  for (std::size_t i = 0; i < count; ++i) {
    const double heading = trip.states[i].angle[0];
    if (is_arm) {
      svg.Circle(points[i], 3.0, {.fill = "#b36b00"});
    } else if ((points[i] - last).norm() > 18.0) {
      // turning on the spot would heap them up
      svg.Head(points[i], {std::cos(heading), -std::sin(heading)}, 12.0, {.fill = "#b36b00"});
      last = points[i];
    }
  }
  MarkStart(svg, points.front());
  MarkEnd(svg, points.back());
  DrawLegend(svg, "goal area");
  return svg.Document();
}

}  // namespace

void WriteFigures(const std::filesystem::path& folder, std::uint64_t seed) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw UserError(StrCat("cannot make the folder ", folder.string(), ": ", error.message()));
  }
  WriteFileAtomically(folder / "graph-motif.svg", DrawGraphMotif(seed));
  WriteFileAtomically(folder / "micro-grid.svg", DrawMicroGrid(seed));
  WriteFileAtomically(folder / "point-rooms.svg", DrawPointRooms(seed));
  WriteFileAtomically(folder / "dubins-reacher.svg", DrawDubinsReacher(seed));
}

}  // namespace msrl
