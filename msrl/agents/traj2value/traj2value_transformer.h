// A causal transformer that reads the last steps of an episode and says what is still to come.
// docs/agents/traj2value-transformer.md
#ifndef MSRL_AGENTS_TRAJ2VALUE_TRAJ2VALUE_TRANSFORMER_H_
#define MSRL_AGENTS_TRAJ2VALUE_TRAJ2VALUE_TRANSFORMER_H_

#include <vector>

#include "msrl/agents/host/value_module.h"

namespace msrl {

struct Traj2ValueTransformerShape {
  int head_size = 17;
  int heads = 4;
  int blocks = 3;
  int head_width = 128;

  int width() const { return head_size * heads; }

  template <typename V>
  void Fields(V&& visit) {
    visit("head_size", head_size, "width of one attention head", Between(1, 512));
    visit("heads", heads, "attention heads; their widths together are the token's", Between(1, 64));
    visit("blocks", blocks, "blocks of attention and a perceptron, four tokens wide",
          Between(1, 16));
    visit("head_width", head_width, "hidden layer of the value head", Between(1, 4096));
  }
};

// z_raw = the last state's token after all blocks. Tokens see themselves and earlier ones;
// positions are those within the window.
class Traj2ValueTransformer : public StepwiseModule {
 public:
  static constexpr const char* kKind = "traj2value-transformer";
  using Shape = Traj2ValueTransformerShape;

  Traj2ValueTransformer(const Traj2ValueTransformerShape& shape, const ParameterOptions& options,
                        Rng& rng);

  int context() const override { return kTrainingLength; }
  int z_size() const override { return shape_.width(); }
  Slots ReadAll(StaticGraph& g, const Windows& windows, ParameterUse use) override;
  void RescaleValue(double factor, double offset) override;

 private:
  struct Block {
    NormParameters attention_norm, perceptron_norm;
    LinearParameters qkv, out, wide, narrow;
  };
  Node Apply(StaticGraph& g, Node x, const Block& block, int windows, ParameterUse use) const;

  Traj2ValueTransformerShape shape_;
  LinearParameters token_;
  Parameter position_;  // a column per place in the window
  std::vector<Block> blocks_;
  NormParameters norm_;
  LinearParameters hidden_, value_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_TRAJ2VALUE_TRAJ2VALUE_TRANSFORMER_H_
