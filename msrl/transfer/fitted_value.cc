#include "msrl/transfer/fitted_value.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <map>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/env/spec.h"
#include "msrl/value/matrix_features.h"

namespace msrl {
namespace {

// States of one family, one column each, episode after episode.
struct Family {
  std::vector<std::size_t> episodes;
  std::vector<Index> first;  // column of each episode's first state
  Eigen::MatrixXf features;
  Index columns = 0;
};

std::map<std::string, Family> FamiliesOf(const EpisodeFile& file) {
  std::map<std::string, Family> families;
  for (std::size_t k = 0; k < file.episodes.size(); ++k) {
    families[file.episodes[k].env].episodes.push_back(k);
  }
  return families;
}

// [observation, matrix features, squares of both, 1] per state.
void FillFeatures(const EpisodeFile& file, Family& family) {
  const MatrixFeatures map(CompactLift());
  const Index observation = file.episodes[family.episodes.front()].observations.rows();
  const Index plain = observation + map.size();
  family.columns = 0;
  for (const std::size_t k : family.episodes) {
    if (file.episodes[k].observations.rows() != observation) {
      throw UserError(
          StrCat("episodes of ", file.episodes[k].env, " have observations of different sizes"));
    }
    family.first.push_back(family.columns);
    family.columns += file.episodes[k].horizon() + 1;
  }
  family.features.resize(2 * plain + 1, family.columns);
  const Lift::Ptr lift = CompactLift();
  Eigen::VectorXd psi(lift->m());
  std::vector<float> row(static_cast<std::size_t>(map.size()));
  for (std::size_t i = 0; i < family.episodes.size(); ++i) {
    const StoredEpisode& episode = file.episodes[family.episodes[i]];
    const Segment segment = ToSegment(episode, file.action_code_size);
    SegmentMatrix z(lift);
    for (Index t = 0; t <= episode.horizon(); ++t) {
      auto column = family.features.col(family.first[i] + t);
      map.Compute(z, row);
      column.head(observation) = episode.observations.col(t);
      column.segment(observation, map.size()) =
          Eigen::Map<const Eigen::VectorXf>(row.data(), map.size());
      column.segment(plain, plain) = column.head(plain).array().square();
      if (t == episode.horizon()) break;
      lift->Apply(segment.x.col(t), segment.a.col(t), segment.r[t], segment.x.col(t + 1), psi);
      z.AddStep(psi);
    }
  }
  family.features.bottomRows(1).setOnes();
}

// All but the last feature, the constant.
void Standardise(const Eigen::VectorXf& mean, const Eigen::VectorXf& factor, Family& family) {
  for (Index i = 0; i < mean.size(); ++i) {
    auto feature = family.features.row(i).array();
    feature = ((feature - mean[i]) * factor[i]).max(-5.0F).min(5.0F);
  }
}

// The n-step returns of all states of an episode.
void AddReturns(const StoredEpisode& episode, double gamma, int steps,
                const Eigen::Ref<const Eigen::VectorXf>& value, Eigen::Ref<Eigen::VectorXf> out) {
  const Index horizon = episode.horizon();
  const auto at = [&](Index t) {
    return t == horizon && episode.terminated ? 0.0 : static_cast<double>(value[t]);
  };
  for (Index t = 0; t <= horizon; ++t) {
    const Index end = std::min<Index>(t + steps, horizon);
    double sum = at(end);
    for (Index k = end; k-- > t;) sum = episode.rewards[k] / episode.reward_scale + gamma * sum;
    out[t] = static_cast<float>(sum);
  }
}

void AddReturns(const EpisodeFile& file, const Family& family, int steps,
                const Eigen::VectorXf& value, Eigen::VectorXf& returns) {
  for (std::size_t i = 0; i < family.episodes.size(); ++i) {
    const StoredEpisode& episode = file.episodes[family.episodes[i]];
    const Index length = episode.horizon() + 1;
    AddReturns(episode, file.gamma, steps, value.segment(family.first[i], length),
               returns.segment(family.first[i], length));
  }
}

Eigen::VectorXf ValuesOf(const Family& family, const Eigen::VectorXf& weights, float bound) {
  const Eigen::VectorXf value = family.features.transpose() * weights;
  return value.cwiseMax(-bound).cwiseMin(bound);
}

}  // namespace

FittedValue::FittedValue(const EpisodeFile& file, const FittedValueOptions& options)
    : options_(options) {
  MSRL_CHECK_GE(options.steps, 1);
  for (auto& [name, family] : FamiliesOf(file)) {
    FillFeatures(file, family);
    Regression& fit = families_[name];
    // standardised, so that one ridge fits all
    const Index plain = family.features.rows() - 1;
    const auto count = static_cast<float>(family.columns);
    fit.mean.resize(plain);
    fit.factor.resize(plain);
    for (Index i = 0; i < plain; ++i) {
      const auto feature = family.features.row(i).array();
      fit.mean[i] = feature.sum() / count;
      const float deviation = std::sqrt((feature - fit.mean[i]).square().sum() / count);
      fit.factor[i] = deviation > 1e-6F ? 1.0F / deviation : 0.0F;
    }
    Standardise(fit.mean, fit.factor, family);

    // the last state of an episode has no return of its own, so it is no example
    std::vector<Index> rows;
    for (std::size_t i = 0; i < family.episodes.size(); ++i) {
      const Index horizon = file.episodes[family.episodes[i]].horizon();
      for (Index t = 0; t < horizon; ++t) rows.push_back(family.first[i] + t);
    }
    const std::size_t stride = 1 + rows.size() / static_cast<std::size_t>(options.max_rows);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < rows.size(); i += stride) rows[kept++] = rows[i];
    rows.resize(kept);

    const Eigen::MatrixXf examples = family.features(Eigen::all, rows);
    Eigen::MatrixXf gram = Eigen::MatrixXf::Zero(examples.rows(), examples.rows());
    gram.selfadjointView<Eigen::Lower>().rankUpdate(examples);
    Eigen::MatrixXd normal = gram.cast<double>().selfadjointView<Eigen::Lower>();
    // not on the constant: it would pull every value to zero
    normal.diagonal().head(plain).array() += options.ridge * static_cast<double>(kept);
    normal.diagonal().tail(1).array() += 1e-9 * static_cast<double>(kept);
    const Eigen::LDLT<Eigen::MatrixXd> solver(normal);

    // no value is beyond what the largest reward for ever would give
    double largest = 0.0;
    for (const std::size_t k : family.episodes) {
      const StoredEpisode& episode = file.episodes[k];
      largest = std::max(largest, episode.rewards.cwiseAbs().maxCoeff() / episode.reward_scale);
    }
    fit.bound = static_cast<float>(largest / (1.0 - file.gamma));
    Eigen::VectorXf value = Eigen::VectorXf::Zero(family.columns);
    Eigen::VectorXf returns(family.columns);
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      AddReturns(file, family, options.steps, value, returns);
      const Eigen::VectorXf right = examples * returns(rows);
      fit.weights = solver.solve(right.cast<double>()).cast<float>();
      value = ValuesOf(family, fit.weights, fit.bound);
    }
  }
}

void FittedValue::AddTo(EpisodeFile& file) const {
  for (auto& [name, family] : FamiliesOf(file)) {
    const auto fit = families_.find(name);
    if (fit == families_.end()) {
      throw UserError(StrCat("no values of ", name, ": the fitted episodes have none of it"));
    }
    const Regression& known = fit->second;
    FillFeatures(file, family);
    if (family.features.rows() != known.weights.size()) {
      throw UserError(StrCat("episodes of ", name, " have other observations than those fitted"));
    }
    Standardise(known.mean, known.factor, family);
    Eigen::VectorXf value = ValuesOf(family, known.weights, known.bound);
    Eigen::VectorXf returns(family.columns);
    AddReturns(file, family, options_.steps, value, returns);
    for (std::size_t i = 0; i < family.episodes.size(); ++i) {
      StoredEpisode& episode = file.episodes[family.episodes[i]];
      const Index length = episode.horizon() + 1;
      episode.values["fitted"] = returns.segment(family.first[i], length);
      if (episode.terminated) value[family.first[i] + length - 1] = 0.0F;
      episode.values["regression"] = value.segment(family.first[i], length);
    }
  }
}

}  // namespace msrl
