// Pictures of the source families: an instance, a trajectory on it, and the trajectory's matrix.
#ifndef MSRL_DIAGNOSE_FIGURES_H_
#define MSRL_DIAGNOSE_FIGURES_H_

#include <cstdint>
#include <filesystem>

namespace msrl {

// Writes graph-motif.svg, micro-grid.svg, point-rooms.svg and dubins-reacher.svg into the folder,
// which is made if it is missing. Each shows the first of the seed's instances in which a behaviour
// of skill 0.9 reaches the goal after 6 to 60 steps, hence never a task without a goal. The matrix
// is the full lift of the shown position (slots 0 and 1) with the environment's actions. Equal
// seeds give equal bytes. UserError if the folder cannot be made or written.
void WriteFigures(const std::filesystem::path& folder, std::uint64_t seed);

}  // namespace msrl

#endif  // MSRL_DIAGNOSE_FIGURES_H_
