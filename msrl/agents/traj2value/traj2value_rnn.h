// A recurrent network that reads the last steps of an episode and says what is still to come.
// docs/agents/traj2value-rnn.md
#ifndef MSRL_AGENTS_TRAJ2VALUE_TRAJ2VALUE_RNN_H_
#define MSRL_AGENTS_TRAJ2VALUE_TRAJ2VALUE_RNN_H_

#include "msrl/agents/host/value_module.h"

namespace msrl {

struct Traj2ValueRnnShape {
  int token_width = 128;
  int memory_width = 172;
  int head_width = 128;

  template <typename V>
  void Fields(V&& visit) {
    visit("token_width", token_width, "width of what the memory is given", Between(1, 4096));
    visit("memory_width", memory_width, "width of the GRU", Between(1, 4096));
    visit("head_width", head_width, "hidden layer of the value head", Between(1, 4096));
  }
};

// z_raw = h, the state of a GRU that was zero before the first state of the window.
class Traj2ValueRnn : public StepwiseModule {
 public:
  static constexpr const char* kKind = "traj2value-rnn";
  using Shape = Traj2ValueRnnShape;

  Traj2ValueRnn(const Traj2ValueRnnShape& shape, const ParameterOptions& options, Rng& rng);

  int context() const override { return kTrainingLength; }
  int z_size() const override { return shape_.memory_width; }
  Slots ReadAll(StaticGraph& g, const Windows& windows, ParameterUse use) override;
  void RescaleValue(double factor, double offset) override;

 private:
  Traj2ValueRnnShape shape_;
  LinearParameters token_;
  NormParameters norm_;
  GruParameters memory_;
  LinearParameters hidden_, value_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_TRAJ2VALUE_TRAJ2VALUE_RNN_H_
