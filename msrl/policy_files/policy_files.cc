#include "msrl/policy_files/policy_files.h"

#include <utility>

#include "msrl/core/check.h"
#include "msrl/policy_files/policy_header.h"
#include "msrl/policy_files/policy_onnx.h"

namespace msrl {

std::vector<WrittenFile> WritePolicy(const ExportedPolicy& exported, const PolicyFiles& files,
                                     Existing existing) {
  std::vector<std::pair<std::string, std::string>> wanted;  // path, contents
  if (!files.onnx.empty()) wanted.emplace_back(files.onnx, PolicyOnnx(exported));
  if (!files.header.empty()) wanted.emplace_back(files.header, PolicyHeader(exported, files.name));
  if (wanted.empty()) throw UserError("nothing to write: name a file for ONNX, a C header or both");
  for (const auto& [path, contents] : wanted) RequireWritable(path, existing);
  std::vector<WrittenFile> written;
  for (const auto& [path, contents] : wanted) {
    WriteFileAtomically(path, contents, existing);
    written.push_back({path, contents.size()});
  }
  return written;
}

}  // namespace msrl
