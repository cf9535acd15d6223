// Is it the same path, seen in unknown coordinates? A path is recorded, then replayed in the same
// room whose plane is rotated, reflected, scaled or sheared, with the action axes turned as well.
// It has to be found among other paths of the room and the same path walked back.
#include "msrl/env/point_rooms.h"

#include <array>
#include <cmath>
#include <numbers>

#include "msrl/core/gauge.h"
#include "msrl/diagnose/diagnostic.h"
#include "msrl/diagnose/evaluation.h"
#include "msrl/env/env_registry.h"
#include "msrl/env/record.h"

namespace msrl {
namespace {

constexpr int kPaths = 12;  // the gallery: these, and each of them walked back
constexpr int kSteps = 20;
constexpr std::array kSlots{0, 1};
const std::vector<std::string> kTransforms{"rotation", "reflection", "scaling", "shear"};

double TypicalStep(const Segment& segment) {
  const Index steps = segment.horizon();
  const Eigen::MatrixXd moves = segment.x.rightCols(steps) - segment.x.leftCols(steps);
  return std::sqrt(moves.topRows(2).squaredNorm() / static_cast<double>(steps));
}

Segment Observe(const Segment& segment, double noise, Rng& rng) {
  Segment seen = ObserveNoisily(segment, kSlots, noise * TypicalStep(segment), rng);
  seen.a = segment.a.topRows(2);
  seen.r.setZero();
  return seen;
}

// A path of exactly kSteps steps from the present episode's start, or an empty one.
Segment DrawPath(Env& env, Rng& rng) {
  Behaviour behaviour(
      env, {.skill = rng.Bernoulli(0.5) ? 0.0 : rng.Uniform(-0.5, 0.5), .persistence = 6.0},
      Rng(rng.NextU64(), "behaviour"));
  return Record(env, behaviour, kSteps).segment;
}

Segment Replay(Env& env, std::uint64_t seed, const Segment& path) {
  env.Reset(seed);
  Segment seen = path;
  seen.x.col(0) = env.geometry();
  for (Index t = 0; t < path.horizon(); ++t) {
    const Eigen::Vector2d action = path.a.col(t).head(2);
    env.Step(Action::Continuous({action.data(), 2}));
    seen.x.col(t + 1) = env.geometry();
  }
  return seen;
}

// One question: a transformed path and the gallery, all observed with noise.
struct Question {
  SegmentMatrix query;
  std::vector<SegmentMatrix> gallery;  // the answer is the first
  double additive_error;
};

class QuestionSource {
 public:
  QuestionSource(LiftKind kind, const std::string& split, double noise, std::uint64_t seed)
      : lift_(Lift::Make({kind, 2, 2, {}})),
        noise_(noise),
        rng_(seed, "diagnose-point-rooms/" + split) {
    const std::vector<std::string> plain{"split=" + split, "reward=distance", "horizon=80"};
    const auto entry = MakeEnvEntry<PointRooms, PointRoomsConfig>("point-rooms");
    env_ = MakeEnv(entry, plain);
    for (const std::string& transform : kTransforms) {
      std::vector<std::string> options = plain;
      options.push_back("transform=" + transform);
      transformed_.push_back(MakeEnv(entry, options));
    }
  }

  Question Next() {
    for (;;) {
      const std::uint64_t room = rng_.NextU64();
      std::vector<Segment> paths;
      while (paths.size() < kPaths) {
        env_->Reset(room);
        Segment path = DrawPath(*env_, rng_);
        if (path.horizon() < kSteps) break;
        paths.push_back(std::move(path));
      }
      if (paths.size() == kPaths) return Ask(room, paths);
    }
  }

 private:
  Question Ask(std::uint64_t room, const std::vector<Segment>& paths) {
    Env& other = *transformed_[static_cast<std::size_t>(
        rng_.Index(static_cast<std::int64_t>(transformed_.size())))];
    Segment query = Observe(Replay(other, room, paths.front()), noise_, rng_);
    // turn and perhaps mirror the action axes
    const double angle = rng_.Uniform(0.0, 2.0 * std::numbers::pi);
    Gauge gauge = Gauge::Identity(2, 2);
    gauge.U << std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle);
    if (rng_.Bernoulli(0.5)) gauge.U.col(0) *= -1.0;
    query = ApplyGauge(query, gauge);

    Question question{Describe(lift_, query), {}, AdditiveError(lift_, query)};
    for (const Segment& path : paths) {
      question.gallery.push_back(Describe(lift_, Observe(path, noise_, rng_)));
      question.gallery.push_back(Describe(lift_, WalkedBack(Observe(path, noise_, rng_))));
    }
    return question;
  }

  Lift::Ptr lift_;
  double noise_;
  Rng rng_;
  std::unique_ptr<Env> env_;
  std::vector<std::unique_ptr<Env>> transformed_;
};

double MatchingAccuracy(const std::vector<Question>& train, const std::vector<Question>& held_out,
                        const FeatureMap& features) {
  // Coordinates count by how well two views of one path agree in them. The floor keeps those that
  // never move from counting infinitely.
  Eigen::VectorXd within;
  Eigen::VectorXd between;
  for (const Question& question : train) {
    const Eigen::MatrixXd gallery = StackColumns(question.gallery, features);
    const Eigen::VectorXd same = (features(question.query) - gallery.col(0)).cwiseAbs2();
    const Eigen::VectorXd other = (gallery.colwise() - gallery.col(0)).cwiseAbs2().rowwise().mean();
    if (within.size() == 0) within.setZero(same.size());
    if (between.size() == 0) between.setZero(same.size());
    within += same;
    between += other;
  }
  const Eigen::VectorXd weight = (within.array() + 1e-9 * between.array() + 1e-300).rsqrt();
  int right = 0;
  for (const Question& question : held_out) {
    const Eigen::MatrixXd gallery = weight.asDiagonal() * StackColumns(question.gallery, features);
    right += Nearest(weight.cwiseProduct(features(question.query)), gallery) == 0 ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(held_out.size());
}

// What a gauge leaves of the occupancy: the number of steps and |M_cc^(-1/2) M_c1|^2.
Eigen::VectorXd OccupancyInvariants(const SegmentMatrix& matrix) {
  const std::string& position = matrix.lift()->blocks()[0].name;
  const Eigen::Matrix2d cc = matrix.Block(position, position);
  const Eigen::Vector2d c1 = matrix.Block(position, "1");
  const double determinant = cc(0, 0) * cc(1, 1) - cc(0, 1) * cc(1, 0);
  const double quadratic =
      (cc(1, 1) * c1[0] * c1[0] - 2.0 * cc(0, 1) * c1[0] * c1[1] + cc(0, 0) * c1[1] * c1[1]);
  return Eigen::VectorXd::Constant(1, determinant > 0.0 ? quadratic / determinant : 0.0);
}

}  // namespace

FamilyOutcome DiagnosePointRooms(const DiagnoseConfig& config, std::uint64_t seed, LiftKind kind) {
  std::vector<Question> train;
  std::vector<Question> held_out;
  QuestionSource train_source(kind, "train", config.noise, seed);
  QuestionSource held_out_source(kind, "held-out", config.noise, seed);
  FamilyOutcome family;
  for (int n = 0; n < config.queries; ++n) {
    train.push_back(train_source.Next());
    held_out.push_back(held_out_source.Next());
    family.additive_error += held_out.back().additive_error / config.queries;
  }
  const std::vector<std::string> all{"c", "delta", "xi_c", "xi_delta", "1"};
  SeedOutcome outcome;
  outcome.diagnostic = "coordinate-aligned matching under unknown gauge";
  outcome.metric = "accuracy";
  outcome.headline = true;
  outcome.score = MatchingAccuracy(train, held_out, CongruenceInvariants);
  outcome.weaker = {{"occupancy", MatchingAccuracy(train, held_out, OccupancyInvariants)},
                    {"without gauge invariance",
                     MatchingAccuracy(train, held_out,
                                      [&](const SegmentMatrix& matrix) {
                                        return BlockEntries(matrix, BlocksOf(*matrix.lift(), all));
                                      })},
                    {"chance", 1.0 / (2 * kPaths)}};
  family.diagnostics.push_back(outcome);
  return family;
}

}  // namespace msrl
