// A policy as C source in one file.
#ifndef MSRL_POLICY_FILES_POLICY_HEADER_H_
#define MSRL_POLICY_FILES_POLICY_HEADER_H_

#include <string>

#include "msrl/policy_files/exported_policy.h"

namespace msrl {

// C99 that needs nothing but math.h. It has, after `name`,
//   #define NAME_OBSERVATION_SIZE, NAME_OUTPUT_SIZE, NAME_ACTION_SIZE
//   void name(const float* observation, float* action);
//   void name_outputs(const float* observation, float* outputs);   before the action is chosen
//   float name_self_test(void);   largest difference from what the agent did in a few observations
// UserError if the name is not a name of C.
std::string PolicyHeader(const ExportedPolicy& exported, const std::string& name = "policy");

}  // namespace msrl

#endif  // MSRL_POLICY_FILES_POLICY_HEADER_H_
