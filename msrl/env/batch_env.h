// Several environments stepped at once by a pool of threads.
#ifndef MSRL_ENV_BATCH_ENV_H_
#define MSRL_ENV_BATCH_ENV_H_

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "msrl/env/env.h"

namespace msrl {

// What happens does not depend on the number of threads: every environment has its own state, and
// results are in the order of the environments. The caller's thread works too.
class BatchEnv {
 public:
  // 1 <= threads; more threads than environments are not started. All environments must have the
  // same spec. InvariantError otherwise.
  BatchEnv(std::vector<std::unique_ptr<Env>> envs, int threads);
  // A batch of one.
  explicit BatchEnv(std::unique_ptr<Env> env);
  ~BatchEnv();
  BatchEnv(const BatchEnv&) = delete;
  BatchEnv& operator=(const BatchEnv&) = delete;

  int size() const { return static_cast<int>(envs_.size()); }
  const EnvSpec& spec() const { return envs_[0]->spec(); }
  Env& env(int i) { return *envs_[static_cast<std::size_t>(i)]; }

  // Resets environment i with seeds[i].
  void Reset(std::span<const std::uint64_t> seeds);
  // Steps environment i with actions[i], if running[i]; the result of the others is empty. Valid
  // until the next call. Does not allocate. What an environment throws is thrown here, the first
  // one by index; the others have made their step.
  std::span<const StepResult> Step(std::span<const ActionBuffer> actions,
                                   std::span<const char> running);
  std::span<const StepResult> Step(std::span<const ActionBuffer> actions);

 private:
  enum class Job { kReset, kStep, kStop };

  void Run(Job job);
  void Work();    // takes environments until none is left
  void Worker();  // body of a thread
  void Do(std::size_t i);

  std::vector<std::unique_ptr<Env>> envs_;
  std::vector<StepResult> results_;
  std::vector<std::exception_ptr> errors_;
  std::vector<char> all_running_;

  // the present job
  Job job_ = Job::kReset;
  std::span<const std::uint64_t> seeds_;
  std::span<const ActionBuffer> actions_;
  std::span<const char> running_;

  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<int> busy_{0};
  std::vector<std::thread> workers_;
};

}  // namespace msrl

#endif  // MSRL_ENV_BATCH_ENV_H_
