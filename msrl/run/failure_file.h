// What a run saw in the step that ended it: to look at, and to play again.
#ifndef MSRL_RUN_FAILURE_FILE_H_
#define MSRL_RUN_FAILURE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "msrl/env/traced_env.h"
#include "msrl/files/safetensors.h"

namespace msrl {

inline constexpr const char* kFailureFile = "failure.safetensors";

struct RunFailure {
  std::int64_t step = 0;    // of training
  bool evaluating = false;  // the episode is one of an evaluation after this step
  std::string message;
  EpisodeTrace episode;
  // What the environment showed when it ended. Any number can be here, also none.
  std::vector<double> observation, geometry;
};

// docs/file-formats.md. The failure must outlive the builder.
TensorFileBuilder EncodeFailure(const RunFailure& failure, std::uint64_t fingerprint);
// UserError unless the file is one of the run with this fingerprint and of a version that we know.
// Whether its numbers fit the environment is not known here.
RunFailure ParseFailure(const TensorFile& file, std::uint64_t fingerprint);

}  // namespace msrl

#endif  // MSRL_RUN_FAILURE_FILE_H_
