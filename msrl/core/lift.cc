#include "msrl/core/lift.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "msrl/core/check.h"

namespace msrl {
namespace {

constexpr Index kMaxDimension = 4096;

bool Acceptable(double value) { return std::abs(value) <= Lift::kMaxMagnitude; }  // false for NaN

bool AllAcceptable(const Lift::ConstVec& v) {
  bool good = true;
  for (Index i = 0; i < v.size(); ++i) good &= Acceptable(v[i]);
  return good;
}

// ee, er, rr and p.
Eigen::Vector4d Squares(const Lift::ConstVec& a, double r, const Lift::ConstVec& x_next) {
  const double e = a.squaredNorm();
  return {e * e, e * r, r * r, x_next.head<2>().squaredNorm()};
}

}  // namespace

LiftKind LiftKindFromName(std::string_view name) { return ParseEnum<LiftKind>("lift", name); }

std::string LiftId::ToString() const { return Hex(value); }

Lift::Ptr Lift::Make(LiftSpec spec) { return Ptr(new Lift(std::move(spec))); }

Lift::Lift(LiftSpec spec) : spec_(std::move(spec)) {
  const Index d = spec_.d;
  const Index q = spec_.q;
  if (d < 1 || q < 0 || d > kMaxDimension || q > kMaxDimension) {
    throw UserError(StrCat("a lift needs 1 <= d <= ", kMaxDimension,
                           " and 0 <= q <= ", kMaxDimension, ", got d=", d, " q=", q));
  }
  if (!spec_.slots.empty() && static_cast<Index>(spec_.slots.size()) != d) {
    throw UserError(
        StrCat("a lift with d=", d, " needs ", d, " geometry slots, got ", spec_.slots.size()));
  }
  for (const GeometrySlot& slot : spec_.slots) {
    if (!(slot.scale > 0.0) || !std::isfinite(slot.scale)) {
      throw UserError(StrCat("geometry slot '", slot.name, "' needs a positive finite scale, got ",
                             slot.scale));
    }
  }

  if (spec_.kind == LiftKind::kCompactSquares && d < 2) {
    throw UserError(StrCat("the lift compact-squares needs d >= 2, got d=", d));
  }
  const auto add = [this](const char* name, Index size, BlockRole role) {
    blocks_.push_back({name, m_, size, role});
    m_ += size;
  };
  if (spec_.kind == LiftKind::kFull) {
    add("c", d, BlockRole::kGeometry);
    add("delta", d, BlockRole::kGeometry);
    add("xi_c", q * d, BlockRole::kActionGeometry);
    add("xi_delta", q * d, BlockRole::kActionGeometry);
  } else {
    add("x", d, BlockRole::kGeometry);
    add("dx", d, BlockRole::kGeometry);
    if (spec_.kind != LiftKind::kCompactNoAction) add("a", q, BlockRole::kAction);
    if (has_effort()) add("e", 1, BlockRole::kInvariant);
    if (spec_.kind == LiftKind::kCompactSquares) {
      for (const char* name : {"ee", "er", "rr", "p"}) add(name, 1, BlockRole::kInvariant);
    }
  }
  if (spec_.kind != LiftKind::kCompactNoReward) add("r", 1, BlockRole::kInvariant);
  add("1", 1, BlockRole::kInvariant);

  std::string identity = StrCat(LiftKindName(spec_.kind), " d=", d, " q=", q);
  for (const LiftBlock& block : blocks_) identity += StrCat(" ", block.name, ":", block.size);
  for (Index i = 0; i < d; ++i) {
    const double scale = spec_.slots.empty() ? 1.0 : spec_.slots[static_cast<std::size_t>(i)].scale;
    identity += StrCat(" ", SlotName(i), "/", scale);
  }
  id_ = LiftId{StableHash(identity)};
}

std::string Lift::SlotName(Index i) const {
  return spec_.slots.empty() ? StrCat("x", i) : spec_.slots[static_cast<std::size_t>(i)].name;
}

bool Lift::HasBlock(std::string_view name) const {
  return std::any_of(blocks_.begin(), blocks_.end(),
                     [name](const LiftBlock& block) { return block.name == name; });
}

const LiftBlock& Lift::FindBlock(std::string_view name) const {
  std::vector<std::string> known;
  for (const LiftBlock& block : blocks_) {
    if (block.name == name) return block;
    known.push_back(block.name);
  }
  throw UserError(StrCat("the ", LiftKindName(spec_.kind), " lift has no block '", name, "'",
                         DidYouMean(name, known)));
}

std::vector<std::string> Lift::Labels() const {
  std::vector<std::string> labels;
  for (const LiftBlock& block : blocks_) {
    for (Index i = 0; i < block.size; ++i) {
      if (block.role == BlockRole::kInvariant) {
        labels.push_back(block.name);
      } else if (block.role == BlockRole::kActionGeometry) {
        labels.push_back(StrCat(block.name, "[", i / spec_.d, ",", i % spec_.d, "]"));
      } else {
        labels.push_back(StrCat(block.name, "[", i, "]"));
      }
    }
  }
  return labels;
}

std::string Lift::Describe() const {
  std::string text = StrCat(LiftKindName(spec_.kind), " d=", spec_.d, " q=", spec_.q, " [");
  for (const LiftBlock& block : blocks_) {
    if (&block != &blocks_.front()) text += ", ";
    text += StrCat(block.name, " ", block.size);
  }
  text += "]";
  for (const GeometrySlot& slot : spec_.slots) text += StrCat(" ", slot.name, "/", slot.scale);
  return StrCat(text, " id=", id_.ToString());
}

void Lift::Apply(const ConstVec& x, const ConstVec& a, double r, const ConstVec& x_next,
                 Eigen::Ref<Eigen::VectorXd> psi) const {
  const Index d = spec_.d;
  const Index q = spec_.q;
  MSRL_CHECK_EQ(psi.size(), m_);
  if (x.size() != d || a.size() != q || x_next.size() != d || !AllAcceptable(x) ||
      !AllAcceptable(a) || !Acceptable(r) || !AllAcceptable(x_next) ||
      (has_effort() && !Acceptable(a.squaredNorm())) ||
      (spec_.kind == LiftKind::kCompactSquares && !AllAcceptable(Squares(a, r, x_next))))
      [[unlikely]] {
    RefuseBadInput(x, a, r, x_next);
  }

  auto first = psi.segment(0, d);   // c or x
  auto second = psi.segment(d, d);  // delta or dx
  second = x_next - x;
  if (spec_.kind == LiftKind::kFull) {
    first = 0.5 * (x + x_next);
    for (Index k = 0; k < q; ++k) {
      psi.segment(2 * d + k * d, d) = a[k] * first;
      psi.segment(2 * d + (q + k) * d, d) = a[k] * second;
    }
  } else {
    first = x;
    if (spec_.kind != LiftKind::kCompactNoAction) psi.segment(2 * d, q) = a;
    if (has_effort()) psi[2 * d + q] = a.squaredNorm();
    if (spec_.kind == LiftKind::kCompactSquares) {
      psi.segment<4>(2 * d + q + 1) = Squares(a, r, x_next);
    }
  }
  if (spec_.kind != LiftKind::kCompactNoReward) psi[m_ - 2] = r;
  psi[m_ - 1] = 1.0;
}

void Lift::RefuseBadInput(const ConstVec& x, const ConstVec& a, double r,
                          const ConstVec& x_next) const {
  const auto require_size = [](const char* name, Index got, Index wanted) {
    if (got != wanted) {
      throw UserError(StrCat(name, " has ", got, " entries, the lift needs ", wanted));
    }
  };
  require_size("x", x.size(), spec_.d);
  require_size("a", a.size(), spec_.q);
  require_size("next x", x_next.size(), spec_.d);

  const auto require_value = [](const std::string& channel, double value) {
    if (!Acceptable(value)) {
      throw UserError(
          StrCat(channel, " is ", value, std::isfinite(value) ? ", too large to be squared" : ""));
    }
  };
  const auto x_name = [this](const char* prefix, Index i) {
    std::string name = StrCat(prefix, "[", i, "]");
    if (!spec_.slots.empty()) name += StrCat(" '", SlotName(i), "'");
    return name;
  };
  for (Index i = 0; i < spec_.d; ++i) require_value(x_name("x", i), x[i]);
  for (Index i = 0; i < spec_.q; ++i) require_value(StrCat("a[", i, "]"), a[i]);
  if (has_effort()) require_value("effort |a|^2", a.squaredNorm());
  require_value("reward", r);
  for (Index i = 0; i < spec_.d; ++i) require_value(x_name("next x", i), x_next[i]);
  if (spec_.kind == LiftKind::kCompactSquares) {
    const Eigen::Vector4d squares = Squares(a, r, x_next);
    require_value("effort squared", squares[0]);
    require_value("effort times reward", squares[1]);
    require_value("reward squared", squares[2]);
    require_value("next position squared", squares[3]);
  }
  MSRL_CHECK(false, "input was refused without a reason");
}

void RequireSameLift(const Lift& a, const Lift& b, std::string_view what) {
  if (a.id() == b.id()) return;
  throw UserError(StrCat(what, ": the lifts differ: ", a.Describe(), " and ", b.Describe()));
}

}  // namespace msrl
