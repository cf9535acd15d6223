// Runs that start from a pretrained branch.
#ifndef MSRL_RUN_BRANCH_INIT_H_
#define MSRL_RUN_BRANCH_INIT_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/run/run_spec.h"
#include "msrl/value/value_branch.h"

namespace msrl {

// What an agent must be set to, to hold a branch of this shape. They come before the user's.
std::vector<std::string> BranchSettings(const BranchShape& shape, std::string_view features);

// Whether the agent has a matrix-value branch.
bool TakesBranch(std::string_view agent);

// Reads a branch file and makes `spec` start from it: settings and hash. Returns the contents for
// RunDirectory::Create. All that can be wrong with it is a UserError here, before the run exists.
std::string StartFromBranch(RunSpec& spec, const std::filesystem::path& file, bool unaligned);

}  // namespace msrl

#endif  // MSRL_RUN_BRANCH_INIT_H_
