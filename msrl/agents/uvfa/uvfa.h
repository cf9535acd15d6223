// Universal value function approximator (Schaul et al. 2015): V(x, c) = phi(x) . psi(c) / 8 + b,
// with a stream for the state and one for what is wanted. docs/agents/uvfa.md
#ifndef MSRL_AGENTS_UVFA_UVFA_H_
#define MSRL_AGENTS_UVFA_UVFA_H_

#include "msrl/agents/host/value_module.h"

namespace msrl {

struct UvfaShape {
  int stream_width = 256;
  int stream_features = 64;

  template <typename V>
  void Fields(V&& visit) {
    visit("stream_width", stream_width, "two hidden layers of both streams", Between(1, 4096));
    visit("stream_features", stream_features, "outputs of both streams, which are multiplied",
          Between(1, 4096));
  }
};

// z_raw = phi(x). The state stream does not see the goal's slots: where the goal is, is the other
// stream's to say.
class Uvfa : public StepwiseModule {
 public:
  static constexpr const char* kKind = "uvfa";
  static constexpr bool kReadsActions = false;
  using Shape = UvfaShape;

  Uvfa(const UvfaShape& shape, const ParameterOptions& options, Rng& rng);

  int context() const override { return 1; }
  int z_size() const override { return shape_.stream_features; }
  Slots ReadAll(StaticGraph& g, const Windows& windows, ParameterUse use) override;
  void RescaleValue(double factor, double offset) override;

 private:
  UvfaShape shape_;
  MlpParameters state_, goal_;
  Parameter bias_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_UVFA_UVFA_H_
