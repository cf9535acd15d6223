// Which trajectories of a file are alike? Nearest neighbours by Frobenius distance of the matrices.
#include <cstdio>
#include <exception>

#include "msrl/core/segment.h"
#include "msrl/datasets/trajectory_file.h"

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: search_segments FILE.jsonl\n");
    return 2;
  }
  const msrl::TrajectoryFile file = msrl::ReadTrajectories(argv[1]);
  const auto lift = msrl::Lift::Make({msrl::LiftKind::kFull, file.d, file.q, /*slots=*/{}});
  std::vector<msrl::SegmentMatrix> matrices;
  for (const msrl::Trajectory& trajectory : file.trajectories) {
    matrices.push_back(msrl::Describe(lift, trajectory.segment));
  }
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    std::size_t nearest = i == 0 ? 1 : 0;
    for (std::size_t j = 0; j < matrices.size(); ++j) {
      if (j != i && matrices[i].Distance(matrices[j]) < matrices[i].Distance(matrices[nearest])) {
        nearest = j;
      }
    }
    if (nearest >= matrices.size()) break;
    std::printf("%-20s is nearest to %-20s (distance %.3f)\n", file.trajectories[i].name.c_str(),
                file.trajectories[nearest].name.c_str(), matrices[i].Distance(matrices[nearest]));
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "search_segments: %s\n", error.what());
  return 2;
}
