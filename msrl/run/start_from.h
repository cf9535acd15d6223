// Runs that start from something pretrained.
#ifndef MSRL_RUN_START_FROM_H_
#define MSRL_RUN_START_FROM_H_

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "msrl/artefacts/artefact.h"
#include "msrl/memory/segment_library.h"
#include "msrl/run/run_spec.h"

namespace msrl {

// Sets what the agent must be set to, to hold such an artefact. UserError if it takes none of the
// kind. `unaligned` says aloud that it is of another lift.
void SetFor(const ArtefactHeader& header, bool unaligned, const Registries& registries,
            RunSpec& spec);

// Makes `spec` start from the artefact: settings and hash. All that can be wrong with it is a
// UserError here, before the run exists.
void StartFrom(const Artefact& artefact, bool unaligned, const Registries& registries,
               RunSpec& spec);

// The segment library in a file, or that of a run's newest checkpoint. UserError if there is none;
// warns of checkpoints that had to be passed over.
SegmentLibrary ReadSegments(const std::filesystem::path& place,
                            const std::function<void(const std::string&)>& warn);
// The same as the contents of its file.
std::string SegmentsFile(const std::filesystem::path& place,
                         const std::function<void(const std::string&)>& warn);

// Makes `spec` start with the segments of a library, given as the contents of its file. All that
// can be wrong with it is a UserError here, before the run exists.
void StartWithSegments(std::string_view library, std::string_view source,
                       const Registries& registries, RunSpec& spec);

// The provenance of this program: version and commit.
ArtefactTexts ProgramTexts();

}  // namespace msrl

#endif  // MSRL_RUN_START_FROM_H_
