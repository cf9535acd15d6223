#include "msrl/run/runner.h"

#include <utility>

#include "msrl/core/check.h"

namespace msrl {
namespace {

enum Mean : std::size_t { kReturn, kLength, kSuccess };

class ScalarSink : public MetricSink {
 public:
  void Add(std::string_view name, double value) override {
    scalars.emplace_back(std::string(name), value);
  }
  Scalars scalars;
};

}  // namespace

Runner::Runner(RunDirectory& directory, const RunParts& parts, RunOptions options)
    : directory_(directory),
      spec_(directory.spec()),
      options_(std::move(options)),
      env_(parts.make_env(spec_.env, spec_.env_settings)),
      eval_env_(parts.make_env(spec_.env, spec_.env_settings)),
      agent_(
          MakeAgent(parts.find_agent(spec_.agent), env_->spec(), spec_.agent_settings, spec_.seed)),
      tracker_(env_->spec(), CompactLift(agent_->lift_kind())),
      action_(env_->spec().action),
      resets_(spec_.seed, "env"),
      policy_(spec_.seed, "policy"),
      means_({"train/return", "train/length", "train/success"}) {
  if (!options_.on_warning) options_.on_warning = [](const std::string&) {};
  if (!options_.on_notice) options_.on_notice = [](const std::string&) {};
  const std::optional<TensorFile> checkpoint = directory_.ReadNewestCheckpoint(options_.on_warning);
  if (checkpoint) {
    Load(*checkpoint);
    return;
  }
  if (!spec_.init.empty()) {
    const std::string contents = directory_.ReadInit();
    agent_->Initialise(std::as_bytes(std::span(contents)), "the run's initialisation");
  }
  log_ = std::make_unique<MetricsLog>(directory_.path(), LogSizes{});
  env_->Reset(resets_.NextU64());
  tracker_.Begin(*env_);
}

void Runner::Visit(const Archive& root) {
  const Archive state = root.Child("run");
  state.Same("step", step_);
  state.Int("episodes", episodes_, 0, step_);
  state.Int("last_eval", last_eval_, -1, step_);
  state.Random("resets", resets_);
  state.Random("policy", policy_);
  means_.Visit(state.Child("means"));
  std::vector<std::byte> env;
  if (!state.loading()) env = env_->Snapshot();
  state.Bytes("env", env);
  if (state.loading()) env_->Restore(env);
  tracker_.Visit(state.Child("tracker"), *env_);
  agent_->Visit(root.Child("agent"));
  LogSizes log;
  if (!state.loading()) log = log_->Sync();
  log.Visit(state.Child("log"));
  if (state.loading()) log_ = std::make_unique<MetricsLog>(directory_.path(), log);
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
  directory_.WriteCheckpoint(step_, file);
  last_checkpoint_ = step_;
  checkpoint_time_ = std::chrono::steady_clock::now();
}

RunOutcome Runner::Run() {
  // the last evaluation belongs to the budget: without it the run was stopped there
  if (step_ >= spec_.steps && !EvaluationDue()) {
    directory_.WriteStatus("finished", step_);
    return RunOutcome::kAlreadyFinished;
  }
  start_ = checkpoint_time_ = progress_time_ = std::chrono::steady_clock::now();
  first_step_ = step_;
  directory_.WriteStatus("running", step_);
  log_->Started(step_);
  try {
    const RunOutcome outcome = Loop();
    if (last_checkpoint_ != step_ || outcome == RunOutcome::kFinished) Checkpoint();
    directory_.WriteStatus(outcome == RunOutcome::kFinished ? "finished" : "interrupted", step_);
    return outcome;
  } catch (const RunError& error) {
    const std::string message = StrCat("step ", step_, ": ", error.what());
    directory_.WriteStatus("failed", step_, message);
    throw RunError(message);
  } catch (const std::exception& error) {
    try {
      directory_.WriteStatus("failed", step_, error.what());
    } catch (const UserError&) {
      // the disk may be full; the first error is the one to report
    }
    throw;
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
    StepOnce();
    if (step_ % spec_.log_every == 0) LogMetrics();
    ShowProgress(/*always=*/false);
  }
}

void Runner::StepOnce() {
  agent_->Act(tracker_.situation(), ActMode::kExplore, policy_, action_);
  const StepResult result = env_->Step(action_.view());
  const Experience experience = tracker_.Advance(action_.view(), result, *env_);
  agent_->Observe(experience);
  ++step_;
  agent_->Update();
  if (const std::string notice = agent_->TakeNotice(); !notice.empty()) options_.on_notice(notice);
  if (!result.terminated && !result.truncated) return;
  ++episodes_;
  last_return_ = tracker_.episode_return();
  means_.Add(kReturn, tracker_.episode_return());
  means_.Add(kLength, tracker_.steps());
  if (env_->spec().has_success) {
    means_.Add(kSuccess, env_->Success().value_or(false) ? 1.0 : 0.0);
  }
  env_->Reset(resets_.NextU64());
  tracker_.Begin(*env_);
}

void Runner::LogMetrics() {
  ScalarSink sink;
  sink.Add("train/episodes", static_cast<double>(episodes_));
  means_.Drain(sink);
  agent_->DrainMetrics(sink);
  log_->Metrics(step_, sink.scalars);
  const double seconds = Seconds();
  log_->Speed(step_, seconds, static_cast<double>(step_ - first_step_) / seconds);
}

bool Runner::EvaluationDue() const {
  const bool wanted = step_ % spec_.eval_every == 0 || step_ >= spec_.steps;
  return wanted && last_eval_ < step_;
}

bool Runner::EvaluateNow() {
  const std::optional<EvalResult> result = Evaluate(
      *agent_, *eval_env_, spec_.eval_episodes, spec_.seed, StrCat("eval/", step_), options_.stop);
  if (!result) return false;
  log_->Evaluation(step_, *result, env_->spec());
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
  const auto now = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(now - checkpoint_time_).count() >=
         options_.checkpoint_seconds;
}

double Runner::Seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Runner::ShowProgress(bool always) {
  if (!options_.on_progress) return;
  const auto now = std::chrono::steady_clock::now();
  if (!always && now - progress_time_ < std::chrono::milliseconds(200)) return;
  progress_time_ = now;
  options_.on_progress(
      {step_, spec_.steps, first_step_, Seconds(), episodes_, last_return_, last_eval_return_});
}

std::unique_ptr<Agent> LoadAgent(const RunDirectory& directory, const RunParts& parts,
                                 const std::function<void(const std::string&)>& warn) {
  const RunSpec& spec = directory.spec();
  const std::optional<TensorFile> checkpoint = directory.ReadNewestCheckpoint(warn);
  if (!checkpoint) {
    throw UserError(StrCat(directory.path().string(), " has no checkpoint yet"));
  }
  const std::unique_ptr<Env> env = parts.make_env(spec.env, spec.env_settings);
  std::unique_ptr<Agent> agent =
      MakeAgent(parts.find_agent(spec.agent), env->spec(), spec.agent_settings, spec.seed);
  agent->Visit(Archive(*checkpoint).Child("agent"));
  return agent;
}

}  // namespace msrl
