// Perceptrons on matrix features, and their files: what value branches and goal readings share.
#ifndef MSRL_VALUE_MATRIX_NETWORK_H_
#define MSRL_VALUE_MATRIX_NETWORK_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/artefacts/artefact.h"
#include "msrl/core/lift.h"
#include "msrl/nn/mlp.h"
#include "msrl/value/matrix_features.h"

namespace msrl {

// What a network speaks about, and where it comes from.
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

// Loading a network of another lift is an error unless the caller says so aloud.
enum class Alignment { kAligned, kUnaligned };

class MatrixNetwork {
 public:
  // Input width is the features' size. UserError on impossible sizes.
  MatrixNetwork(int feature_count, const BranchShape& shape, int outputs, BranchInfo info);
  virtual ~MatrixNetwork() = default;
  MatrixNetwork(const MatrixNetwork&) = default;
  MatrixNetwork& operator=(const MatrixNetwork&) = default;
  MatrixNetwork(MatrixNetwork&&) = default;
  MatrixNetwork& operator=(MatrixNetwork&&) = default;

  const BranchInfo& info() const { return info_; }
  BranchInfo& info() { return info_; }
  const BranchShape& shape() const { return shape_; }
  int feature_count() const { return network_.spec().input; }
  const MlpSpec& spec() const { return network_.spec(); }
  Mlp& network() { return network_; }
  const Mlp& network() const { return network_; }

  void Init(Rng& rng) { network_.Init(rng); }
  // outputs x batch; `features` is feature_count x batch.
  ConstMatrixMap Forward(const ConstMatrixRef& features, MlpTape& tape) const {
    return network_.Forward(features, tape);
  }

  // Whether each input was ever other than zero in the sources; all true at first.
  const std::vector<std::uint8_t>& active() const { return active_; }
  // Inputs that never were get zero weights: what was not learned must not speak in the target.
  void Silence(std::vector<std::uint8_t> active);

 protected:
  static ArtefactHeader HeaderOf(std::string_view kind, int feature_count, const BranchShape& shape,
                                 const BranchInfo& info);
  // The contents of an artefact.
  std::string Encode(std::string_view kind) const;
  // UserError on anything that is not a whole network of the kind, or that is of another lift.
  static MatrixNetwork From(const Artefact& artefact, std::string_view kind, int outputs,
                            LiftId expected, Alignment alignment);

 private:
  BranchInfo info_;
  BranchShape shape_;
  Mlp network_;
  std::vector<std::uint8_t> active_;
};

}  // namespace msrl

#endif  // MSRL_VALUE_MATRIX_NETWORK_H_
