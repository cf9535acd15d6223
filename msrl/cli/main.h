// The command line as a function.
#ifndef MSRL_CLI_MAIN_H_
#define MSRL_CLI_MAIN_H_

#include "msrl/run/registries.h"

namespace msrl {

// All commands of msrl for a program with environments and agents of its own:
//
//   int main(int argc, char** argv) {
//     msrl::Registries registries = msrl::BuiltinRegistries();
//     registries.envs.Add(msrl::MakeEnvEntry<MyEnv>("my-env"));
//     return msrl::Main(argc, argv, registries);
//   }
//
// Returns the exit code: 0 done, 1 a defect of ours or a check that failed, 2 a mistake in the
// input, 3 runs of a sweep failed, 6 a number went bad in training, 7 no space on the disk, 73
// another process is at the task, 75 stopped with a checkpoint. A sweep starts the program again
// for every run, with the command `task`: call this before anything that only one process may do.
int Main(int argc, char** argv, const Registries& registries);

}  // namespace msrl

#endif  // MSRL_CLI_MAIN_H_
