#include "msrl/mujoco/golden.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/files/json_text.h"
#include "msrl/mujoco/maze.h"
#include "msrl/mujoco/tasks.h"

namespace msrl {
namespace {

using Json = nlohmann::json;
using Figures = std::vector<std::vector<double>>;

// ---- reading ----

// A value in the file with its place, for messages.
class Node {
 public:
  Node(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  [[noreturn]] void Fail(std::string_view wanted) const {
    throw UserError(StrCat(place_, ": needs ", wanted));
  }
  bool Has(const char* key) const { return json_.is_object() && json_.contains(key); }
  Node operator[](const char* key) const {
    if (!Has(key)) Fail(StrCat("'", key, "'"));
    return {json_.at(key), StrCat(place_, ".", key)};
  }
  Node operator[](std::size_t i) const { return {json_.at(i), StrCat(place_, "[", i, "]")}; }
  std::size_t size() const {
    if (!json_.is_array()) Fail("a list");
    return json_.size();
  }
  double Number() const {
    // JSON has no NaN, but an exponent can overflow
    if (!json_.is_number() || !std::isfinite(json_.get<double>())) Fail("a finite number");
    return json_.get<double>();
  }
  bool Bool() const {
    if (!json_.is_boolean()) Fail("true or false");
    return json_.get<bool>();
  }
  std::string Text() const {
    if (!json_.is_string()) Fail("a text");
    return json_.get<std::string>();
  }
  std::vector<double> Numbers() const {
    std::vector<double> values;
    for (std::size_t i = 0; i < size(); ++i) values.push_back((*this)[i].Number());
    return values;
  }
  // A number, true or false, or a list of numbers.
  std::vector<double> NumberOrNumbers() const {
    if (json_.is_boolean()) return {Bool() ? 1.0 : 0.0};
    if (json_.is_number()) return {Number()};
    return Numbers();
  }

 private:
  const Json& json_;
  std::string place_;
};

struct FigureName {
  const char* list;  // null: the model itself
  const char* key;
};
// What is compared of a model. Names are ours to choose, and principal axes of inertia may be
// permuted, so the full tensor stands for them.
constexpr FigureName kFigures[] = {
    {nullptr, "timestep"},
    {nullptr, "iterations"},
    {nullptr, "tolerance"},
    {nullptr, "impratio"},
    {nullptr, "gravity"},
    {nullptr, "density"},
    {nullptr, "viscosity"},
    {nullptr, "total_mass"},
    {nullptr, "qpos0"},
    {nullptr, "qpos_spring"},
    {"bodies", "pos"},
    {"bodies", "quat"},
    {"bodies", "mass"},
    {"bodies", "ipos"},
    {"bodies", "subtreemass"},
    {"bodies", "invweight0"},
    {"bodies", "inertia_full_xx_yy_zz_xy_xz_yz_bodyframe"},
    {"joints", "pos"},
    {"joints", "axis"},
    {"joints", "limited"},
    {"joints", "range"},
    {"joints", "stiffness"},
    {"joints", "margin"},
    {"joints", "damping"},
    {"joints", "armature"},
    {"joints", "frictionloss"},
    {"joints", "dof_invweight0"},
    {"joints", "solref_limit"},
    {"joints", "solimp_limit"},
    {"geoms", "size"},
    {"geoms", "pos"},
    {"geoms", "friction"},
    {"geoms", "contype"},
    {"geoms", "conaffinity"},
    {"geoms", "condim"},
    {"geoms", "margin"},
    {"geoms", "gap"},
    {"geoms", "solref"},
    {"geoms", "solimp"},
    {"actuators", "gear"},
    {"actuators", "ctrllimited"},
    {"actuators", "ctrlrange"},
};

std::string Label(const FigureName& name) {
  return name.list == nullptr ? name.key : StrCat(name.list, ".", name.key);
}

std::map<std::string, Figures> ReadModel(const Node& model) {
  std::map<std::string, Figures> figures;
  for (const FigureName& name : kFigures) {
    if (name.list == nullptr) {
      if (model.Has(name.key)) figures[Label(name)] = {model[name.key].NumberOrNumbers()};
      continue;
    }
    if (!model.Has(name.list)) continue;
    const Node list = model[name.list];
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].Has(name.key))
        figures[Label(name)].push_back(list[i][name.key].NumberOrNumbers());
    }
  }
  if (model.Has("mass_matrix_at_qpos0")) {
    const Node matrix = model["mass_matrix_at_qpos0"];
    std::vector<double> all;
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      const auto row = matrix[i].Numbers();
      all.insert(all.end(), row.begin(), row.end());
    }
    figures["mass_matrix_at_qpos0"] = {all};
  }
  return figures;
}

GoldenStep ReadStep(const Node& node) {
  GoldenStep step;
  const auto optional = [&](const char* key, std::vector<double>& values) {
    if (node.Has(key)) values = node[key].Numbers();
  };
  optional("action", step.action);
  optional("qpos", step.qpos);
  optional("qvel", step.qvel);
  optional("qacc_warmstart", step.qacc_warmstart);
  for (const char* version : {"v4", "v5"}) {
    const std::string observation = StrCat("obs_", version);
    const std::string reward = StrCat("reward_", version);
    if (node.Has(observation.c_str())) {
      step.observation[version] = node[observation.c_str()].Numbers();
    }
    if (node.Has(reward.c_str())) step.reward[version] = node[reward.c_str()].Number();
  }
  if (node.Has("terminated")) step.terminated = {node["terminated"].Bool()};
  if (node.Has("ncon")) step.contacts = {static_cast<int>(node["ncon"].Number())};
  if (node.Has("per_goal")) {
    const Node goals = node["per_goal"];
    for (std::size_t i = 0; i < goals.size(); ++i) {
      step.goals.push_back({.distance = goals[i]["distance"].Number(),
                            .reward_sparse = goals[i]["reward_sparse"].Number(),
                            .reward_dense = goals[i]["reward_dense"].Number(),
                            .success = goals[i]["success"].Bool()});
    }
  }
  return step;
}

GoldenTrajectory ReadTrajectory(const Node& node) {
  GoldenTrajectory trajectory;
  trajectory.name = node["name"].Text();
  trajectory.init_qpos = node["init_qpos"].Numbers();
  trajectory.init_qvel = node["init_qvel"].Numbers();
  if (node.Has("reset")) trajectory.reset = ReadStep(node["reset"]);
  if (node.Has("goals")) {
    const Node goals = node["goals"];
    for (std::size_t i = 0; i < goals.size(); ++i) {
      trajectory.goals.push_back(goals[i].Numbers());
      if (trajectory.goals.back().size() != 2) goals[i].Fail("two numbers");
    }
  }
  const Node steps = node["steps"];
  for (std::size_t i = 0; i < steps.size(); ++i) {
    GoldenStep step = ReadStep(steps[i]);
    if (step.goals.size() > trajectory.goals.size())
      steps[i].Fail("as many goals as the trajectory");
    trajectory.steps.push_back(std::move(step));
  }
  return trajectory;
}

std::vector<std::string> ReadVersions(const Node& node) {
  const std::string text = node.Text();
  if (text == "v4,v5") return {"v4", "v5"};
  if (text == "v4" || text == "v5") return {text};
  node.Fail("\"v4\", \"v5\" or \"v4,v5\"");
}

// ---- comparing ----

// Bounds on positions and velocities up to step 10 and later. They follow from how fast each
// system makes a rounding error grow (docs/environments.md).
struct Tolerance {
  double early;
  double late;
  double at(int step) const { return step <= 10 ? early : late; }
};

Tolerance ToleranceOf(const std::string& family) {
  if (family == "reacher") return {1e-10, 1e-10};
  if (family == "pusher") return {1e-9, 1e-8};
  if (family == "hopper") return {1e-10, 1e-9};
  if (family == "walker2d") return {1e-10, 1e-8};
  if (family == "humanoid") return {1e-9, 1e-8};
  if (family == "pointmaze") return {1e-10, 1e-9};
  return {1e-9, 1e-5};  // ant, antmaze
}

constexpr double kModelTolerance = 1e-12;

// Collects deviations; keeps the one that is worst against its tolerance for each quantity.
class Comparison {
 public:
  void Add(const std::string& quantity, double deviation, double tolerance,
           const std::string& where) {
    auto [entry, is_new] = index_.try_emplace(quantity, rows_.size());
    if (is_new) rows_.push_back({quantity, 0.0, tolerance, where});
    Deviation& row = rows_[entry->second];
    // not finite is worse than anything
    if (!std::isfinite(deviation)) deviation = std::numeric_limits<double>::infinity();
    if (is_new || Excess(deviation, tolerance) > Excess(row.largest, row.tolerance)) {
      row = {quantity, deviation, tolerance, where};
    }
  }
  // Entries compare relative to max(1, |expected|).
  void AddValues(const std::string& quantity, std::span<const double> actual,
                 std::span<const double> expected, double tolerance, const std::string& where) {
    if (actual.size() != expected.size()) {
      throw UserError(StrCat(where, ": ", quantity, " has ", expected.size(),
                             " entries in the file, ", actual.size(), " here: another task?"));
    }
    double largest = 0.0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const double deviation =
          std::abs(actual[i] - expected[i]) / std::max(1.0, std::abs(expected[i]));
      largest = std::isfinite(deviation) ? std::max(largest, deviation) : deviation;
    }
    Add(quantity, largest, tolerance, where);
  }
  std::vector<Deviation> Take() { return std::move(rows_); }

 private:
  static double Excess(double deviation, double tolerance) {
    return tolerance > 0 ? deviation / tolerance : deviation > 0 ? 1e300 : 0.0;
  }

  std::map<std::string, std::size_t> index_;
  std::vector<Deviation> rows_;
};

// Inertia about the body's frame, as xx yy zz xy xz yz.
std::vector<double> FullInertia(const mjModel& m, int body) {
  double rotation[9];
  mju_quat2Mat(rotation, m.body_iquat + 4 * body);
  const double* principal = m.body_inertia + 3 * body;
  const auto entry = [&](int i, int j) {
    double sum = 0.0;
    for (int k = 0; k < 3; ++k) sum += rotation[3 * i + k] * principal[k] * rotation[3 * j + k];
    return sum;
  };
  return {entry(0, 0), entry(1, 1), entry(2, 2), entry(0, 1), entry(0, 2), entry(1, 2)};
}

// How many numbers of a geom's size mean something.
int SizeCount(int geom_type) {
  switch (geom_type) {
    case mjGEOM_SPHERE:
      return 1;
    case mjGEOM_CAPSULE:
    case mjGEOM_CYLINDER:
      return 2;
    default:
      return 3;
  }
}

std::map<std::string, Figures> FiguresOf(const mjModel& m) {
  std::map<std::string, Figures> f;
  const auto rows = [&](const char* name, const auto* values, int count, int width) {
    for (int i = 0; i < count; ++i) {
      f[name].emplace_back(values + width * i, values + width * (i + 1));
    }
  };
  const auto one = [&](const char* name, std::vector<double> values) {
    f[name] = {std::move(values)};
  };
  one("timestep", {m.opt.timestep});
  one("iterations", {static_cast<double>(m.opt.iterations)});
  one("tolerance", {m.opt.tolerance});
  one("impratio", {m.opt.impratio});
  one("gravity", {m.opt.gravity, m.opt.gravity + 3});
  one("density", {m.opt.density});
  one("viscosity", {m.opt.viscosity});
  one("total_mass", {m.body_subtreemass[0]});
  one("qpos0", {m.qpos0, m.qpos0 + m.nq});
  one("qpos_spring", {m.qpos_spring, m.qpos_spring + m.nq});
  rows("bodies.pos", m.body_pos, m.nbody, 3);
  rows("bodies.quat", m.body_quat, m.nbody, 4);
  rows("bodies.mass", m.body_mass, m.nbody, 1);
  rows("bodies.ipos", m.body_ipos, m.nbody, 3);
  rows("bodies.subtreemass", m.body_subtreemass, m.nbody, 1);
  rows("bodies.invweight0", m.body_invweight0, m.nbody, 2);
  for (int i = 0; i < m.nbody; ++i) {
    f["bodies.inertia_full_xx_yy_zz_xy_xz_yz_bodyframe"].push_back(FullInertia(m, i));
  }
  rows("joints.pos", m.jnt_pos, m.njnt, 3);
  rows("joints.axis", m.jnt_axis, m.njnt, 3);
  rows("joints.limited", m.jnt_limited, m.njnt, 1);
  rows("joints.range", m.jnt_range, m.njnt, 2);
  rows("joints.stiffness", m.jnt_stiffness, m.njnt, 1);
  rows("joints.margin", m.jnt_margin, m.njnt, 1);
  rows("joints.solref_limit", m.jnt_solref, m.njnt, mjNREF);
  rows("joints.solimp_limit", m.jnt_solimp, m.njnt, mjNIMP);
  for (int i = 0; i < m.njnt; ++i) {
    const int begin = m.jnt_dofadr[i];
    const int end = i + 1 < m.njnt ? m.jnt_dofadr[i + 1] : m.nv;
    f["joints.damping"].emplace_back(m.dof_damping + begin, m.dof_damping + end);
    f["joints.armature"].emplace_back(m.dof_armature + begin, m.dof_armature + end);
    f["joints.frictionloss"].emplace_back(m.dof_frictionloss + begin, m.dof_frictionloss + end);
    f["joints.dof_invweight0"].emplace_back(m.dof_invweight0 + begin, m.dof_invweight0 + end);
  }
  for (int i = 0; i < m.ngeom; ++i) {
    const double* size = m.geom_size + 3 * i;
    f["geoms.size"].emplace_back(size, size + SizeCount(m.geom_type[i]));
  }
  rows("geoms.pos", m.geom_pos, m.ngeom, 3);
  rows("geoms.friction", m.geom_friction, m.ngeom, 3);
  rows("geoms.contype", m.geom_contype, m.ngeom, 1);
  rows("geoms.conaffinity", m.geom_conaffinity, m.ngeom, 1);
  rows("geoms.condim", m.geom_condim, m.ngeom, 1);
  rows("geoms.margin", m.geom_margin, m.ngeom, 1);
  rows("geoms.gap", m.geom_gap, m.ngeom, 1);
  rows("geoms.solref", m.geom_solref, m.ngeom, mjNREF);
  rows("geoms.solimp", m.geom_solimp, m.ngeom, mjNIMP);
  rows("actuators.gear", m.actuator_gear, m.nu, 6);
  rows("actuators.ctrllimited", m.actuator_ctrllimited, m.nu, 1);
  rows("actuators.ctrlrange", m.actuator_ctrlrange, m.nu, 2);

  const DataPtr data = MakeData(m);
  mj_forward(&m, data.get());
  std::vector<double> mass_matrix(static_cast<std::size_t>(m.nv * m.nv));
  mj_fullM(&m, mass_matrix.data(), data->qM);
  one("mass_matrix_at_qpos0", std::move(mass_matrix));
  return f;
}

// Each list relative to its largest expected entry.
void CompareModel(const mjModel& model, const GoldenFile& file, Comparison& comparison) {
  const auto actual = FiguresOf(model);
  for (const auto& [name, expected] : file.model) {
    const Figures& ours = actual.at(name);
    if (ours.size() != expected.size()) {
      throw UserError(StrCat("model: ", name, " has ", expected.size(), " entries in the file, ",
                             ours.size(), " here: another task?"));
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::string where = expected.size() > 1 ? StrCat("entry ", i) : "";
      double scale = 1e-300;
      for (const double value : expected[i]) scale = std::max(scale, std::abs(value));
      // files also hold entries without a meaning
      const std::size_t count = std::min(ours[i].size(), expected[i].size());
      double largest = 0.0;
      for (std::size_t k = 0; k < count; ++k) {
        largest = std::max(largest, std::abs(ours[i][k] - expected[i][k]));
      }
      const bool is_zero = scale == 1e-300;
      comparison.Add(StrCat("model ", name), is_zero ? largest : largest / scale, kModelTolerance,
                     where);
    }
  }
}

const MujocoTask& FindTask(const std::string& id) {
  for (const MujocoTask& task : MujocoTasks()) {
    if (task.id == id) return task;
  }
  std::vector<std::string> known;
  for (const MujocoTask& task : MujocoTasks()) known.push_back(task.id);
  throw UserError(StrCat("'", id, "' is no MuJoCo task", DidYouMean(id, known)));
}

bool HasOption(const MujocoTask& task, std::string_view key) {
  return std::ranges::any_of(task.options(),
                             [key](const ConfigField& field) { return field.key == key; });
}

void RequireSizes(const MujocoEnv& env, const GoldenTrajectory& trajectory) {
  const auto require = [&](std::string_view what, std::size_t actual, int wanted) {
    if (std::cmp_not_equal(actual, wanted)) {
      throw UserError(StrCat(trajectory.name, ": ", what, " has ", actual, " entries, ",
                             env.spec().id, " needs ", wanted));
    }
  };
  require("init_qpos", trajectory.init_qpos.size(), env.model().nq);
  require("init_qvel", trajectory.init_qvel.size(), env.model().nv);
  for (const GoldenStep& step : trajectory.steps) {
    require("action", step.action.size(), env.model().nu);
    require("qpos", step.qpos.size(), env.model().nq);
    require("qvel", step.qvel.size(), env.model().nv);
    if (!step.qacc_warmstart.empty()) {
      require("qacc_warmstart", step.qacc_warmstart.size(), env.model().nv);
    }
  }
}

// One replay in one version; `goal` is the index of a maze's goal, or -1.
class Replay {
 public:
  Replay(MujocoEnv& env, std::string version, Comparison& comparison)
      : env_(env),
        version_(std::move(version)),
        tolerance_(ToleranceOf(env.spec().family)),
        comparison_(comparison) {}

  void OpenLoop(const GoldenTrajectory& trajectory, int goal, bool dense) {
    Start(trajectory, goal);
    Observation(trajectory.reset, 0, trajectory.name);
    if (!trajectory.reset.qacc_warmstart.empty()) {
      comparison_.AddValues("reset qacc_warmstart", Warmstart(), trajectory.reset.qacc_warmstart,
                            tolerance_.early, trajectory.name);
    }
    for (std::size_t i = 0; i < trajectory.steps.size(); ++i) {
      const GoldenStep& step = trajectory.steps[i];
      const int number = static_cast<int>(i) + 1;
      const double tolerance = tolerance_.at(number);
      const std::string where = StrCat(trajectory.name, " step ", number);
      const StepResult result = env_.StepControl(step.action);
      comparison_.AddValues("open loop qpos", Positions(), step.qpos, tolerance, where);
      comparison_.AddValues("open loop qvel", Velocities(), step.qvel, tolerance, where);
      Observation(step, number, where);
      if (!step.contacts.empty()) {
        comparison_.Add("open loop contacts", std::abs(env_.data().ncon - step.contacts[0]), 0.0,
                        where);
      }
      if (goal >= 0) {
        if (std::cmp_less(goal, step.goals.size())) {
          Goal(step.goals[static_cast<std::size_t>(goal)], result, dense, tolerance, where);
        }
        continue;
      }
      if (const auto reward = step.reward.find(version_); reward != step.reward.end()) {
        // rewards hold differences divided by dt
        comparison_.AddValues(StrCat(version_, " reward"), {&result.reward, 1},
                              {&reward->second, 1}, tolerance / env_.spec().dt, where);
      }
      if (!step.terminated.empty()) {
        comparison_.Add("terminated", result.terminated == step.terminated[0] ? 0.0 : 1.0, 0.0,
                        where);
      }
    }
  }

  // Every step from the recorded state before it: no chaos, so it shows where a model differs.
  void TeacherForced(const GoldenTrajectory& trajectory) {
    Start(trajectory, -1);
    const GoldenStep* before = nullptr;
    for (std::size_t i = 0; i < trajectory.steps.size(); ++i) {
      const GoldenStep& step = trajectory.steps[i];
      if (before != nullptr) {
        if (before->qacc_warmstart.empty()) return;
        env_.Replace(before->qpos, before->qvel, before->qacc_warmstart);
      }
      env_.StepControl(step.action);
      const std::string where = StrCat(trajectory.name, " step ", i + 1);
      comparison_.AddValues("single step qpos", Positions(), step.qpos, tolerance_.early, where);
      comparison_.AddValues("single step qvel", Velocities(), step.qvel, tolerance_.early, where);
      before = &step;
    }
  }

 private:
  void Start(const GoldenTrajectory& trajectory, int goal) {
    env_.Reset(0);
    if (goal >= 0) {
      env_.memory()[MazeTask::kGoalX] = trajectory.goals[static_cast<std::size_t>(goal)][0];
      env_.memory()[MazeTask::kGoalY] = trajectory.goals[static_cast<std::size_t>(goal)][1];
    }
    env_.StartAt(trajectory.init_qpos, trajectory.init_qvel);
  }
  void Observation(const GoldenStep& step, int number, const std::string& where) {
    const auto found = step.observation.find(version_);
    if (found == step.observation.end()) return;
    const auto& expected = found->second;
    // in mazes ours has more after the reference's: the goal, of an ant also the position
    auto shown =
        std::span(env_.observation().data(), static_cast<std::size_t>(env_.observation().size()));
    if (env_.spec().family == "antmaze") shown = shown.first(shown.size() - 4);
    if (env_.spec().family == "pointmaze") shown = shown.first(shown.size() - 2);
    comparison_.AddValues(StrCat(version_, " observation"), shown, expected,
                          10 * tolerance_.at(number), where);
  }
  void Goal(const GoldenGoal& goal, const StepResult& result, bool dense, double tolerance,
            const std::string& where) {
    const double expected = dense ? goal.reward_dense : goal.reward_sparse;
    comparison_.AddValues(dense ? "dense reward" : "sparse reward", {&result.reward, 1},
                          {&expected, 1}, tolerance, where);
    comparison_.Add("success", *env_.Success() == goal.success ? 0.0 : 1.0, 0.0, where);
    comparison_.Add("terminated", result.terminated == goal.success ? 0.0 : 1.0, 0.0, where);
  }
  std::span<const double> Positions() const {
    return {env_.data().qpos, static_cast<std::size_t>(env_.model().nq)};
  }
  std::span<const double> Velocities() const {
    return {env_.data().qvel, static_cast<std::size_t>(env_.model().nv)};
  }
  std::span<const double> Warmstart() const {
    return {env_.data().qacc_warmstart, static_cast<std::size_t>(env_.model().nv)};
  }

  MujocoEnv& env_;
  std::string version_;
  Tolerance tolerance_;
  Comparison& comparison_;
};

}  // namespace

GoldenFile ParseGolden(std::string_view text, std::string_view name) {
  const auto json = ParseJson<Json>(text, name, {.bytes = 256 << 20, .values = 20'000'000});
  const Node root(json, std::string(name));
  if (root["schema"].Text() != "mujoco-golden-1") {
    root["schema"].Fail("\"mujoco-golden-1\"");
  }
  GoldenFile file;
  file.task = root["task"].Text();
  file.versions = ReadVersions(root["physics_used_by"]);
  file.model = ReadModel(root["model"]);
  const Node trajectories = root["trajectories"];
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    file.trajectories.push_back(ReadTrajectory(trajectories[i]));
  }
  return file;
}

std::vector<Deviation> CheckAgainst(const std::string& id, const GoldenFile& file) {
  Comparison comparison;
  const MujocoTask& task = FindTask(id);
  for (const std::string& version : file.versions) {
    std::vector<std::string> options;
    if (HasOption(task, "version")) options.push_back("version=" + version);
    const auto env = task.make(options);
    options.emplace_back("reward=dense");
    const auto dense = HasOption(task, "reward") ? task.make(options) : nullptr;  // mazes
    CompareModel(env->model(), file, comparison);
    for (const GoldenTrajectory& trajectory : file.trajectories) {
      RequireSizes(*env, trajectory);
      Replay replay(*env, version, comparison);
      replay.TeacherForced(trajectory);
      if (dense == nullptr) {
        replay.OpenLoop(trajectory, -1, false);
        continue;
      }
      for (int goal = 0; std::cmp_less(goal, trajectory.goals.size()); ++goal) {
        replay.OpenLoop(trajectory, goal, false);
        Replay(*dense, version, comparison).OpenLoop(trajectory, goal, true);
      }
    }
  }
  return comparison.Take();
}

}  // namespace msrl
