// The step lift: one transition (x, a, r, x') becomes a vector psi in R^m (paper, Section 2).
#ifndef MSRL_CORE_LIFT_H_
#define MSRL_CORE_LIFT_H_

#include <Eigen/Core>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/enum_names.h"

namespace msrl {

using Eigen::Index;

enum class LiftKind {
  kFull,             // [c, delta, xi (x) c, xi (x) delta, r, 1], m = 2d + 2qd + 2
  kCompact,          // [x, dx, a, r, 1], m = 2d + q + 2
  kCompactNoAction,  // [x, dx, r, 1]: the paper's ablation "without action blocks"
  kCompactNoReward,  // [x, dx, a, 1]: the paper's ablation "without reward coupling"
  kCompactEffort,    // [x, dx, a, e, r, 1] with e = |a|^2: what quadratic action costs are told by
  // [x, dx, a, e, ee, er, rr, p, r, 1] with the products of e and r, and p = |x'|^2 over the first
  // two slots: what a distance is told by (descriptor.md, "A distance is a regression")
  kCompactSquares,
};

constexpr auto EnumNames(LiftKind) {
  return Names("full", "compact", "compact-no-action", "compact-no-reward", "compact-effort",
               "compact-squares");
}
// Those of the aligned geometry, which agents and branches can have.
inline constexpr LiftKind kCompactLifts[] = {LiftKind::kCompact, LiftKind::kCompactNoAction,
                                             LiftKind::kCompactNoReward, LiftKind::kCompactEffort,
                                             LiftKind::kCompactSquares};
inline std::string_view LiftKindName(LiftKind kind) { return EnumName(kind); }
// UserError on an unknown name.
LiftKind LiftKindFromName(std::string_view name);

// One coordinate of the aligned geometry: what it means and what it was divided by.
struct GeometrySlot {
  std::string name;
  double scale = 1.0;
};

struct LiftSpec {
  LiftKind kind = LiftKind::kCompact;
  Index d = 8;   // dimension of the embedded observation
  Index q = 10;  // dimension of the embedded action
  // Empty (names x0, x1, ... with scale 1) or one entry per dimension.
  std::vector<GeometrySlot> slots;
};

// How a coordinate change (S, U) acts on a block.
enum class BlockRole {
  kGeometry,        // by S
  kAction,          // by U
  kActionGeometry,  // by U (x) S
  kInvariant,       // not at all: reward and constant; effort, if U is orthogonal
};

struct LiftBlock {
  std::string name;
  Index offset = 0;
  Index size = 0;
  BlockRole role = BlockRole::kInvariant;
};

// The identity of a lift: a hash of kind, dimensions, block order, slots and scales. Matrices,
// libraries and files with different ids must not be mixed.
struct LiftId {
  std::uint64_t value = 0;
  std::string ToString() const;
  bool operator==(const LiftId&) const = default;
};

// Immutable; shared by all matrices that were made with it.
class Lift {
 public:
  using Ptr = std::shared_ptr<const Lift>;
  using ConstVec = Eigen::Ref<const Eigen::VectorXd>;

  // Inputs beyond this magnitude are refused: products of two channels and sums of their squares
  // stay finite below it.
  static constexpr double kMaxMagnitude = 1e75;

  // UserError on impossible dimensions or a wrong number of slots.
  static Ptr Make(LiftSpec spec);

  Index d() const { return spec_.d; }
  Index q() const { return spec_.q; }
  Index m() const { return m_; }
  LiftKind kind() const { return spec_.kind; }
  LiftId id() const { return id_; }
  const LiftSpec& spec() const { return spec_; }
  const std::vector<LiftBlock>& blocks() const { return blocks_; }
  // Offset of the constant channel "1": always the last.
  Index constant_offset() const { return m_ - 1; }

  bool HasBlock(std::string_view name) const;
  // UserError that names the nearest block.
  const LiftBlock& FindBlock(std::string_view name) const;
  // A name per row and column of the matrix, e.g. "c[1]" or "xi_c[0,2]" (action, geometry).
  std::vector<std::string> Labels() const;
  // One line for error messages: "compact d=8 q=10 [x 8, dx 8, a 10, r 1, 1 1] id=...".
  std::string Describe() const;

  // psi = lift of the transition; sizes d, q, 1, d and m. Does not allocate.
  // UserError if an input is not finite or too large, with the channel named.
  void Apply(const ConstVec& x, const ConstVec& a, double r, const ConstVec& x_next,
             Eigen::Ref<Eigen::VectorXd> psi) const;

 private:
  explicit Lift(LiftSpec spec);
  bool has_effort() const {
    return spec_.kind == LiftKind::kCompactEffort || spec_.kind == LiftKind::kCompactSquares;
  }
  void RefuseBadInput(const ConstVec& x, const ConstVec& a, double r, const ConstVec& x_next) const;
  std::string SlotName(Index i) const;

  LiftSpec spec_;
  std::vector<LiftBlock> blocks_;
  Index m_ = 0;
  LiftId id_;
};

// UserError that shows both lifts, unless they are the same.
void RequireSameLift(const Lift& a, const Lift& b, std::string_view what);

}  // namespace msrl

#endif  // MSRL_CORE_LIFT_H_
