#include "msrl/datasets/segment_sources.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/core/packed_kernels.h"

namespace msrl {
namespace {

constexpr Index kDirections = 8;
constexpr Index kSample = 4096;  // segments that the directions are computed from

// All segments of one length.
struct Pieces {
  std::vector<std::size_t> episode;
  std::vector<Index> begin;
  Eigen::MatrixXd features;   // one column each; Euclidean distances are Frobenius distances
  Eigen::MatrixXd projected;  // in the main directions

  Index count() const { return features.cols(); }
};

// A segment's matrix as a vector: entries off the diagonal count twice.
void FillFeatures(const SegmentMatrix& matrix, Eigen::Ref<Eigen::VectorXd> out) {
  Index k = 0;
  for (Index j = 0; j < matrix.dim(); ++j) {
    for (Index i = 0; i <= j; ++i, ++k) {
      out[k] = matrix.packed()[static_cast<std::size_t>(k)] * (i == j ? 1.0 : std::sqrt(2.0));
    }
  }
}

// Orthonormal columns that span about what varies most: subspace iteration, begun with the entries
// of the largest variance. Any orthonormal columns are right; better ones separate more pairs.
Eigen::MatrixXd MainDirections(const Eigen::MatrixXd& features) {
  const Index count = std::min(features.cols(), kSample);
  const Index step = features.cols() / count;
  Eigen::MatrixXd sample(features.rows(), count);
  for (Index i = 0; i < count; ++i) sample.col(i) = features.col(i * step);
  sample.colwise() -= sample.rowwise().mean().eval();
  const Eigen::VectorXd variance = sample.rowwise().squaredNorm();
  std::vector<Index> order(static_cast<std::size_t>(features.rows()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](Index i) { return variance[i]; });
  const Index directions = std::min(kDirections, features.rows());
  Eigen::MatrixXd basis = Eigen::MatrixXd::Zero(features.rows(), directions);
  for (Index k = 0; k < directions; ++k) basis(order[static_cast<std::size_t>(k)], k) = 1.0;
  for (int round = 0; round < 5; ++round) {
    const Eigen::MatrixXd next = sample * (sample.transpose() * basis);
    const double scale = next.cwiseAbs().maxCoeff();
    if (!(scale > 0.0)) break;  // all segments are equal
    // the coordinate directions behind fill up what has no variance
    const Eigen::HouseholderQR<Eigen::MatrixXd> qr(next / scale);
    basis = qr.householderQ() * Eigen::MatrixXd::Identity(features.rows(), directions);
  }
  return basis;
}

Pieces CutAll(const Lift::Ptr& lift, std::span<const StoredEpisode> episodes, std::int64_t length,
              std::int64_t stride) {
  Pieces pieces;
  for (std::size_t e = 0; e < episodes.size(); ++e) {
    for (Index begin = 0; begin + length <= episodes[e].horizon(); begin += stride) {
      pieces.episode.push_back(e);
      pieces.begin.push_back(begin);
    }
  }
  const auto count = static_cast<Index>(pieces.episode.size());
  pieces.features.resize(internal::PackedSize(lift->m()), count);
  Eigen::MatrixXd psi;
  std::size_t of_psi = episodes.size();
  SegmentMatrix matrix(lift);
  for (Index i = 0; i < count; ++i) {
    const std::size_t e = pieces.episode[static_cast<std::size_t>(i)];
    if (e != of_psi) {
      psi = LiftedSteps(*lift, ToSegment(episodes[e], static_cast<int>(lift->q())));
      of_psi = e;
    }
    matrix.SetZero();
    for (Index t = 0; t < length; ++t) {
      matrix.AddStep(psi.col(pieces.begin[static_cast<std::size_t>(i)] + t));
    }
    FillFeatures(matrix, pieces.features.col(i));
  }
  if (count > 0) pieces.projected = MainDirections(pieces.features).transpose() * pieces.features;
  return pieces;
}

// Finds all pieces within a radius of one.
class Neighbourhood {
 public:
  Neighbourhood(const Pieces& pieces, double radius)
      : pieces_(pieces),
        radius_(radius),
        order_(static_cast<std::size_t>(pieces.count())),
        place_(order_.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::stable_sort(order_, {}, [&](Index i) { return pieces_.projected(0, i); });
    for (std::size_t k = 0; k < order_.size(); ++k) place_[static_cast<std::size_t>(order_[k])] = k;
  }

  // visit(other, distance), itself included.
  template <typename Visit>
  void ForEach(Index piece, const Visit& visit) const {
    visit(piece, 0.0);
    const std::size_t place = place_[static_cast<std::size_t>(piece)];
    for (std::size_t k = place + 1; k < order_.size() && Look(piece, order_[k], visit); ++k) {
    }
    for (std::size_t k = place; k > 0 && Look(piece, order_[k - 1], visit); --k) {
    }
  }

 private:
  // False if it and all behind it are too far along the first direction.
  template <typename Visit>
  bool Look(Index piece, Index other, const Visit& visit) const {
    const auto& projected = pieces_.projected;
    // projections are rounded; distances decide
    const double slack = radius_ + 1e-9 * (1.0 + std::abs(projected(0, piece)));
    if (std::abs(projected(0, other) - projected(0, piece)) > slack) return false;
    if ((projected.col(other) - projected.col(piece)).squaredNorm() > slack * slack) return true;
    const double distance = (pieces_.features.col(other) - pieces_.features.col(piece)).norm();
    if (distance <= radius_) visit(other, distance);
    return true;
  }

  const Pieces& pieces_;
  double radius_;
  std::vector<Index> order_;  // along the first direction
  std::vector<std::size_t> place_;
};

void MineLength(const Pieces& pieces, std::int64_t length, const MineOptions& options,
                std::size_t episode_count, std::vector<Motif>& motifs) {
  if (pieces.count() == 0) return;
  const Neighbourhood near(pieces, options.radius * static_cast<double>(length));
  const auto count = static_cast<std::size_t>(pieces.count());
  std::vector<std::uint8_t> taken(count, 0);
  std::vector<Index> seen(episode_count, -1);  // the piece that last counted the episode
  const auto count_episodes = [&](Index piece) {
    std::int64_t episodes = 0;
    near.ForEach(piece, [&](Index other, double /*distance*/) {
      if (taken[static_cast<std::size_t>(other)] != 0) return;
      Index& last = seen[pieces.episode[static_cast<std::size_t>(other)]];
      episodes += last == piece ? 0 : 1;
      last = piece;
    });
    std::ranges::fill(seen, -1);
    return episodes;
  };
  // Counts only fall as pieces are taken: a count that is still right when it comes up is the
  // largest of all.
  const auto less = [](const std::pair<std::int64_t, Index>& a,
                       const std::pair<std::int64_t, Index>& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  };
  std::vector<std::pair<std::int64_t, Index>> heap;
  for (Index piece = 0; piece < pieces.count(); ++piece) {
    const std::int64_t episodes = count_episodes(piece);
    if (episodes >= options.min_episodes) heap.emplace_back(episodes, piece);
  }
  std::ranges::make_heap(heap, less);
  while (!heap.empty()) {
    std::ranges::pop_heap(heap, less);
    const auto [known, piece] = heap.back();
    heap.pop_back();
    if (taken[static_cast<std::size_t>(piece)] != 0) continue;
    const std::int64_t episodes = count_episodes(piece);
    if (episodes < known) {
      if (episodes < options.min_episodes) continue;
      heap.emplace_back(episodes, piece);
      std::ranges::push_heap(heap, less);
      continue;
    }
    Motif motif;
    motif.episode = pieces.episode[static_cast<std::size_t>(piece)];
    const Index begin = pieces.begin[static_cast<std::size_t>(piece)];
    motif.interval = {begin, begin + length};
    motif.episodes = episodes;
    near.ForEach(piece, [&](Index other, double distance) {
      if (std::exchange(taken[static_cast<std::size_t>(other)], std::uint8_t{1}) != 0) return;
      ++motif.occurrences;
      motif.spread = std::max(motif.spread, distance / static_cast<double>(length));
    });
    motifs.push_back(motif);
  }
}

}  // namespace

SegmentLibraryConfig ConfigFor(const StoredEpisode& episode, const Lift::Ptr& lift) {
  SegmentLibraryConfig config;
  config.lift = lift;
  config.context_size = static_cast<int>(episode.geometry.rows());
  config.action_size = static_cast<int>(episode.actions.rows());
  config.observation_size = static_cast<int>(episode.observations.rows());
  config.discrete = episode.discrete;
  return config;
}

std::int64_t AddPiece(const StoredEpisode& episode, std::int64_t number, Interval interval,
                      Rng& rng, SegmentLibrary& library) {
  const SegmentLibraryConfig& config = library.config();
  const Lift& lift = *config.lift;
  if (episode.observations.rows() != config.observation_size ||
      episode.actions.rows() != config.action_size || episode.discrete != config.discrete ||
      episode.geometry.rows() != config.context_size || episode.geometry.rows() != lift.d()) {
    throw UserError(StrCat(
        "episode ", number, " of '", episode.env, "' has ", episode.observations.rows(),
        " observations, ", episode.actions.rows(), episode.discrete ? " discrete" : "",
        " actions and ", episode.geometry.rows(), " slots, the library is for ",
        config.observation_size, ", ", config.action_size, config.discrete ? " discrete" : "",
        " and ", config.context_size, "; use one environment at a time"));
  }
  if (interval.length() > config.max_length) {
    throw UserError(StrCat("a segment of ", interval.length(), " steps, the library takes at most ",
                           config.max_length));
  }
  const Segment piece = Restrict(ToSegment(episode, static_cast<int>(lift.q())), interval);
  const Eigen::MatrixXd psi = LiftedSteps(lift, piece);
  SegmentMatrix matrix(config.lift);
  for (Index t = 0; t < psi.cols(); ++t) matrix.AddStep(psi.col(t));
  const auto column = [](const Eigen::MatrixXf& values, Index t) {
    return std::span<const float>(values.col(t).data(), static_cast<std::size_t>(values.rows()));
  };
  SegmentView view;
  view.length = interval.length();
  view.psi = {psi.data(), static_cast<std::size_t>(psi.rows())};
  view.matrix = &matrix;
  view.head_action = column(episode.actions, interval.begin);
  view.context = column(episode.geometry, interval.begin);
  view.tail_observation = column(episode.observations, interval.end);
  view.tail_geometry = column(episode.geometry, interval.end);
  view.terminated = episode.terminated && interval.end == episode.horizon();
  view.env = episode.env;
  view.reward_sum = piece.r.sum();
  view.episode = number;
  return library.Add(view, rng);
}

std::int64_t AddEpisode(const StoredEpisode& episode, std::int64_t number,
                        const CutOptions& options, Rng& rng, SegmentLibrary& library) {
  if (options.length < 1 || options.stride < 1) {
    throw UserError(StrCat("segments need a length and a stride of at least 1, got ",
                           options.length, " and ", options.stride));
  }
  std::int64_t kept = 0;
  for (Index begin = 0; begin + options.length <= episode.horizon(); begin += options.stride) {
    kept += AddPiece(episode, number, {begin, begin + options.length}, rng, library) >= 0 ? 1 : 0;
  }
  return kept;
}

std::vector<std::size_t> BestEpisodes(std::span<const StoredEpisode> episodes, double share) {
  if (!(share > 0.0 && share <= 1.0)) {
    throw UserError(StrCat("a share of episodes is above 0 and at most 1, got ", share));
  }
  std::map<std::string, std::vector<std::pair<double, std::size_t>>> by_env;
  for (std::size_t e = 0; e < episodes.size(); ++e) {
    by_env[episodes[e].env].emplace_back(-episodes[e].rewards.sum() / episodes[e].reward_scale, e);
  }
  std::vector<std::size_t> best;
  for (auto& [env, ranked] : by_env) {
    std::ranges::sort(ranked);
    const double wanted = std::ceil(share * static_cast<double>(ranked.size()));
    ranked.resize(static_cast<std::size_t>(wanted));
    for (const auto& [loss, e] : ranked) best.push_back(e);
  }
  std::ranges::sort(best);
  return best;
}

std::vector<Motif> Mine(const Lift::Ptr& lift, std::span<const StoredEpisode> episodes,
                        const MineOptions& options) {
  if (!(options.radius >= 0.0) || options.stride < 1 || options.min_episodes < 1 ||
      options.lengths.empty() || std::ranges::min(options.lengths) < 1) {
    throw UserError(
        "mining needs lengths, a stride and a number of episodes of at least 1, and a "
        "radius of at least 0");
  }
  std::vector<Motif> motifs;
  for (const std::int64_t length : options.lengths) {
    MineLength(CutAll(lift, episodes, length, options.stride), length, options, episodes.size(),
               motifs);
  }
  std::ranges::stable_sort(motifs, [](const Motif& a, const Motif& b) {
    return a.episodes != b.episodes ? a.episodes > b.episodes
                                    : a.interval.length() > b.interval.length();
  });
  return motifs;
}

}  // namespace msrl
