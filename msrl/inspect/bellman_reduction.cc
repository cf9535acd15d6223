#include "msrl/inspect/bellman_reduction.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "msrl/core/check.h"

namespace msrl {
namespace {

constexpr double kGrid = 1e-9;

double Best(const std::vector<double>& q) {
  return q.empty() ? 0.0 : *std::max_element(q.begin(), q.end());
}

// The lifted state of each history.
std::vector<std::size_t> Group(const Knowledge& knowledge, const std::vector<History>& histories) {
  std::map<std::vector<std::int64_t>, std::size_t> known;
  std::vector<std::size_t> group;
  for (const History& history : histories) {
    std::vector<std::int64_t> key;
    for (const double value : knowledge(history)) key.push_back(std::llround(value / kGrid));
    group.push_back(known.try_emplace(std::move(key), known.size()).first->second);
  }
  return group;
}

}  // namespace

std::vector<History> ListHistories(const Lift::Ptr& lift, const Multigraph& graph, int start,
                                   int steps) {
  RequireValid(graph);
  std::vector<Eigen::VectorXd> psi;
  for (const GraphEdge& edge : graph.edges) psi.push_back(LiftEdge(*lift, graph, edge));
  std::vector<History> histories{
      {.node = start, .edges = {}, .z = SegmentMatrix(lift), .steps = {}}};
  for (std::size_t i = 0; i < histories.size(); ++i) {
    if (std::ssize(histories[i].edges) == steps) continue;
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
      const GraphEdge& edge = graph.edges[e];
      if (edge.tail != histories[i].node) continue;
      histories[i].steps.push_back(
          {.reward = edge.reward, .next = static_cast<int>(histories.size())});
      History next{
          .node = edge.head, .edges = histories[i].edges, .z = histories[i].z, .steps = {}};
      next.edges.push_back(static_cast<int>(e));
      next.z.AddStep(psi[e]);
      histories.push_back(std::move(next));
    }
  }
  return histories;
}

BellmanReduction ReduceTo(const Knowledge& knowledge, const std::vector<History>& histories,
                          double gamma) {
  const std::vector<std::size_t> group = Group(knowledge, histories);
  const std::size_t groups =
      histories.empty() ? 0 : *std::max_element(group.begin(), group.end()) + 1;
  std::vector<std::vector<std::size_t>> members(groups);
  for (std::size_t i = 0; i < histories.size(); ++i) members[group[i]].push_back(i);

  // longer histories come later, so that going back every successor is known
  std::vector<std::vector<double>> exact(histories.size());
  std::vector<std::vector<double>> lifted(groups);
  for (std::size_t i = histories.size(); i-- > 0;) {
    for (const HistoryStep& step : histories[i].steps) {
      exact[i].push_back(step.reward + gamma * Best(exact[static_cast<std::size_t>(step.next)]));
    }
    const std::vector<std::size_t>& same = members[group[i]];
    if (same.front() != i) continue;
    std::vector<double>& q = lifted[group[i]];
    q.assign(histories[i].steps.size(), 0.0);
    for (const std::size_t k : same) {
      const History& member = histories[k];
      MSRL_CHECK_EQ(member.steps.size(), q.size());
      MSRL_CHECK_EQ(member.edges.size(), histories[i].edges.size());
      for (std::size_t a = 0; a < q.size(); ++a) {
        const std::size_t next = group[static_cast<std::size_t>(member.steps[a].next)];
        q[a] += (member.steps[a].reward + gamma * Best(lifted[next])) /
                static_cast<double>(same.size());
      }
    }
  }

  BellmanReduction result;
  if (groups > 0) result.first = lifted[group[0]];
  double count = 0.0, sum = 0.0, squares = 0.0, left = 0.0;
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t actions = lifted[g].size();
    if (actions == 0) continue;
    ++result.lifted_states;
    result.histories += static_cast<int>(members[g].size());
    for (std::size_t a = 0; a < actions; ++a) {
      double mean = 0.0;
      for (const std::size_t k : members[g]) {
        mean += exact[k][a] / static_cast<double>(members[g].size());
      }
      for (const std::size_t k : members[g]) {
        const double q = exact[k][a];
        result.largest_gap = std::max(result.largest_gap, std::abs(q - lifted[g][a]));
        left += (q - mean) * (q - mean);
        count += 1.0;
        sum += q;
        squares += q * q;
      }
    }
  }
  const double total = count > 0.0 ? squares - sum * sum / count : 0.0;
  if (total > 0.0) result.unexplained = left / total;
  return result;
}

}  // namespace msrl
