#include "msrl/run/runner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "msrl/core/check.h"

namespace msrl {
namespace {

enum Mean : std::size_t { kReturn, kLength, kSuccess };

constexpr double kPaceSeconds = 20.0;  // after which a pace counts a third

double SecondsSince(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - time).count();
}

// Settings come and go with versions; a run keeps those that it was begun with.
std::unique_ptr<Agent> MakeAgentOf(const RunDirectory& directory, const EnvSpec& env,
                                   const Registries& registries) {
  const RunSpec& spec = directory.spec();
  try {
    return registries.agents.Make(spec.agent, env, spec.agent_settings, spec.seed);
  } catch (const UserError& error) {
    throw UserError(StrCat(directory.path().string(), ": ", error.what(),
                           "; finish the run with the msrl that began it (run.json names it)"));
  }
}

std::vector<std::unique_ptr<Env>> MakeEnvList(const RunSpec& spec, const Registries& registries,
                                              int count) {
  std::vector<std::unique_ptr<Env>> envs;
  for (int i = 0; i < count; ++i) envs.push_back(registries.envs.Make(spec.env, spec.env_settings));
  return envs;
}

// Those of a run remember what they did, for the case that it ends there.
BatchEnv MakeTracedEnvs(const RunSpec& spec, const Registries& registries, int count) {
  std::vector<std::unique_ptr<Env>> envs = MakeEnvList(spec, registries, count);
  for (std::unique_ptr<Env>& env : envs) env = std::make_unique<TracedEnv>(std::move(env));
  return BatchEnv(std::move(envs), /*threads=*/1);
}

// Whether a step in it did not return, or came out with what is no number.
bool WentWrong(const TracedEnv& env) {
  const EpisodeTrace& trace = env.trace();
  if (trace.actions.empty()) return !env.observation().allFinite();
  return !trace.reward || !std::isfinite(*trace.reward) || !env.observation().allFinite() ||
         !env.geometry().allFinite();
}

class ScalarSink : public MetricSink {
 public:
  void Add(std::string_view name, double value) override { scalars.emplace_back(name, value); }
  Scalars scalars;
};

}  // namespace

Runner::Runner(RunDirectory& directory, const Registries& registries, RunOptions options)
    : directory_(directory),
      spec_(directory.spec()),
      options_(std::move(options)),
      code_(ThisCode(registries, 0)),
      envs_(MakeTracedEnvs(spec_, registries, 1)),
      eval_envs_(MakeTracedEnvs(spec_, registries,
                                std::min(spec_.eval_episodes, options_.evaluation_envs))),
      agent_(MakeAgentOf(directory, envs_.spec(), registries)),
      training_(*agent_, envs_, {Rng(spec_.seed, "policy")}),
      resets_(spec_.seed, "env"),
      means_({"train/return", "train/length", "train/success"}) {
  if (agent_->wants_simulator()) {
    simulator_ = std::make_unique<Simulator>(registries.envs.Make(spec_.env, spec_.env_settings));
    training_.Lend(0, *simulator_);
  }
  if (const std::optional<TensorFile> checkpoint = ReadCheckpoint()) {
    Load(*checkpoint);
    return;
  }
  if (!spec_.init.empty()) agent_->Initialise(directory_.ReadInit());
  if (!spec_.library.empty()) {
    agent_->TakeSegments(directory_.ReadLibrary(),
                         (directory_.path() / RunDirectory::kStartLibraryFile).string());
  }
  log_ = std::make_unique<MetricsLog>(directory_.path(), LogSizes{});
  training_.Begin(0, resets_.NextU64());
}

void Runner::Visit(const Archive& root) {
  const Archive state = root.Child("run");
  state.Same("step", step_);
  state.Int("episodes", episodes_, 0, step_);
  state.Int("last_eval", last_eval_, -1, step_);
  state.Random("resets", resets_);
  means_.Visit(state.Child("means"));
  training_.Visit(0, state);
  if (simulator_) simulator_->Visit(state.Child("simulator"));
  agent_->Visit(root.Child("agent"));
  LogSizes log;
  if (!state.loading()) log = log_->Sync();
  log.Visit(state.Child("log"));
  if (state.loading()) {
    log_ = std::make_unique<MetricsLog>(directory_.path(), log, options_.lost_lines);
  }
}

std::optional<TensorFile> Runner::ReadCheckpoint() const {
  bool lost = false;
  const auto require_lines = [&](const TensorFile& checkpoint) {
    LogSizes sizes;
    sizes.Visit(Archive(checkpoint).Child("run").Child("log"));
    try {
      MetricsLog::RequireLines(directory_.path(), sizes);
    } catch (const UserError& error) {
      lost = true;
      if (options_.lost_lines == LostLines::kRefuse) throw;
      options_.on_warning(StrCat(error.what(), "; the run continues without what is gone"));
    }
  };
  try {
    return directory_.ReadNewestCheckpoint(options_.on_warning, require_lines);
  } catch (const UserError& error) {
    if (!lost) throw;
    throw UserError(StrCat(error.what(), "; resume --lost-lines continues without what is gone"));
  }
}

void Runner::Load(const TensorFile& checkpoint) {
  step_ = RequireCheckpoint(checkpoint, spec_.Fingerprint());
  const Archive root(checkpoint);
  Visit(root);
  root.RequireAllUsed();
  directory_.SetAsideAfter(step_);
  last_checkpoint_ = step_;
}

void Runner::Checkpoint() {
  TensorFileBuilder file;
  Visit(Archive(file));
  if (const std::string bad = file.BadNumber(); !bad.empty()) throw RunError(bad);
  directory_.WriteCheckpoint(step_, file);
  last_checkpoint_ = step_;
  checkpoint_time_ = std::chrono::steady_clock::now();
}

RunOutcome Runner::Run() {
  // the last evaluation belongs to the budget: without it the run was stopped there
  if (step_ >= spec_.steps && !EvaluationDue()) {
    log_->Sync();  // the manifest must not say what the disk does not hold
    directory_.Finish(step_);
    return RunOutcome::kAlreadyFinished;
  }
  start_ = checkpoint_time_ = progress_time_ = std::chrono::steady_clock::now();
  first_step_ = paced_step_ = step_;
  if (const CodeRecord& last = directory_.code().back(); !last.SameCode(code_)) {
    options_.on_warning(StrCat(directory_.path().string(), " was made by ", last.Describe(),
                               " up to step ", step_, ", it continues with ", code_.Describe(),
                               "; run.json says so"));
    code_.from_step = step_;
    directory_.SetCode(code_);
  }
  directory_.WriteStatus("running", step_);
  log_->Started(step_);
  try {
    const RunOutcome outcome = Loop();
    LogSpeed();
    if (last_checkpoint_ != step_ || outcome == RunOutcome::kFinished) Checkpoint();
    if (outcome == RunOutcome::kFinished) {
      directory_.Finish(step_);
    } else {
      directory_.WriteStatus("interrupted", step_);
    }
    return outcome;
  } catch (const RunError& error) {
    const std::string message = StrCat("step ", step_, ": ", error.what());
    KeepFailure(message);
    directory_.WriteStatus("failed", step_, message);
    throw RunError(message);
  } catch (const std::exception& error) {
    if (dynamic_cast<const UserError*>(&error) == nullptr) KeepFailure(error.what());
    try {
      directory_.WriteStatus("failed", step_, error.what());
    } catch (const UserError&) {
      // the disk may be full; the first error is the one to report
    }
    throw;
  }
}

void Runner::KeepFailure(const std::string& message) {
  // of an evaluation the episode that went wrong; the first if the agent did
  const bool evaluating = evaluation_start_.has_value();
  BatchEnv& envs = evaluating ? eval_envs_ : envs_;
  const auto traced = [&envs](int i) -> const TracedEnv& {
    return dynamic_cast<const TracedEnv&>(envs.env(i));
  };
  int which = 0;
  while (which < envs.size() && !WentWrong(traced(which))) ++which;
  const TracedEnv& env = traced(which % envs.size());
  try {
    directory_.WriteFailure({.step = step_,
                             .evaluating = evaluating,
                             .message = message,
                             .episode = env.trace(),
                             .observation = {env.observation().begin(), env.observation().end()},
                             .geometry = {env.geometry().begin(), env.geometry().end()}});
    options_.on_notice(StrCat((directory_.path() / kFailureFile).string(),
                              " holds the episode in which this happened (command replay)"));
  } catch (const std::exception&) {
    // the first error is the one to report
  }
}

RunOutcome Runner::Loop() {
  for (;;) {
    if (EvaluationDue() && !EvaluateNow()) return RunOutcome::kInterrupted;
    if (step_ >= spec_.steps) return RunOutcome::kFinished;
    if (StopWanted()) return RunOutcome::kInterrupted;
    if (CheckpointDue()) {
      Checkpoint();
      directory_.WriteStatus("running", step_);
    }
    training_.Step(ActMode::kExplore, [this](const PlayedStep& step) { Learn(step); });
    ShowProgress(/*always=*/false);
  }
}

void Runner::Learn(const PlayedStep& step) {
  agent_->Observe(step.experience, step.tracker.carry());
  ++step_;
  agent_->Update();
  if (const std::string notice = agent_->TakeNotice(); !notice.empty()) options_.on_notice(notice);
  if (step.ended()) {
    ++episodes_;
    last_return_ = step.tracker.episode_return();
    means_.Add(kReturn, step.tracker.episode_return());
    means_.Add(kLength, step.tracker.steps());
    if (envs_.spec().has_success) {
      means_.Add(kSuccess, envs_.env(step.env).Success().value_or(false) ? 1.0 : 0.0);
    }
    training_.Begin(step.env, resets_.NextU64());
  }
  if (step_ % spec_.log_every == 0) LogMetrics();
}

void Runner::LogMetrics() {
  ScalarSink sink;
  sink.Add("train/episodes", static_cast<double>(episodes_));
  if (simulator_) sink.Add("train/simulator_steps", static_cast<double>(simulator_->steps()));
  means_.Drain(sink);
  agent_->DrainMetrics(sink);
  log_->Metrics(step_, sink.scalars);
  LogSpeed();
}

void Runner::LogSpeed() {
  if (step_ > first_step_) log_->Speed(step_, step_ - first_step_, Seconds(), EvaluationSeconds());
}

bool Runner::EvaluationDue() const {
  const bool wanted = step_ % spec_.eval_every == 0 || step_ >= spec_.steps;
  return wanted && last_eval_ < step_;
}

bool Runner::EvaluateNow() {
  MeasurePace();
  evaluation_start_ = std::chrono::steady_clock::now();
  const auto stop = [this] {
    ShowProgress(/*always=*/false);
    return StopWanted();
  };
  const std::optional<EvalResult> result =
      Evaluate(*agent_, eval_envs_, spec_.eval_episodes, spec_.seed, StrCat("eval/", step_), stop);
  last_evaluation_seconds_ = SecondsSince(*evaluation_start_);
  evaluation_seconds_ += *last_evaluation_seconds_;
  evaluation_start_.reset();
  if (!result) return false;
  log_->Evaluation(step_, *result, envs_.spec());
  last_eval_ = step_;
  last_eval_return_ = result->MeanReturn();
  // an interruption here must not repeat what is already written
  if (last_checkpoint_ == step_) last_checkpoint_ = -1;
  ShowProgress(/*always=*/true);
  return true;
}

bool Runner::CheckpointDue() const {
  if (last_checkpoint_ == step_) return false;
  if (options_.checkpoint_steps > 0 && step_ > 0 && step_ % options_.checkpoint_steps == 0) {
    return true;
  }
  return SecondsSince(checkpoint_time_) >= options_.checkpoint_seconds;
}

double Runner::Seconds() const { return SecondsSince(start_); }

double Runner::EvaluationSeconds() const {
  return evaluation_seconds_ + (evaluation_start_ ? SecondsSince(*evaluation_start_) : 0.0);
}

void Runner::MeasurePace() {
  const double training = Seconds() - EvaluationSeconds();
  const double seconds = training - paced_seconds_;
  if (step_ == paced_step_ || seconds <= 0.0) return;
  const double fade = std::exp(-seconds / kPaceSeconds);
  pace_steps_ = fade * pace_steps_ + static_cast<double>(step_ - paced_step_);
  pace_seconds_ = fade * pace_seconds_ + seconds;
  paced_step_ = step_;
  paced_seconds_ = training;
}

std::optional<double> Runner::SecondsLeft() const {
  if (pace_steps_ == 0.0 || !last_evaluation_seconds_) return std::nullopt;
  const std::int64_t steps = spec_.steps - step_;
  // those after this step, the one at the end of the budget among them
  const std::int64_t evaluations =
      steps == 0 ? 0 : (spec_.steps - 1) / spec_.eval_every - step_ / spec_.eval_every + 1;
  double seconds = static_cast<double>(steps) * pace_seconds_ / pace_steps_ +
                   static_cast<double>(evaluations) * *last_evaluation_seconds_;
  if (evaluation_start_) {
    seconds += std::max(0.0, *last_evaluation_seconds_ - SecondsSince(*evaluation_start_));
  }
  return seconds;
}

void Runner::ShowProgress(bool always) {
  if (!options_.on_progress) return;
  const auto now = std::chrono::steady_clock::now();
  if (!always && now - progress_time_ < std::chrono::milliseconds(200)) return;
  progress_time_ = now;
  if (!evaluation_start_) MeasurePace();
  RunProgress progress{.step = step_,
                       .steps = spec_.steps,
                       .evaluating = evaluation_start_.has_value(),
                       .seconds = Seconds(),
                       .evaluation_seconds = EvaluationSeconds(),
                       .steps_per_second = {},
                       .seconds_left = SecondsLeft(),
                       .episodes = episodes_,
                       .last_return = last_return_,
                       .last_eval_return = last_eval_return_};
  if (pace_steps_ > 0.0) progress.steps_per_second = pace_steps_ / pace_seconds_;
  options_.on_progress(progress);
}

BatchEnv MakeEnvs(const RunSpec& spec, const Registries& registries, int count, int threads) {
  return BatchEnv(MakeEnvList(spec, registries, count), threads);
}

BatchEnv MakeEvaluationEnvs(const RunSpec& spec, const Registries& registries, int episodes,
                            int threads) {
  return MakeEnvs(spec, registries, std::min(episodes, kMostEvaluationEnvs), threads);
}

std::unique_ptr<Agent> LoadAgent(const RunDirectory& directory, const Registries& registries,
                                 const std::function<void(const std::string&)>& warn) {
  const RunSpec& spec = directory.spec();
  const std::optional<TensorFile> checkpoint = directory.ReadNewestCheckpoint(warn);
  if (!checkpoint) {
    throw UserError(StrCat(directory.path().string(), " has no checkpoint yet"));
  }
  const std::unique_ptr<Env> env = registries.envs.Make(spec.env, spec.env_settings);
  std::unique_ptr<Agent> agent = MakeAgentOf(directory, env->spec(), registries);
  agent->Visit(Archive(*checkpoint).Child("agent"));
  return agent;
}

}  // namespace msrl
