// The transferable module: F_eta(Z), a perceptron on matrix features, with its last hidden layer
// h_eta(Z) (paper, Section 4). Q(o, Z, a) = F(Z) + R(o, a, h(Z)) uses both.
//
//   ValueBranch branch =
//       ValueBranch::From(Artefact::Read("branch.safetensors"), CompactLift()->id());
//   MatrixFeatures features(CompactLift(), branch.info().features);
//   features.Compute(z, column);
//   const auto f = branch.Forward(batch, tape);        // 1 x batch
//   const auto h = branch.Hidden(tape);                // width x batch
//   branch.Backward(d_f, d_h, tape, gradients);
#ifndef MSRL_VALUE_VALUE_BRANCH_H_
#define MSRL_VALUE_VALUE_BRANCH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "msrl/artefacts/artefact.h"
#include "msrl/core/lift.h"
#include "msrl/core/rng.h"
#include "msrl/nn/mlp.h"
#include "msrl/value/matrix_features.h"

namespace msrl {

// What a branch speaks about, and where it comes from.
struct BranchInfo {
  LiftId lift;
  std::string lift_kind = "compact";
  MatrixFeatureOptions features;
  ArtefactTexts made;  // provenance (ArtefactHeader)

  bool operator==(const BranchInfo&) const = default;
};

struct BranchShape {
  static constexpr int kMaxWidth = 4096;
  static constexpr int kMaxLayers = 8;
  int width = 128;
  int layers = 2;
  bool layer_norm = true;
  bool operator==(const BranchShape&) const = default;
};

// Loading a branch of another lift is an error unless the caller says so aloud.
enum class Alignment { kAligned, kUnaligned };

class ValueBranch {
 public:
  static constexpr const char* kKind = "value-branch";
  // The header of the file of such a branch. F is in units of reward / reward_scale.
  static ArtefactHeader HeaderOf(int feature_count, const BranchShape& shape,
                                 const BranchInfo& info);

  // Input width is the features' size. UserError on impossible sizes.
  ValueBranch(int feature_count, const BranchShape& shape, BranchInfo info);

  const BranchInfo& info() const { return info_; }
  BranchInfo& info() { return info_; }
  const BranchShape& shape() const { return shape_; }
  int feature_count() const { return network_.spec().input; }
  const MlpSpec& spec() const { return network_.spec(); }
  Mlp& network() { return network_; }
  const Mlp& network() const { return network_; }

  void Init(Rng& rng);
  // F, 1 x batch; `features` is feature_count x batch.
  ConstMatrixMap Forward(const ConstMatrixRef& features, MlpTape& tape) const {
    return network_.Forward(features, tape);
  }
  // h, width x batch, of the last forward pass with this tape.
  ConstStridedMap Hidden(const MlpTape& tape) const { return network_.LastHidden(tape); }
  // Gradients of a loss that sees F, or F and h.
  void Backward(const ConstMatrixRef& d_f, MlpTape& tape, std::span<float> gradients) const {
    network_.Backward(d_f, tape, gradients);
  }
  void Backward(const ConstMatrixRef& d_f, const ConstMatrixRef& d_h, MlpTape& tape,
                std::span<float> gradients) const {
    network_.BackwardWithHidden(d_f, d_h, tape, gradients);
  }

  // F := factor * F + offset, by the last layer.
  void Rescale(double factor, double offset);
  // Whether each input was ever other than zero in the sources; all true at first.
  const std::vector<std::uint8_t>& active() const { return active_; }
  // Inputs that never were get zero weights: what was not learned must not speak in the target.
  void Silence(std::vector<std::uint8_t> active);

  // The branch that sees the first inputs alone, as if the others always were `rest`.
  ValueBranch WithRestFixed(std::span<const float> rest) const;

  // The contents of an artefact.
  std::string Encode() const;
  // UserError on anything that is not a whole branch, or that is of another lift.
  static ValueBranch From(const Artefact& artefact, LiftId expected,
                          Alignment alignment = Alignment::kAligned);

 private:
  BranchInfo info_;
  BranchShape shape_;
  Mlp network_;
  std::vector<std::uint8_t> active_;
};

}  // namespace msrl

#endif  // MSRL_VALUE_VALUE_BRANCH_H_
