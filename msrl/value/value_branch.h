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

#include <span>
#include <string>
#include <utility>

#include "msrl/value/matrix_network.h"

namespace msrl {

class ValueBranch : public MatrixNetwork {
 public:
  static constexpr const char* kKind = "value-branch";
  // The header of the file of such a branch. F is in units of reward / reward_scale.
  static ArtefactHeader HeaderOf(int feature_count, const BranchShape& shape,
                                 const BranchInfo& info) {
    return MatrixNetwork::HeaderOf(kKind, feature_count, shape, info);
  }

  ValueBranch(int feature_count, const BranchShape& shape, BranchInfo info)
      : MatrixNetwork(feature_count, shape, /*outputs=*/1, std::move(info)) {}

  // h, width x batch, of the last forward pass with this tape.
  ConstStridedMap Hidden(const MlpTape& tape) const { return network().LastHidden(tape); }
  // Gradients of a loss that sees F, or F and h.
  void Backward(const ConstMatrixRef& d_f, MlpTape& tape, std::span<float> gradients) const {
    network().Backward(d_f, tape, gradients);
  }
  void Backward(const ConstMatrixRef& d_f, const ConstMatrixRef& d_h, MlpTape& tape,
                std::span<float> gradients) const {
    network().BackwardWithHidden(d_f, d_h, tape, gradients);
  }

  // F := factor * F + offset, by the last layer.
  void Rescale(double factor, double offset);

  // The branch that sees the first inputs alone, as if the others always were `rest`.
  ValueBranch WithRestFixed(std::span<const float> rest) const;

  // The contents of an artefact.
  std::string Encode() const { return MatrixNetwork::Encode(kKind); }
  // UserError on anything that is not a whole branch, or that is of another lift.
  static ValueBranch From(const Artefact& artefact, LiftId expected,
                          Alignment alignment = Alignment::kAligned) {
    return ValueBranch(MatrixNetwork::From(artefact, kKind, 1, expected, alignment));
  }

 private:
  explicit ValueBranch(MatrixNetwork network) : MatrixNetwork(std::move(network)) {}
};

}  // namespace msrl

#endif  // MSRL_VALUE_VALUE_BRANCH_H_
