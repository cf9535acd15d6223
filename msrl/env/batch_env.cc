#include "msrl/env/batch_env.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "msrl/core/check.h"

namespace msrl {
namespace {

// A batch takes some hundred microseconds and being woken up to fifty: looking for a while before
// sleeping is what makes a second thread worth it.
constexpr std::chrono::microseconds kPatience{200};
constexpr int kLooksPerClock = 100;

template <typename T>
void WaitWhile(const std::atomic<T>& value, T old) {
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
    }
  } while (std::chrono::steady_clock::now() - start < kPatience);
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

BatchEnv::BatchEnv(std::vector<std::unique_ptr<Env>> envs, int threads)
    : envs_(std::move(envs)),
      results_(envs_.size()),
      errors_(envs_.size()),
      all_running_(envs_.size(), 1) {
  MSRL_CHECK(!envs_.empty());
  MSRL_CHECK_GE(threads, 1);
  for (const auto& env : envs_) MSRL_CHECK_EQ(env->spec().id, spec().id);
  const int workers = std::min(threads, size()) - 1;
  for (int i = 0; i < workers; ++i) workers_.emplace_back([this] { Worker(); });
}

BatchEnv::BatchEnv(std::unique_ptr<Env> env)
    : BatchEnv(
          [&env] {
            std::vector<std::unique_ptr<Env>> one;
            one.push_back(std::move(env));
            return one;
          }(),
          1) {}

BatchEnv::~BatchEnv() {
  Run(Job::kStop);
  for (std::thread& worker : workers_) worker.join();
}

void BatchEnv::Reset(std::span<const std::uint64_t> seeds) {
  MSRL_CHECK_EQ(seeds.size(), envs_.size());
  seeds_ = seeds;
  Run(Job::kReset);
}

std::span<const StepResult> BatchEnv::Step(std::span<const ActionBuffer> actions) {
  return Step(actions, all_running_);
}

std::span<const StepResult> BatchEnv::Step(std::span<const ActionBuffer> actions,
                                           std::span<const char> running) {
  MSRL_CHECK_EQ(actions.size(), envs_.size());
  MSRL_CHECK_EQ(running.size(), envs_.size());
  actions_ = actions;
  running_ = running;
  Run(Job::kStep);
  return results_;
}

void BatchEnv::Run(Job job) {
  job_ = job;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  if (job == Job::kStop) return;
  Work();
  for (int busy = busy_.load(std::memory_order_acquire); busy != 0;
       busy = busy_.load(std::memory_order_acquire)) {
    WaitWhile(busy_, busy);
  }
  for (std::exception_ptr& error : errors_) {
    if (!error) continue;
    const std::exception_ptr first = error;
    std::fill(errors_.begin(), errors_.end(), nullptr);
    std::rethrow_exception(first);
  }
}

void BatchEnv::Worker() {
  for (std::uint64_t seen = 0;; ++seen) {
    WaitWhile(generation_, seen);
    if (job_ == Job::kStop) return;
    Work();
    if (busy_.fetch_sub(1, std::memory_order_release) == 1) busy_.notify_one();
  }
}

void BatchEnv::Work() {
  for (std::size_t i = next_.fetch_add(1); i < envs_.size(); i = next_.fetch_add(1)) {
    try {
      Do(i);
    } catch (...) {
      errors_[i] = std::current_exception();
    }
  }
}

void BatchEnv::Do(std::size_t i) {
  if (job_ == Job::kReset) {
    envs_[i]->Reset(seeds_[i]);
    return;
  }
  results_[i] = running_[i] != 0 ? envs_[i]->Step(actions_[i].view()) : StepResult{};
}

}  // namespace msrl
