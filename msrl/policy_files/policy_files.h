// The files that other programs read a policy from.
#ifndef MSRL_POLICY_FILES_POLICY_FILES_H_
#define MSRL_POLICY_FILES_POLICY_FILES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "msrl/files/atomic_file.h"
#include "msrl/policy_files/exported_policy.h"

namespace msrl {

// Where to; empty: not wanted.
struct PolicyFiles {
  std::string onnx;
  std::string header;
  std::string name = "policy";  // of the header's functions
};

struct WrittenFile {
  std::string path;
  std::size_t bytes = 0;
};

// UserError if no file is wanted, or one cannot be made: then none is written.
std::vector<WrittenFile> WritePolicy(const ExportedPolicy& exported, const PolicyFiles& files,
                                     Existing existing);

}  // namespace msrl

#endif  // MSRL_POLICY_FILES_POLICY_FILES_H_
