#include "msrl/agents/msrl/planner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "msrl/agents/common/candidate_actions.h"
#include "msrl/core/check.h"

namespace msrl {
namespace {

enum Metric : std::size_t { kFutures, kOverride, kRealized, kChain, kChecked, kFirstRemoved };

constexpr double kStretch = 1.3;  // of random candidates

int NumbersPerAction(const ActionSpec& action) {
  return action.kind == ActionKind::kDiscrete ? 1 : action.size;
}

// Actions that are weighed at most.
int CandidateCount(const ActionSpec& action, const PlannerSettings& settings) {
  return action.kind == ActionKind::kDiscrete ? action.size : settings.candidates;
}

// Segments that are looked at for all of them; the critic judges so many at once.
int FutureCount(int candidates, const PlannerSettings& settings) {
  const int each = std::max(1, std::min(settings.neighbours, Critic::kMaxCandidates / candidates));
  return each * candidates;
}

template <typename From>
void CopyToFloats(const From& from, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = static_cast<float>(from[static_cast<Eigen::Index>(i)]);
  }
}

}  // namespace

Planner::Planner(const EnvSpec& spec, const PlannerSettings& settings, const Lift::Ptr& lift,
                 const MatrixFeatureOptions& features, bool critic_sees_matrix, std::uint64_t seed)
    : settings_(RequireInRange(settings)),
      action_spec_(spec.action),
      env_(spec.id),
      n_(spec.observation_size),
      m_(NumbersPerAction(spec.action)),
      most_candidates_(CandidateCount(spec.action, settings)),
      most_futures_(FutureCount(most_candidates_, settings)),
      features_(lift, features),
      critic_rows_(critic_sees_matrix ? features_.size() : 0),
      library_({.capacity = settings.library_size,
                .policy = settings.library_policy,
                .lift = lift,
                .max_length = settings.segment_steps,
                .context_size = kGeometrySize,
                .action_size = m_,
                .observation_size = n_,
                .discrete = spec.action.kind == ActionKind::kDiscrete,
                .family = spec.family}),
      proxy_(n_, features_, settings.proxy, seed),
      rng_(seed, "library"),
      metrics_({"planner/futures", "planner/override", "planner/realized", "planner/chain",
                "planner/checked", "obstruction/first_step"}),
      neighbours_(static_cast<std::size_t>(most_futures_)),
      counts_(static_cast<std::size_t>(most_candidates_)),
      observation_(n_, Critic::kMaxCandidates),
      z_(features_.size(), Critic::kMaxCandidates),
      ahead_(features_.size(), most_futures_),
      candidates_(m_, Critic::kMaxCandidates),
      context_(kGeometrySize),
      value_(neighbours_.size()),
      q_(Critic::kMaxCandidates),
      kept_(neighbours_.size()),
      checked_(neighbours_.size()),
      tried_(spec.action),
      matrix_(lift),
      tail_observation_(static_cast<std::size_t>(n_)),
      tail_geometry_(kGeometrySize),
      foretold_(kGeometrySize),
      course_(features_.size(), 1) {
  if (action_spec_.kind == ActionKind::kDiscrete && action_spec_.size > Critic::kMaxCandidates) {
    throw UserError(StrCat("lookahead weighs at most ", Critic::kMaxCandidates,
                           " discrete actions, '", spec.id, "' has ", action_spec_.size));
  }
  if (checks() && settings.segment_steps > 1) {
    throw UserError(
        "segments of the library know their first action only: simulation_check needs "
        "segment_steps=1");
  }
  if (settings.chain == 1) return;
  chains_.assign(neighbours_.size(), Chain{.z = SegmentMatrix(lift)});
  next_.resize(neighbours_.size() * static_cast<std::size_t>(most_futures_ / most_candidates_));
  columns_.resize(neighbours_.size());
  for (auto* tails : {&chain_tails_, &next_tails_}) tails->resize(n_, most_futures_);
  for (auto* z : {&chain_z_, &next_segment_, &next_z_}) z->resize(features_.size(), most_futures_);
  next_value_.resize(neighbours_.size());
}

Futures::Futures(int observation_size, int feature_count, int most)
    : tails(observation_size, most),
      segment(feature_count, most),
      geometry(kGeometrySize, most),
      probability(static_cast<std::size_t>(most)),
      lengths(static_cast<std::size_t>(most)) {}

void Futures::Visit(const Archive& state) {
  state.Int("count", count, 0, std::ssize(lengths));
  if (count == 0) return;
  const auto used = static_cast<std::size_t>(count);
  for (const auto& [name, columns] :
       {std::pair{"tails", &tails}, {"segment", &segment}, {"geometry", &geometry}}) {
    state.Array(name, Flat(*columns).first(used * static_cast<std::size_t>(columns->rows())),
                {count, columns->rows()});
  }
  state.Array("probability", std::span(probability).first(used));
  state.Array("lengths", std::span(lengths).first(used));
}

Course::Course(int observation_size, int action_size, const Lift::Ptr& lift, int feature_count,
               int most_futures)
    : observation(observation_size, 1),
      z(feature_count, 1),
      action(static_cast<std::size_t>(action_size)),
      context(kGeometrySize),
      matrix(lift),
      futures(observation_size, feature_count, most_futures) {}

void Course::Visit(const Archive& state) {
  state.Int("steps", steps, 1);
  state.Bool("planned", planned);
  if (planned) {
    state.Array("observation", Flat(observation));
    state.Array("z", Flat(z));
  }
  state.Array("action", action);
  state.Array("context", context);
  std::vector<double> packed(matrix.packed().begin(), matrix.packed().end());
  state.Temporary("matrix", packed, {std::ssize(packed)});
  if (state.loading()) matrix = SegmentMatrix::FromPacked(matrix.lift(), std::move(packed));
  state.Double("reward_sum", reward_sum);
  futures.Visit(state.Child("futures"));
}

Plan::Plan(int observation_size, int action_size, const Lift::Ptr& lift, int feature_count,
           int most_futures, int segment_steps)
    : observation(observation_size, 1),
      z(feature_count, 1),
      heads(action_size, most_futures),
      futures(observation_size, feature_count, most_futures),
      courses(static_cast<std::size_t>(segment_steps),
              Course(observation_size, action_size, lift, feature_count, most_futures)) {}

void Plan::Begin() {
  futures.count = 0;
  first = open = 0;
}

// Between steps the futures have been seen to, and a segment of a single step is complete.
void Plan::Visit(const Archive& state) {
  if (courses.size() == 1) return;
  state.Int("open", open, 0, std::ssize(courses) - 1);
  if (state.loading()) first = 0;
  for (int age = 0; age < open; ++age) course(age).Visit(state.Child(StrCat("course", age)));
}

void Planner::Take(const SegmentLibrary& other, std::string_view source) {
  if (settings_.lookahead == Lookahead::kOff) {
    throw UserError(StrCat("lookahead=off asks no library, it can't use ", source,
                           "; set lookahead=training or lookahead=always"));
  }
  if (const std::int64_t longest = other.config().max_length; longest > settings_.segment_steps) {
    throw UserError(StrCat(source, ": segments of up to ", longest,
                           " steps, this agent's have at most ", settings_.segment_steps,
                           "; set segment_steps=", longest));
  }
  library_.AddAll(other, source, rng_);
  for (std::int64_t slot = 0; slot < library_.size(); ++slot) {
    episode_ = std::max(episode_, library_.episode(slot) + 1);
  }
}

std::unique_ptr<Plan> Planner::MakePlan() const {
  return std::make_unique<Plan>(n_, m_, library_.config().lift, features_.size(), most_futures_,
                                settings_.segment_steps);
}

// The policy's choice is the first candidate.
int Planner::DrawCandidates(const ActionBuffer& choice, Rng& rng) {
  if (action_spec_.kind == ActionKind::kDiscrete) {
    int count = 0;
    candidates_(0, count++) = static_cast<float>(choice.index());
    for (int a = 0; a < action_spec_.size; ++a) {
      if (a != choice.index()) candidates_(0, count++) = static_cast<float>(a);
    }
    return count;
  }
  CopyToFloats(choice.values(), ColumnSpan(candidates_, 0));
  for (int c = 1; c < most_candidates_; ++c) {
    DrawStretched(kStretch, rng, ColumnSpan(candidates_, static_cast<std::size_t>(c)));
  }
  return most_candidates_;
}

void Planner::Compose(std::int64_t slot, const SegmentMatrix& from, int column,
                      Eigen::MatrixXf& tails, Eigen::MatrixXf& segment, Eigen::MatrixXf& ahead) {
  const auto at = static_cast<std::size_t>(column);
  matrix_ = from;
  library_.AddMatrixTo(slot, matrix_);
  features_.Compute(matrix_, ColumnSpan(ahead, at));
  matrix_.SetZero();
  library_.AddMatrixTo(slot, matrix_);
  features_.Compute(matrix_, ColumnSpan(segment, at));
  std::ranges::copy(library_.tail_observation(slot), tails.col(column).data());
}

// Nearby segments that begin as a candidate does, with what they lead to.
int Planner::FindFutures(const Situation& situation, int candidates, Plan& plan) {
  CopyToFloats(situation.geometry, context_);
  const auto each = static_cast<std::size_t>(most_futures_ / most_candidates_);
  const auto asked = static_cast<std::size_t>(candidates);
  library_.QueryEach(context_,
                     {.k = static_cast<int>(each),
                      .radius = static_cast<float>(settings_.context_radius),
                      .action_radius = static_cast<float>(settings_.action_radius * std::sqrt(m_))},
                     Flat(candidates_).first(asked * static_cast<std::size_t>(m_)),
                     std::span(neighbours_).first(asked * each), std::span(counts_).first(asked));
  // a segment that begins as two candidates do is one future
  std::size_t found = 0;
  for (std::size_t c = 0; c < asked; ++c) {
    for (int j = 0; j < counts_[c]; ++j) {
      const Neighbour neighbour = neighbours_[c * each + static_cast<std::size_t>(j)];
      const auto known = std::span(neighbours_).first(found);
      if (std::ranges::find(known, neighbour.slot, &Neighbour::slot) == known.end()) {
        neighbours_[found++] = neighbour;
      }
    }
  }
  Futures& futures = plan.futures;
  for (std::size_t j = 0; j < found; ++j) {
    const std::int64_t slot = neighbours_[j].slot;
    const auto column = static_cast<int>(j);
    Compose(slot, situation.matrix, column, futures.tails, futures.segment, ahead_);
    std::ranges::copy(library_.head_action(slot), plan.heads.col(column).data());
    std::ranges::copy(library_.tail_geometry(slot), futures.geometry.col(column).data());
    futures.lengths[j] = library_.length(slot);
    if (settings_.chain == 1) continue;
    Chain& chain = chains_[j];
    chain.slot = slot;
    chain.z = situation.matrix;
    library_.AddMatrixTo(slot, chain.z);
    chain.rewards = library_.reward_sum(slot);
    chain.segments = 1;
  }
  return static_cast<int>(found);
}

// V(o^, Z^) of the futures that the filter keeps.
void Planner::JudgeFutures(ActionValuer& base, int count, Plan& plan) {
  Futures& futures = plan.futures;
  const auto used = static_cast<std::size_t>(count);
  std::ranges::fill(kept_, std::uint8_t{1});
  if (settings_.obstruction) {
    proxy_.Predict(plan.observation.col(0), plan.z.col(0), futures.tails.leftCols(count),
                   futures.segment.leftCols(count), std::span(futures.probability).first(used));
    for (std::size_t j = 0; j < used; ++j) {
      kept_[j] = proxy_.Keeps(futures.probability[j]) ? 1 : 0;
    }
  }
  base.StateValues(futures.tails.leftCols(count), ahead_.topLeftCorner(critic_rows_, count),
                   value_);
  for (std::size_t j = 0; j < used; ++j) {
    const std::int64_t slot = neighbours_[j].slot;
    if (library_.terminated(slot)) value_[j] = 0.0F;
    if (settings_.future_rewards) value_[j] += static_cast<float>(library_.reward_sum(slot));
  }
}

// The best futures are tried; those that lead elsewhere are dropped. Either way the filter learns.
void Planner::CheckFutures(Simulator& simulator, int futures, const Plan& plan) {
  std::ranges::fill(checked_, std::uint8_t{0});
  for (int tries = 0; tries < settings_.simulation_check; ++tries) {
    int best = -1;
    for (int j = 0; j < futures; ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (kept_[at] == 0 || checked_[at] != 0) continue;
      if (best < 0 || value_[at] > value_[static_cast<std::size_t>(best)]) best = j;
    }
    if (best < 0) return;
    const auto at = static_cast<std::size_t>(best);
    checked_[at] = 1;
    if (action_spec_.kind == ActionKind::kDiscrete) {
      tried_.set_index(static_cast<int>(plan.heads(0, best)));
    } else {
      std::copy_n(plan.heads.col(best).data(), m_, tried_.values().begin());
    }
    simulator.Try(tried_.view());
    const std::span<const double> reached(simulator.geometry().data(), kGeometrySize);
    std::copy_n(plan.futures.geometry.col(best).data(), kGeometrySize, foretold_.begin());
    const bool differs = OutcomeDiffers(reached, foretold_, settings_.proxy.tolerance);
    if (differs) kept_[at] = 0;
    metrics_.Add(kChecked, differs ? 0.0 : 1.0);
    if (!settings_.obstruction) continue;
    proxy_.Add(plan.observation.col(0), plan.z.col(0), plan.futures.tails.col(best),
               plan.futures.segment.col(best), differs, plan.futures.probability[at]);
  }
}

// Each future goes on with the best of the segments that begin nearest to its end, as long as there
// is one; it is worth what the best of its ends is worth.
void Planner::LengthenFutures(ActionValuer& base, int futures, const Plan& plan) {
  const int each = most_futures_ / most_candidates_;
  const std::span<Chain> chains = std::span(chains_).first(static_cast<std::size_t>(futures));
  chain_tails_.leftCols(futures) = plan.futures.tails.leftCols(futures);
  chain_z_.leftCols(futures) = ahead_.leftCols(futures);
  for (std::size_t j = 0; j < chains.size(); ++j) {
    chains[j].open = kept_[j] != 0 && !library_.terminated(chains[j].slot);
  }
  for (int length = 2; length <= settings_.chain; ++length) {
    for (std::size_t j = 0; j < chains.size(); ++j) {
      Chain& chain = chains[j];
      chain.best = -1;
      chain.found = 0;
      if (!chain.open) continue;
      chain.found =
          library_.Query(library_.tail_geometry(chain.slot),
                         {.k = each, .radius = static_cast<float>(settings_.context_radius)},
                         std::span(next_).subspan(j * static_cast<std::size_t>(each),
                                                  static_cast<std::size_t>(each)));
    }
    // at once: of every chain the nearest, then of every chain the second, ...
    for (int rank = 0; rank < each; ++rank) {
      int count = 0;
      for (int j = 0; j < futures; ++j) {
        const Chain& chain = chains_[static_cast<std::size_t>(j)];
        if (rank >= chain.found) continue;
        const std::int64_t slot = next_[static_cast<std::size_t>(j * each + rank)].slot;
        Compose(slot, chain.z, count, next_tails_, next_segment_, next_z_);
        columns_[static_cast<std::size_t>(count++)] = j;
      }
      if (count == 0) break;
      base.StateValues(next_tails_.leftCols(count), next_z_.topLeftCorner(critic_rows_, count),
                       next_value_);
      for (int column = 0; column < count; ++column) {
        const int j = columns_[static_cast<std::size_t>(column)];
        Chain& chain = chains_[static_cast<std::size_t>(j)];
        if (settings_.obstruction) {
          float probability = 0.0F;
          proxy_.Predict(chain_tails_.col(j), chain_z_.col(j), next_tails_.col(column),
                         next_segment_.col(column), {&probability, 1});
          if (!proxy_.Keeps(probability)) continue;
        }
        const std::int64_t slot = next_[static_cast<std::size_t>(j * each + rank)].slot;
        float value = next_value_[static_cast<std::size_t>(column)];
        if (library_.terminated(slot)) value = 0.0F;
        if (settings_.future_rewards) {
          value += static_cast<float>(chain.rewards + library_.reward_sum(slot));
        }
        if (chain.best >= 0 && value <= chain.best_value) continue;
        chain.best = slot;
        chain.best_value = value;
      }
    }
    for (int j = 0; j < futures; ++j) {
      const auto at = static_cast<std::size_t>(j);
      Chain& chain = chains_[at];
      chain.open = chain.best >= 0;
      if (!chain.open) continue;
      chain.slot = chain.best;
      library_.AddMatrixTo(chain.slot, chain.z);
      features_.Compute(chain.z, ColumnSpan(chain_z_, at));
      std::ranges::copy(library_.tail_observation(chain.slot), chain_tails_.col(j).data());
      chain.rewards += library_.reward_sum(chain.slot);
      ++chain.segments;
      value_[at] = std::max(value_[at], chain.best_value);
      chain.open = !library_.terminated(chain.slot);
    }
  }
}

template <typename Column>
bool Planner::Compatible(const Plan& plan, int future, const Column& action) const {
  const auto difference = plan.heads.col(future) - action;
  if (action_spec_.kind == ActionKind::kDiscrete) return difference[0] == 0.0F;
  const auto radius = static_cast<float>(settings_.action_radius);
  return difference.squaredNorm() <= radius * radius * static_cast<float>(m_);
}

// U of a candidate; -inf if there is no future.
float Planner::BestFuture(const Plan& plan, int candidate, int futures) const {
  float best = -std::numeric_limits<float>::infinity();
  for (int j = 0; j < futures; ++j) {
    const auto at = static_cast<std::size_t>(j);
    if (kept_[at] != 0 && value_[at] > best && Compatible(plan, j, candidates_.col(candidate))) {
      best = value_[at];
    }
  }
  return best;
}

void Planner::Improve(const Situation& situation, bool exploring, ActionValuer& base, Plan& plan,
                      Rng& rng, ActionBuffer& out, Simulator* simulator) {
  CopyObservation(situation.observation, plan.observation.col(0));
  const int candidates = DrawCandidates(out, rng);
  const int futures = FindFutures(situation, candidates, plan);
  if (futures > 0) {
    features_.Compute(situation.matrix, Flat(plan.z));
    JudgeFutures(base, futures, plan);
    if (simulator != nullptr) CheckFutures(*simulator, futures, plan);
    if (settings_.chain > 1) LengthenFutures(base, futures, plan);
    for (int c = 0; c < candidates; ++c) {
      observation_.col(c) = plan.observation.col(0);
      z_.col(c) = plan.z.col(0);
    }
    const auto o = observation_.leftCols(candidates);
    const auto z = z_.topLeftCorner(critic_rows_, candidates);
    base.ActionValues(o, z, candidates_.leftCols(candidates), q_);
    RequireFinite("value of a candidate",
                  std::span(q_).first(static_cast<std::size_t>(candidates)));
    RequireFinite("value of a future", std::span(value_).first(static_cast<std::size_t>(futures)));
    // what a future is measured against: nothing, or the value of what the policy chose
    const float neutral = settings_.fallback == Fallback::kValue ? q_[0] : 0.0F;

    // S = Q + beta (U - neutral), and Q alone where there is no future
    const auto beta = static_cast<float>(settings_.beta);
    int best = 0;
    float best_score = -std::numeric_limits<float>::infinity();
    for (int c = 0; c < candidates; ++c) {
      float score = q_[static_cast<std::size_t>(c)];
      const float u = BestFuture(plan, c, futures);
      if (std::isfinite(u)) score += beta * (u - neutral);
      if (c == 0) score += static_cast<float>(settings_.margin);
      if (score > best_score) {
        best_score = score;
        best = c;
      }
    }
    if (best != 0) {
      if (action_spec_.kind == ActionKind::kDiscrete) {
        out.set_index(static_cast<int>(candidates_(0, best)));
      } else {
        std::ranges::copy(ColumnSpan(candidates_, static_cast<std::size_t>(best)),
                          out.values().begin());
      }
      // of the segments that begin so, the nearest
      for (int j = 0; exploring && j < futures; ++j) {
        if (!Compatible(plan, j, candidates_.col(best))) continue;
        library_.NoteUse(neighbours_[static_cast<std::size_t>(j)].slot);
        break;
      }
    }
    if (exploring) metrics_.Add(kOverride, best != 0 ? 1.0 : 0.0);
  }
  if (!exploring) return;
  plan.futures.count = futures;
  metrics_.Add(kFutures, futures);
  for (int j = 0; settings_.chain > 1 && j < futures; ++j) {
    metrics_.Add(kChain, chains_[static_cast<std::size_t>(j)].segments);
  }
  if (settings_.obstruction && futures > 0) {
    CountFiltered(std::span(plan.futures.probability).first(static_cast<std::size_t>(futures)));
  }
}

void Planner::CountFiltered(std::span<const float> probability) {
  proxy_.CountFiltered(probability);
  if (first_removed_ > 0) return;
  if (std::ranges::all_of(probability, [this](float p) { return proxy_.Keeps(p); })) return;
  first_removed_ = steps_ + 1;
  metrics_.Add(kFirstRemoved, static_cast<double>(first_removed_));
}

std::string Planner::TakeNotice() {
  if (first_removed_ == 0 || std::exchange(told_, true)) return {};
  return StrCat("the obstruction filter removes futures from step ", first_removed_, " on");
}

// The step begins a segment, and all that are open grow by it. The oldest are complete first.
void Planner::Observe(const Experience& experience, Plan& plan) {
  ++steps_;
  BeginCourse(experience, plan);
  plan.futures.count = 0;
  CopyToFloats(experience.after.observation, tail_observation_);
  CopyToFloats(experience.after.geometry, tail_geometry_);
  const Eigen::Map<const Eigen::VectorXd> psi(experience.psi.data(), std::ssize(experience.psi));
  for (int age = 0; age < plan.open; ++age) {
    Course& course = plan.course(age);
    ++course.steps;
    course.matrix.AddStep(psi);
    course.reward_sum += experience.scaled_reward;
    if (settings_.obstruction) LearnOutcomes(experience, course);
  }
  const bool ended = experience.terminated || experience.truncated;
  while (plan.open > 0 && (ended || plan.course(0).steps == settings_.segment_steps)) {
    Finish(experience, plan.course(0));
    plan.first = (plan.first + 1) % static_cast<int>(plan.courses.size());
    --plan.open;
  }
  if (ended) ++episode_;
}

void Planner::BeginCourse(const Experience& experience, Plan& plan) {
  Course& course = plan.course(plan.open++);
  course.steps = 0;
  course.matrix.SetZero();
  course.reward_sum = 0.0;
  if (action_spec_.kind == ActionKind::kDiscrete) {
    course.action[0] = static_cast<float>(experience.action.index());
  } else {
    CopyToFloats(experience.action.values(), course.action);
  }
  CopyToFloats(experience.before.geometry, course.context);
  Futures& known = course.futures;
  known.count = 0;
  course.planned = plan.futures.count > 0;
  if (!settings_.obstruction || !course.planned) return;
  course.observation = plan.observation;
  course.z = plan.z;
  const Eigen::Map<const Eigen::VectorXf> action(course.action.data(), m_);
  for (int j = 0; j < plan.futures.count; ++j) {
    if (!Compatible(plan, j, action)) continue;
    const int to = known.count++;
    known.tails.col(to) = plan.futures.tails.col(j);
    known.segment.col(to) = plan.futures.segment.col(j);
    known.geometry.col(to) = plan.futures.geometry.col(j);
    known.probability[static_cast<std::size_t>(to)] =
        plan.futures.probability[static_cast<std::size_t>(j)];
    known.lengths[static_cast<std::size_t>(to)] = plan.futures.lengths[static_cast<std::size_t>(j)];
  }
}

// What really happened, against what the futures that end now foretold. What the end of the episode
// cuts off has not come true.
void Planner::LearnOutcomes(const Experience& experience, const Course& course) {
  const Futures& futures = course.futures;
  const std::span<const double> reached(experience.after.geometry.data(), kGeometrySize);
  for (int j = 0; j < futures.count; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const bool due = futures.lengths[at] == course.steps;
    const bool cut_off = futures.lengths[at] > course.steps && experience.terminated;
    if (!due && !cut_off) continue;
    std::copy_n(futures.geometry.col(j).data(), kGeometrySize, foretold_.begin());
    const bool differs = cut_off || OutcomeDiffers(reached, foretold_, settings_.proxy.tolerance);
    metrics_.Add(kRealized, differs ? 0.0 : 1.0);
    proxy_.Add(course.observation.col(0), course.z.col(0), futures.tails.col(j),
               futures.segment.col(j), differs, futures.probability[at]);
  }
}

// A complete segment: an example of what is possible, and into the library.
void Planner::Finish(const Experience& experience, const Course& course) {
  if (settings_.obstruction && course.planned) {
    features_.Compute(course.matrix, Flat(course_));
    proxy_.Add(course.observation.col(0), course.z.col(0),
               Eigen::Map<const Eigen::VectorXf>(tail_observation_.data(), n_), course_.col(0),
               /*obstructed=*/false, std::nullopt);
  }
  library_.Add({.length = course.steps,
                .psi = experience.psi,
                .matrix = &course.matrix,
                .head_action = course.action,
                .context = course.context,
                .tail_observation = tail_observation_,
                .tail_geometry = tail_geometry_,
                .terminated = experience.terminated,
                .env = env_,
                .reward_sum = course.reward_sum,
                .episode = episode_},
               rng_);
}

void Planner::Update() {
  if (settings_.obstruction) proxy_.Update();
}

void Planner::DrainMetrics(MetricSink& sink) {
  metrics_.Drain(sink);
  if (settings_.obstruction) proxy_.DrainMetrics(sink);
}

void Planner::Visit(const Archive& state) {
  library_.Visit(state.Child("library"));
  proxy_.Visit(state.Child("proxy"));
  state.Random("library_random", rng_);
  state.Int("episode", episode_);
  state.Int("steps", steps_);
  state.Int("first_removed", first_removed_);
  state.Bool("told", told_);
  metrics_.Visit(state.Child("planner_metrics"));
}

}  // namespace msrl
