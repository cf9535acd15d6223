// What the records of a finished run are: their sizes and checksums, written when it finishes.
// Shows damage and changes by hand; whoever wants to deceive can write another one.
#ifndef MSRL_RUN_MANIFEST_H_
#define MSRL_RUN_MANIFEST_H_

#include <filesystem>
#include <string>
#include <vector>

#include "msrl/files/atomic_file.h"

namespace msrl {

inline constexpr const char* kManifestFile = "manifest.json";

// Writes the manifest of the records that are in the folder now.
void WriteManifest(const Folder& run);

// The records of this run that are not as the manifest says; none if there is no manifest (the run
// has not finished, or did before there were any). UserError if the manifest is damaged.
std::vector<std::string> ChangedRecords(const std::filesystem::path& run);
// One line about these.
std::string DescribeChanges(const std::vector<std::string>& records);

}  // namespace msrl

#endif  // MSRL_RUN_MANIFEST_H_
