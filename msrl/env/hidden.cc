#include "msrl/env/hidden.h"

#include <algorithm>
#include <string>
#include <utility>

#include "msrl/core/text.h"

namespace msrl {

Hidden::Hidden(std::unique_ptr<Env> env, HiddenThing thing)
    : EnvWrapper(std::move(env)),
      thing_(thing),
      spec_(inner().spec()),
      observation_(Eigen::VectorXd::Zero(spec_.observation_size)) {
  if (thing == HiddenThing::kGoal && spec_.goal_entries.empty()) {
    throw UserError(StrCat("hidden=goal: '", spec_.id, "' has no goal that it shows"));
  }
  MSRL_CHECK(thing != HiddenThing::kNothing);
  MSRL_CHECK(spec_.action.kind == ActionKind::kContinuous);
  spec_.description +=
      thing == HiddenThing::kGoal ? "; the goal is hidden" : "; what each action does is hidden";
  spec_.reference_return.reset();
  if (thing == HiddenThing::kGoal) {
    spec_.goal_task.reset();
    // what ends an episode may depend on what is no longer shown
    spec_.terminates = nullptr;
  }
}

void Hidden::Reset(std::uint64_t seed) {
  inner().Reset(seed);
  if (thing_ == HiddenThing::kGains) {
    Rng rng(seed, "hidden-gains");
    for (int i = 0; i < spec_.action.size; ++i) {
      const double size = rng.Uniform(kSmallestGain, 1.0);
      gain_[static_cast<std::size_t>(i)] = rng.Bernoulli(0.5) ? size : -size;
    }
  }
  Publish();
}

StepResult Hidden::Step(const Action& action) {
  StepResult result;
  if (thing_ == HiddenThing::kGains) {
    std::array<double, kMaxActionSize> values{};
    const auto used = std::span(values).first(static_cast<std::size_t>(spec_.action.size));
    RequireClipped(spec_, action, used);
    for (std::size_t i = 0; i < used.size(); ++i) used[i] *= gain_[i];
    result = inner().Step(Action::Continuous(used));
  } else {
    result = inner().Step(action);
  }
  Publish();
  return result;
}

void Hidden::Publish() {
  observation_ = inner().observation();
  const EnvView shown = inner().geometry();
  std::copy(shown.begin(), shown.end(), geometry_.begin());
  if (thing_ != HiddenThing::kGoal) return;
  for (const int entry : spec_.goal_entries) observation_[entry] = 0.0;
  geometry_[2] = geometry_[3] = geometry_[7] = 0.0;
}

std::vector<std::byte> Hidden::Snapshot() const {
  ByteWriter writer;
  writer.U8(static_cast<std::uint8_t>(thing_));
  for (int i = 0; i < spec_.action.size; ++i) {
    writer.Double(gain_[static_cast<std::size_t>(i)]);
  }
  writer.Blob(inner().Snapshot());
  return writer.Take();
}

void Hidden::Restore(std::span<const std::byte> bytes) {
  const std::string what = StrCat(spec_.id, ": snapshot");
  ByteReader reader(bytes, what);
  if (reader.U8() != static_cast<std::uint8_t>(thing_)) {
    throw UserError(StrCat(what, " is of a task with another 'hidden'"));
  }
  std::array<double, kMaxActionSize> gain{};
  for (int i = 0; i < spec_.action.size; ++i) {
    double& each = gain[static_cast<std::size_t>(i)];
    each = reader.FiniteDouble();
    if (std::abs(each) > 1.0) throw UserError(StrCat(what, " holds a gain of ", each));
  }
  const auto inside = reader.Blob();
  reader.RequireEnd();
  inner().Restore(inside);
  gain_ = gain;
  Publish();
}

std::map<std::string, double> Hidden::HiddenFacts() const {
  std::map<std::string, double> facts = inner().HiddenFacts();
  if (thing_ == HiddenThing::kGains) {
    for (int i = 0; i < spec_.action.size; ++i) {
      facts[StrCat("gain", i)] = gain_[static_cast<std::size_t>(i)];
    }
  }
  return facts;
}

EnvEntry WithHidden(const EnvEntry& entry) {
  EnvEntry outer = entry;
  outer.make = [make = entry.make](std::span<const std::string> options) -> std::unique_ptr<Env> {
    HiddenOptions own;
    std::vector<std::string> others;
    for (const std::string& option : options) {
      if (option.starts_with("hidden=")) {
        SetField(own, option);
      } else {
        others.push_back(option);
      }
    }
    std::unique_ptr<Env> env = make(others);
    if (own.hidden == HiddenThing::kNothing) return env;
    return std::make_unique<Hidden>(std::move(env), own.hidden);
  };
  outer.options = [options = entry.options] {
    std::vector<ConfigField> fields = options();
    for (ConfigField& field : ListFields(HiddenOptions{})) fields.push_back(std::move(field));
    return fields;
  };
  return outer;
}

}  // namespace msrl
