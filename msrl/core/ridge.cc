#include "msrl/core/ridge.h"

#include "msrl/core/check.h"

namespace msrl {
namespace {

using AnyMoments = ChannelMoments<Eigen::Dynamic>;

ChannelRegression Regress(const AnyMoments& moments, const std::vector<std::string>& labels,
                          const std::vector<int>& on, int of) {
  const Ridge<Eigen::Dynamic> ridge(moments, on, of);
  ChannelRegression regression{.of = labels[static_cast<std::size_t>(of)],
                               .intercept = ridge.Intercept(),
                               .explained = ridge.Explained(),
                               .terms = {}};
  for (Index i = 0; i < ridge.size(); ++i) {
    const auto channel = static_cast<std::size_t>(on[static_cast<std::size_t>(i)]);
    regression.terms.push_back({labels[channel], ridge.slope()[i], ridge.Error(i)});
  }
  return regression;
}

}  // namespace

std::vector<ChannelRegression> Regressions(const SegmentMatrix& z) {
  const Lift& lift = *z.lift();
  if (lift.kind() == LiftKind::kFull) {
    throw UserError("regressions need a compact lift, whose channels are states and actions");
  }
  std::vector<ChannelRegression> regressions;
  if (z.HorizonEntry() < 2.0) return regressions;
  const AnyMoments moments(z);
  const std::vector<std::string> labels = lift.Labels();
  const auto varying = [&](std::initializer_list<const char*> blocks) {
    std::vector<int> channels;
    for (const char* name : blocks) {
      if (!lift.HasBlock(name)) continue;
      const LiftBlock& block = lift.FindBlock(name);
      for (Index i = block.offset; i < block.offset + block.size; ++i) {
        const double square = moments.mean[i] * moments.mean[i];
        // beyond what rounding makes of a constant
        if (moments.covariance(i, i) > 1e-12 * (square + 1e-12)) {
          channels.push_back(static_cast<int>(i));
        }
      }
    }
    return channels;
  };
  const std::vector<int> causes = varying({"x", "a", "e"});
  for (const int reward : varying({"r"})) {
    if (!causes.empty()) regressions.push_back(Regress(moments, labels, causes, reward));
  }
  const std::vector<int> actions = varying({"a"});
  for (const int moved : varying({"dx"})) {
    if (!actions.empty()) regressions.push_back(Regress(moments, labels, actions, moved));
  }
  return regressions;
}

}  // namespace msrl
