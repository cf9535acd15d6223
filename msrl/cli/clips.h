// Short films of trained agents, for the report's page.
#ifndef MSRL_CLI_CLIPS_H_
#define MSRL_CLI_CLIPS_H_

#include "msrl/cli/commands.h"
#include "msrl/report/exhibits.h"

namespace msrl::cli {

// All clips of a page together have at most so many bytes, each one its share.
inline constexpr std::size_t kMaxClipBytes = 3'000'000;

// Adds to the exhibits, for each task, the beginning of an episode of the finished run with the
// best last evaluation. Needs ffmpeg. Never fails: what goes wrong is a problem.
void AddClips(const report::RunRecords& records, const report::Analysis& analysis,
              const Program& program, report::Exhibits& exhibits);

}  // namespace msrl::cli

#endif  // MSRL_CLI_CLIPS_H_
