// Any bytes are either a valid file or a UserError; what is read can be described or is refused.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "msrl/core/check.h"
#include "msrl/core/segment.h"
#include "msrl/datasets/trajectory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    const msrl::TrajectoryFile file = data[0] == 'c' ? msrl::ParseTrajectoryCsv(text, "input")
                                                     : msrl::ParseTrajectoryJson(text, "input");
    if (file.q > 50 || file.d > 50) return 0;  // the matrix alone would be megabytes
    const auto lift = msrl::Lift::Make({msrl::LiftKind::kFull, file.d, file.q, /*slots=*/{}});
    for (const msrl::Trajectory& trajectory : file.trajectories) {
      const msrl::SegmentMatrix matrix = msrl::Describe(lift, trajectory.segment);
      if (matrix.Horizon() != trajectory.segment.horizon()) std::abort();
    }
  } catch (const msrl::UserError&) {
    // refused: fine
  }
  return 0;
}
