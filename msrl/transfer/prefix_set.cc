#include "msrl/transfer/prefix_set.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/env/spec.h"

namespace msrl {
namespace {

constexpr Index kShift = 4;
constexpr Index kRuleInputs = 24;
constexpr Index kMinSources = 4;  // places for the family, more if there are more
constexpr Index kObservationInputs = 32;

Segment Misalign(const Segment& segment) {
  Segment moved = segment;
  for (Index i = 0; i < segment.x.rows(); ++i) {
    const double sign = i % 2 == 0 ? 1.0 : -1.0;
    moved.x.row((i + kShift) % segment.x.rows()) = sign * segment.x.row(i);
  }
  for (Index i = 0; i < segment.a.rows(); ++i) {
    moved.a.row((i + kShift) % segment.a.rows()) = segment.a.row(i);
  }
  return moved;
}

// Four families or fewer have the same inputs, so that their results can be compared.
Index FamilyInputs(Index sources) { return std::max(kMinSources, sources); }

Index InstanceInputs(Index sources) { return kRuleInputs + FamilyInputs(sources); }

Index OracleInputs(Oracle oracle, Index sources) {
  const bool instance = oracle == Oracle::kInstance || oracle == Oracle::kBoth;
  const bool observation = oracle == Oracle::kObservation || oracle == Oracle::kBoth;
  return (instance ? InstanceInputs(sources) : 0) + (observation ? kObservationInputs : 0);
}

void FillOracle(const StoredEpisode& episode, Index source, Index sources, Index t, Oracle oracle,
                Eigen::Ref<Eigen::VectorXf> out) {
  out.setZero();
  Index next = 0;
  if (oracle == Oracle::kInstance || oracle == Oracle::kBoth) {
    const auto fact = [&episode](const char* name) {
      const auto found = episode.facts.find(name);
      return found == episode.facts.end() ? 0.0F : static_cast<float>(found->second);
    };
    out[std::clamp<Index>(std::lround(fact("style")), 0, 5)] = 1.0F;
    out[6 + std::clamp<Index>(std::lround(fact("task")), 0, 2)] = 1.0F;
    out[9 + source] = 1.0F;
    next = 9 + FamilyInputs(sources);
    out[next++] = fact("gain");
    out[next++] = fact("cost");
    out[next++] = 3.0F * fact("action_cost");
    out[next++] = fact("stop_at_goal");
    out[next++] = fact("scale");
    out[next++] = fact("horizon") / 200.0F;
    out[next++] = fact("skill");
    const auto mask = static_cast<unsigned>(fact("slot_mask"));
    for (unsigned i = 0; i < 8; ++i) out[next++] = (mask >> i & 1u) != 0 ? 1.0F : 0.0F;
  }
  if (oracle == Oracle::kObservation || oracle == Oracle::kBoth) {
    const Index size = std::min(kObservationInputs, episode.observations.rows());
    out.segment(next, size) = 3.0F * episode.observations.col(t).head(size);
  }
}

// Two times of an episode, first < second, and where their matrices begin.
struct TimePair {
  Index begin, first, second;
};

std::vector<TimePair> DrawTimes(const PrefixSetOptions& options, Index horizon, Rng& rng) {
  std::vector<TimePair> times;
  const Index low = options.min_steps;
  for (int k = 0; k < options.pairs_per_episode; ++k) {
    const bool neighbours = rng.Bernoulli(options.gap_one_share) || options.max_gap < 2;
    const Index wanted = neighbours ? 1 : 2 + rng.Index(options.max_gap - 1);
    const Index gap = std::min(wanted, horizon - low);
    const Index first = low + rng.Index(horizon - gap - low + 1);
    const bool whole = options.segments == 0.0 || !rng.Bernoulli(options.segments);
    const Index begin = whole ? 0 : rng.Index(first - low + 1);
    times.push_back({begin, first, first + gap});
  }
  return times;
}

}  // namespace

Lift::Ptr UnalignedLift(LiftKind kind) {
  LiftSpec spec = CompactLift(kind)->spec();
  std::rotate(spec.slots.begin(), spec.slots.begin() + (spec.d - kShift), spec.slots.end());
  return Lift::Make(spec);
}

PrefixSet MakePrefixSet(const EpisodeFile& file, const PrefixSetOptions& options) {
  MSRL_CHECK_GE(options.pairs_per_episode, 1);
  MSRL_CHECK_GE(options.max_gap, 1);
  MSRL_CHECK(options.segments >= 0.0 && options.segments <= 1.0);
  if (file.lift_id != CompactLift()->id().ToString()) {
    throw UserError(StrCat("the episodes are for lift ", file.lift_id, ", this is lift ",
                           CompactLift()->id().ToString()));
  }
  const Lift::Ptr lift = options.view == PrefixView::kUnaligned ? UnalignedLift(options.lift)
                                                                : CompactLift(options.lift);
  const MatrixFeatures map(lift, options.features);
  if (options.view == PrefixView::kLastState && map.last_state_begin() == map.size()) {
    throw UserError(
        "the last-state control puts the state where the end points are; "
        "choose features with endpoints");
  }
  PrefixSet set;
  set.matrix_features = map.size();
  for (const StoredEpisode& episode : file.episodes) {
    if (episode.horizon() <= options.min_steps) continue;
    if (std::find(set.sources.begin(), set.sources.end(), episode.env) == set.sources.end()) {
      set.sources.push_back(episode.env);
    }
  }
  set.identity_features =
      options.identity ? static_cast<int>(FamilyInputs(std::ssize(set.sources))) : 0;
  const Index oracle_inputs = OracleInputs(options.oracle, std::ssize(set.sources));
  const auto count = static_cast<Index>(file.episodes.size()) * 2 * options.pairs_per_episode;
  set.features.setZero(map.size() + set.identity_features + oracle_inputs, count);
  Rng rng(options.seed, "prefixes");
  Eigen::VectorXd psi(lift->m());
  Index column = 0;
  for (std::size_t k = 0; k < file.episodes.size(); ++k) {
    const StoredEpisode& episode = file.episodes[k];
    if (episode.horizon() <= options.min_steps) continue;
    const auto value = episode.values.find(std::string(EnumName(options.target)));
    if (value == episode.values.end()) {
      throw UserError(StrCat("the episodes have no '", EnumName(options.target),
                             "' values; collect them with --targets ", EnumName(options.target)));
    }
    const auto source_index = static_cast<std::int32_t>(
        std::find(set.sources.begin(), set.sources.end(), episode.env) - set.sources.begin());
    const Eigen::VectorXd values = value->second.cast<double>();
    const double mean = values.mean();
    const double variance = (values.array() - mean).square().mean();

    Segment segment = ToSegment(episode, file.action_code_size);
    if (options.view == PrefixView::kUnaligned) segment = Misalign(segment);
    const std::vector<TimePair> times = DrawTimes(options, episode.horizon(), rng);
    // what is wanted of the matrices that begin at a step: time and column
    std::map<Index, std::vector<std::pair<Index, Index>>> wanted;
    for (const TimePair& pair : times) {
      for (const Index t : {pair.first, pair.second}) {
        wanted[pair.begin].emplace_back(t, column++);
        set.value.push_back(value->second[t]);
        set.episode_mean.push_back(static_cast<float>(mean));
        set.episode_variance.push_back(static_cast<float>(variance));
        set.episode.push_back(static_cast<std::int32_t>(k));
        set.time.push_back(static_cast<std::int32_t>(t));
        set.steps.push_back(static_cast<std::int32_t>(t - pair.begin));
        set.source.push_back(source_index);
      }
    }
    for (auto& [begin, examples] : wanted) {
      std::sort(examples.begin(), examples.end());
      SegmentMatrix z(lift);
      Index t = begin;
      for (const auto& [time, c] : examples) {
        for (; t < time; ++t) {
          lift->Apply(segment.x.col(t), segment.a.col(t), segment.r[t], segment.x.col(t + 1), psi);
          z.AddStep(psi);
        }
        auto out = set.features.col(c);
        if (options.view == PrefixView::kLastState) {
          out.segment(map.last_state_begin(), segment.x.rows()) =
              (MatrixFeatures::kEndpointGain * segment.x.col(t)).cast<float>();
        } else {
          map.Compute(z, std::span(out.data(), static_cast<std::size_t>(map.size())));
        }
        if (options.identity) out[map.size() + source_index] = 1.0F;
        FillOracle(episode, source_index, std::ssize(set.sources), t, options.oracle,
                   out.tail(oracle_inputs));
      }
    }
  }
  set.features.conservativeResize(Eigen::NoChange, column);
  return set;
}

}  // namespace msrl
