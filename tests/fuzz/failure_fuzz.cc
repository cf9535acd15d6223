// A damaged failure of a run whose checksum does not give it away is refused, or is played again in
// an environment without harm.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "msrl/core/check.h"
#include "msrl/env_list/env_list.h"
#include "msrl/run/failure_file.h"
#include "tests/fuzz/damage.h"

namespace {

constexpr std::uint64_t kRun = 7;
constexpr const char* kEnv = "four-rooms-sparse";

// Of a few steps, from a reset or from a snapshot.
msrl::RunFailure Failure(bool taken_up) {
  msrl::TracedEnv env(msrl::MakeEnv(kEnv));
  env.Reset(3);
  if (taken_up) env.Restore(env.Snapshot());
  msrl::ActionBuffer action(env.spec().action);
  for (int t = 0; t < 3; ++t) env.Step(action.view());
  return {.step = 12,
          .evaluating = taken_up,
          .message = "reward is nan",
          .episode = env.trace(),
          .observation = {env.observation().begin(), env.observation().end()},
          .geometry = {env.geometry().begin(), env.geometry().end()}};
}

std::string GoodFile(bool taken_up) {
  const msrl::RunFailure failure = Failure(taken_up);
  std::string file = msrl::EncodeFailure(failure, kRun).Encode();
  // without the checksum, or nothing would get past it
  file[file.find("msrl_xxh64")] = 'x';
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string good[] = {GoodFile(false), GoodFile(true)};
  static const std::unique_ptr<msrl::Env> env = msrl::MakeEnv(kEnv);
  const std::string bytes = msrl::fuzz::Damaged(good[size % 4 == 1 ? 1 : 0], data, size);
  try {
    const msrl::TensorFile file = msrl::TensorFile::Parse(std::as_bytes(std::span(bytes)), "input");
    const msrl::RunFailure failure = msrl::ParseFailure(file, kRun);
    msrl::PlayAgain(failure.episode, *env, [](const msrl::Action&, const msrl::StepResult&) {});
  } catch (const msrl::UserError&) {
    if (size <= 1) std::abort();  // the good ones
  }
  return 0;
}
