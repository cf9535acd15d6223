// The critics of agents that learn from a replay, with or without the prefix matrix.
//
//   Q_i(o, a)    = R_i([o; a])                    plain
//   Q_i(o, Z, a) = F(Z) + R_i([h(Z); o; a])       with a matrix-value branch (F, h)
//
// One branch serves all heads. It does not depend on the action, so it is evaluated once per state.
// The last layer of R starts near zero: at first the critic is the branch.
#ifndef MSRL_AGENTS_COMMON_CRITIC_H_
#define MSRL_AGENTS_COMMON_CRITIC_H_

#include <optional>
#include <string>
#include <vector>

#include "msrl/agents/common/networks.h"
#include "msrl/value/value_branch.h"

namespace msrl {

// How a critic sees Z.
struct BranchSettings {
  Lift::Ptr lift;
  MatrixFeatureOptions features;
  BranchShape shape;
  bool hidden_input = true;  // whether R sees h(Z)
  bool trained = true;
  double rate = 0.3;            // learning rate, as a share of the critic's
  double anchor = 0.0;          // lambda of lambda |eta - eta_src|^2
  double residual_scale = 0.1;  // of R's last layer at the start
};

struct CriticSizes {
  int observation = 0;
  int action = 0;  // 0: one output per discrete action
  int outputs = 1;
  int heads = 2;
  std::vector<int> hidden;
  bool layer_norm = false;
  int batch = 0;
  double initial_value = 0.0;  // added to every Q at the start
};

class Critic {
 public:
  Critic(const CriticSizes& sizes, const std::optional<BranchSettings>& branch);

  // R and the branch, then their targets as copies.
  void Init(Rng& rng);
  // Puts `source` in the place of the branch, of its target and of the anchor. UserError if the
  // shapes differ.
  void InitBranch(const ValueBranch& source);

  // From now on the branch stays as it is, and its target is the same.
  void FreezeBranch();
  // Makes a frozen F quieter; what it said is R's to learn. A silent one costs nothing.
  void QuietBranch(double factor);

  std::int64_t parameter_count() const;
  bool has_branch() const { return branch_.has_value(); }
  // Rows of the features below; 0 without a branch.
  int feature_count() const { return has_branch() ? branch_->feature_count() : 0; }

  // The actions of the next call, one column per state: to be filled in.
  auto actions() { return input_.bottomRows(sizes_.action); }

  // All are (heads * outputs) x batch, valid until the next call. Features are ignored without a
  // branch. `Q` and `QOfActions` remember what `Learn` and `ActionGradient` need.
  const Eigen::MatrixXf& TargetQ(const ConstMatrixRef& observation, const ConstMatrixRef& features);
  const Eigen::MatrixXf& Q(const ConstMatrixRef& observation, const ConstMatrixRef& features);
  // Of other actions in the states of the last Q, with the F and h that it had.
  const Eigen::MatrixXf& QOfActions(MemberRange heads);

  // One Adam step on a loss with d loss / d Q = d_q; targets follow if tau > 0. RunError if a
  // gradient is not finite.
  void Learn(const Eigen::MatrixXf& d_q, double learning_rate, double tau);
  // d loss / d action after QOfActions.
  void ActionGradient(const ConstMatrixRef& d_q, MatrixRef d_action);

  // For choosing actions: Q of the first head (outputs x states) of at most kMaxCandidates states,
  // without touching what training needs. Valid until the next call.
  static constexpr int kMaxCandidates = 64;
  ConstMatrixMap QNow(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                      const ConstMatrixRef& action);

  const Mlp& network() const { return residual_; }  // R
  const Mlp& target_network() const { return residual_target_; }
  const ValueBranch& branch() const { return *branch_; }
  const ValueBranch& target_branch() const { return *branch_target_; }
  const std::optional<BranchSettings>& branch_settings() const { return settings_; }

  void Visit(const Archive& state);

 private:
  bool BranchSpeaks() const { return branch_ && !branch_silent_; }
  void LearnBranch(double learning_rate, double tau);

  CriticSizes sizes_;
  std::optional<BranchSettings> settings_;
  int h_;  // rows of h(Z) in the input of R
  MlpSpec spec_;
  Mlp residual_, residual_target_;
  std::optional<ValueBranch> branch_, branch_target_;
  bool branch_learns_;
  bool branch_silent_ = false;  // F = 0, and R does not see h
  FloatBuffer source_;          // eta_src; empty unless anchored
  Adam adam_;
  std::optional<Adam> branch_adam_;

  // workspace
  MlpTape tape_, now_tape_;
  std::optional<MlpTape> branch_tape_, now_branch_tape_;
  FloatBuffer gradients_, branch_gradients_;
  Eigen::MatrixXf input_, now_input_;  // [h; o; a]
  Eigen::MatrixXf q_, now_q_, f_, d_f_, d_h_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_COMMON_CRITIC_H_
