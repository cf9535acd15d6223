// The interface of every environment, source or target.
#ifndef MSRL_ENV_ENV_H_
#define MSRL_ENV_ENV_H_

#include <Eigen/Core>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/bytes.h"
#include "msrl/env/spec.h"

namespace msrl {

class Painter;

// A view of the environment's own numbers, valid until its next non-const call.
using EnvView = Eigen::Map<const Eigen::VectorXd>;

// The two ends of an episode are independent facts: values bootstrap on !terminated.
struct StepResult {
  double reward = 0.0;
  bool terminated = false;  // set by the environment: no future from here
  bool truncated = false;   // set by TimeLimit: we stopped looking
};

// An action with its own storage.
class ActionBuffer {
 public:
  explicit ActionBuffer(const ActionSpec& spec);

  Action view() const;
  int index() const { return index_; }
  void set_index(int index) { index_ = index; }
  std::span<double> values() { return std::span(values_).first(size_); }
  std::span<const double> values() const { return std::span(values_).first(size_); }

 private:
  ActionKind kind_;
  int index_ = 0;
  std::size_t size_ = 0;
  std::array<double, kMaxActionSize> values_{};
};

// Uniform over the actions, or over [-1, 1]^n.
void DrawUniformAction(const ActionSpec& spec, Rng& rng, ActionBuffer& out);

// What is known to be good in the present state. Answers depend on the state alone.
class Expert {
 public:
  virtual ~Expert() = default;
  virtual void Best(ActionBuffer& action) = 0;
  // As harmful as one action can be told to be.
  virtual void Worst(ActionBuffer& action) = 0;
  // The discounted sum of reward / reward_scale from here under the expert, without a time limit.
  virtual double Value() = 0;
};

class Env {
 public:
  virtual ~Env() = default;

  virtual const EnvSpec& spec() const = 0;
  // Starts the episode that the seed determines, instance included.
  virtual void Reset(std::uint64_t seed) = 0;
  // Does not allocate. UserError on an action that does not fit the spec.
  virtual StepResult Step(const Action& action) = 0;
  virtual EnvView observation() const = 0;  // spec().observation_size
  virtual EnvView geometry() const = 0;     // kGeometrySize

  // All that later steps depend on. Restore is a UserError on bytes of another environment or other
  // options, and then changes nothing.
  virtual std::vector<std::byte> Snapshot() const = 0;
  virtual void Restore(std::span<const std::byte> bytes) = 0;

  // Whether the task is solved in the present state; empty where that is no question.
  virtual std::optional<bool> Success() const { return std::nullopt; }
  // Why the simulation failed in the present episode, which then has terminated; empty if it did
  // not.
  virtual std::string fault() const { return {}; }
  // Step limit of the present episode, at most spec().step_limit.
  virtual int horizon() const { return spec().step_limit; }
  // The layout of the present instance: equal text, same layout. Its hash decides the split.
  virtual std::string InstanceText() const { return spec().id; }
  // What decides the values of the present instance without being visible in a matrix, by name.
  virtual std::map<std::string, double> HiddenFacts() const { return {}; }
  // A picture of the present state, if the environment has one.
  virtual bool has_sketch() const { return false; }
  virtual void Sketch(Painter& /*painter*/) const {}
  // Null if there is none.
  virtual Expert* expert() { return nullptr; }
  // The environment inside all wrappers.
  virtual Env& Unwrapped() { return *this; }
};

// The concrete environment behind the wrappers, or null if it is of another type.
template <typename Concrete>
Concrete* UnwrapAs(Env& env) {
  return dynamic_cast<Concrete*>(&env.Unwrapped());
}

// What all our own environments share: storage for what they show, and the frame of a snapshot.
class EnvBase : public Env {
 public:
  const EnvSpec& spec() const override { return spec_; }
  EnvView observation() const override { return EnvView(observation_.data(), observation_.size()); }
  EnvView geometry() const override { return EnvView(geometry_.data(), kGeometrySize); }
  std::vector<std::byte> Snapshot() const override;
  void Restore(std::span<const std::byte> bytes) override;
  void Reset(std::uint64_t seed) override;

 protected:
  // `options` is any text that differs if the options differ.
  EnvBase(EnvSpec spec, std::string_view options);

  // Makes the instance and its first state.
  virtual void Begin(std::uint64_t seed) = 0;
  // The state within the instance. ReadState reads to the end of the reader, then calls
  // EnsureInstance, and only then takes over what it has read.
  virtual void WriteState(ByteWriter& writer) const = 0;
  virtual void ReadState(ByteReader& reader, std::uint64_t seed) = 0;
  // Fills observation_ and geometry_ from instance and state.
  virtual void Publish() = 0;

  // The seed of the present episode.
  std::uint64_t seed() const { return seed_; }
  // Whether the present instance is the seed's.
  bool HasInstance(std::uint64_t seed) const { return started_ && seed == seed_; }
  // Begin(seed), unless HasInstance(seed).
  void EnsureInstance(std::uint64_t seed);

  EnvSpec spec_;
  Eigen::VectorXd observation_;
  std::array<double, kGeometrySize> geometry_{};

 private:
  std::uint64_t options_id_;
  std::uint64_t seed_ = 0;
  bool started_ = false;
};

}  // namespace msrl

#endif  // MSRL_ENV_ENV_H_
