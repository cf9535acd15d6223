// What the policy sees beside o: nothing, the last steps, features of Z, or where Z says that a
// hidden goal is. The base learns on observations that are longer by it, and need not know.
#ifndef MSRL_AGENTS_MSRL_SIGHT_H_
#define MSRL_AGENTS_MSRL_SIGHT_H_

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "msrl/agents/common/critic_agent.h"
#include "msrl/value/goal_reading.h"

namespace msrl {

enum class SightKind { kObservation, kFrames, kMatrix, kReading };
constexpr auto EnumNames(SightKind) { return Names("observation", "frames", "matrix", "reading"); }

struct SightSettings {
  SightKind kind = SightKind::kObservation;
  int frames = 4;

  template <typename V>
  void Fields(V&& visit) {
    visit("sight", kind,
          "what the policy sees: o alone, also the last steps (o, a, r), also features of Z, or "
          "also where Z says that the goal is (needs a goal reading to start from)");
    visit("sight_frames", frames, "how many of the last steps (frames)", Between(1, 64));
  }
};

// What seeing needs to remember of an episode, and where what is seen lies.
struct Seen {
  Seen(const Lift::Ptr& lift, int observation_size, int frame_numbers, int action_size);
  void Begin();
  void Visit(const Archive& state);

  // Valid until the next call with these.
  struct Picture {
    explicit Picture(const Lift::Ptr& lift, int observation_size)
        : observation(Eigen::VectorXd::Zero(observation_size)), matrix(lift) {}
    Situation View(int step) const;

    Eigen::VectorXd observation;
    std::array<double, kGeometrySize> geometry{};
    SegmentMatrix matrix;
  };
  Picture before, after;
  int after_step = -1;  // the step of `after`, which is what is seen then; -1: none

  // frames: (o, a, r) of the last steps, newest first, and the step that is not among them yet
  std::vector<double> frames;
  std::vector<double> last_observation, last_action;
  double reward_sum = 0.0;  // up to that step
  int noted_step = -1;      // the step at which those were seen; -1: none
};

class Sight {
 public:
  // `spec` is the environment's. UserError on what does not go together.
  Sight(const EnvSpec& spec, const SightSettings& settings, const Lift::Ptr& lift,
        const MatrixFeatureOptions& features);

  bool plain() const { return settings_.kind == SightKind::kObservation; }
  SightKind kind() const { return settings_.kind; }
  int extra() const { return extra_; }
  // The environment as the base sees it.
  const EnvSpec& seen_spec() const { return seen_spec_; }
  // The environment as plans see it: features are those of imagined matrices, which come later.
  const EnvSpec& planned_spec() const {
    return settings_.kind == SightKind::kReading ? seen_spec_ : spec_;
  }
  // UserError unless sight=reading.
  void SetReading(GoalReading reading);
  bool has_reading() const { return reading_.has_value(); }
  // The reading with its shape: an agent that is read need not have been initialised.
  void Visit(const Archive& state);

  Seen MakeSeen() const;
  // What is seen of a situation, before an action is chosen; fills seen.before.
  Situation See(const Situation& situation, Seen& seen);
  // The action that was chosen there.
  void NoteAction(const Action& action, Seen& seen) const;
  // What is seen of the step's end; fills seen.after. `experience` is the environment's.
  Situation SeeAfter(const Experience& experience, Seen& seen);
  // As plans see it, of a situation that was seen.
  Situation ForPlans(const Situation& situation, const Situation& seen) const;

  // Observations of imagined states, as the base would see them, with features of their matrices.
  ConstMatrixRef Extend(const ConstMatrixRef& observation, const ConstMatrixRef& features);

 private:
  void Fill(const Situation& situation, std::span<const double> frames, Seen::Picture& picture);
  void PushFrame(std::span<const double> observation, std::span<const double> action, double reward,
                 std::vector<double>& frames) const;
  double RewardSum(const SegmentMatrix& matrix) const;

  SightSettings settings_;
  EnvSpec spec_, seen_spec_;
  Lift::Ptr lift_;
  MatrixFeatures features_;
  int n_, m_, extra_ = 0;
  std::optional<GoalReading> reading_;
  std::optional<MlpTape> tape_;
  Eigen::MatrixXf column_;            // features of one matrix
  std::vector<double> frames_ahead_;  // workspace of SeeAfter
  Eigen::MatrixXf extended_;
};

// A base that is asked about states by planners, which know o and Z but not how it sees them.
class SightedValues : public ActionValuer {
 public:
  SightedValues(CriticAgent& base, Sight& sight) : base_(base), sight_(sight) {}

  void ActionValues(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                    const ConstMatrixRef& action, std::span<float> q) override {
    base_.ActionValues(sight_.Extend(observation, features), features, action, q);
  }
  void StateValues(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                   std::span<float> v) override {
    base_.StateValues(sight_.Extend(observation, features), features, v);
  }

 private:
  CriticAgent& base_;
  Sight& sight_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_MSRL_SIGHT_H_
