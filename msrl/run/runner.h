// The training loop. It never names an agent or an environment.
#ifndef MSRL_RUN_RUNNER_H_
#define MSRL_RUN_RUNNER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "msrl/agents/play.h"
#include "msrl/run/metrics_log.h"
#include "msrl/run/run_directory.h"

namespace msrl {

struct RunProgress {
  std::int64_t step = 0;
  std::int64_t steps = 0;
  bool evaluating = false;
  double seconds = 0.0;                    // since this process began
  double evaluation_seconds = 0.0;         // of these
  std::optional<double> steps_per_second;  // of training, without evaluations; lately
  std::optional<double> seconds_left;      // at the latest pace of both
  std::int64_t episodes = 0;
  std::optional<double> last_return;       // of the last training episode
  std::optional<double> last_eval_return;  // mean
};

inline constexpr int kMostEvaluationEnvs = 16;

// How a run is carried out: nothing here changes its results.
struct RunOptions {
  std::int64_t checkpoint_steps = 0;  // 0: by time alone
  double checkpoint_seconds = 300.0;
  // Called a few times per second, also in evaluations, and after each of them.
  std::function<void(const RunProgress&)> on_progress;
  std::function<void(const std::string&)> on_warning = [](const std::string&) {};
  // What the agent has to tell, and where the episode is that ended the run.
  std::function<void(const std::string&)> on_notice = [](const std::string&) {};
  // Asked at every step, also in evaluations.
  std::function<bool()> stop;
  // What is missing in the files of metrics can be had again from an older checkpoint; without one
  // the run ends here, or goes on with a gap in them.
  LostLines lost_lines = LostLines::kRefuse;
  // At most so many episodes of an evaluation in lockstep, each in an environment of its own.
  int evaluation_envs = kMostEvaluationEnvs;
};

enum class RunOutcome { kFinished, kAlreadyFinished, kInterrupted };

class Runner {
 public:
  // Takes up the run where its newest checkpoint is, or at the beginning. UserError on a checkpoint
  // that does not fit. The directory, opened for writing, must outlive this.
  Runner(RunDirectory& directory, const Registries& registries, RunOptions options);

  // Plays on to the budget, then checkpoints. If asked to stop, checkpoints and returns
  // kInterrupted. RunError (a bad number, with the step) and UserError (e.g. a full disk) leave the
  // last good checkpoint; all but UserErrors also what the step saw (failure_file.h).
  RunOutcome Run();

  std::int64_t step() const { return step_; }
  const Agent& agent() const { return *agent_; }

 private:
  void Visit(const Archive& root);
  std::optional<TensorFile> ReadCheckpoint() const;
  void Load(const TensorFile& checkpoint);
  void Checkpoint();
  RunOutcome Loop();
  void Learn(const PlayedStep& step);
  void LogMetrics();
  void LogSpeed();
  bool EvaluationDue() const;
  bool EvaluateNow();  // false if it was stopped
  bool CheckpointDue() const;
  void ShowProgress(bool always);
  void KeepFailure(const std::string& message);
  bool StopWanted() const { return options_.stop && options_.stop(); }
  double Seconds() const;
  double EvaluationSeconds() const;
  void MeasurePace();
  std::optional<double> SecondsLeft() const;

  RunDirectory& directory_;
  const RunSpec spec_;
  RunOptions options_;
  CodeRecord code_;  // this program
  BatchEnv envs_;    // of training: one
  BatchEnv eval_envs_;
  std::unique_ptr<Agent> agent_;
  Lockstep training_;
  std::unique_ptr<Simulator> simulator_;  // null: the agent wants none
  Rng resets_;
  MetricMeans means_;
  std::unique_ptr<MetricsLog> log_;

  std::int64_t step_ = 0;
  std::int64_t episodes_ = 0;
  std::int64_t last_eval_ = -1;  // step of the last evaluation

  // of this process alone
  std::int64_t first_step_ = 0;
  std::int64_t last_checkpoint_ = -1;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point checkpoint_time_;
  std::chrono::steady_clock::time_point progress_time_;
  std::optional<std::chrono::steady_clock::time_point> evaluation_start_;  // while it lasts
  double evaluation_seconds_ = 0.0;                                        // of those that are over
  std::optional<double> last_evaluation_seconds_;
  // steps and seconds of training, fading: their quotient is the latest pace
  double pace_steps_ = 0.0, pace_seconds_ = 0.0;
  std::int64_t paced_step_ = 0;  // what has gone into them
  double paced_seconds_ = 0.0;
  std::optional<double> last_return_;
  std::optional<double> last_eval_return_;
};

// So many environments of a run.
BatchEnv MakeEnvs(const RunSpec& spec, const Registries& registries, int count, int threads = 1);
// For evaluations of so many episodes in lockstep.
BatchEnv MakeEvaluationEnvs(const RunSpec& spec, const Registries& registries, int episodes,
                            int threads = 1);

// The agent of a run as its newest checkpoint has it.
std::unique_ptr<Agent> LoadAgent(const RunDirectory& directory, const Registries& registries,
                                 const std::function<void(const std::string&)>& warn);

}  // namespace msrl

#endif  // MSRL_RUN_RUNNER_H_
