// A policy as a model of ONNX, made and checked by the onnx library (docs/decisions/037).
#ifndef MSRL_POLICY_FILES_POLICY_ONNX_H_
#define MSRL_POLICY_FILES_POLICY_ONNX_H_

#include <string>

#include "msrl/policy_files/exported_policy.h"

namespace msrl {

// The bytes of a model with the input "observation" (N x size, float) and the outputs "action"
// (N x size, float; discrete: N indices, int64) and, if discrete, "outputs" (N x actions, float).
// UserError if this build is without the onnx library.
std::string PolicyOnnx(const ExportedPolicy& exported);

}  // namespace msrl

#endif  // MSRL_POLICY_FILES_POLICY_ONNX_H_
