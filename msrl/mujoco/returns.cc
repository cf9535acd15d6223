#include "msrl/mujoco/returns.h"

#include <algorithm>
#include <iterator>

#include "msrl/core/check.h"

namespace msrl {
namespace {

struct Returns {
  const char* id;
  int episodes;  // measured: `msrl envs ID --measure EPISODES`
  double random;
  double still;
  double reference;
  const char* reference_origin;
  std::string_view variant = "";
};

constexpr Returns kReturns[] = {
    {"reacher", 1000, -42.8, -11.53, -3.75, "Gymnasium's threshold"},
    {"reacher-goal", 1000, -12.17, -9.74, 0, "upper bound of the reward"},
    {"reacher-sparse", 1000, 0.91, 0.45, 50, "upper bound of the reward"},
    {"pusher", 1000, -149.6, -54.3, -22.5, "SAC after 1M steps, CleanRL (v4)"},
    {"pusher-push", 1000, -150.7, -55.3, -22.5, "SAC on pusher after 1M steps, CleanRL (v4)"},
    {"pusher-obstacle", 1000, -150.7, -55.3, -22.5, "SAC on pusher after 1M steps, CleanRL (v4)"},
    {"hopper", 1000, 17.54, 150.3, 3542, "SAC after 1M steps, Tianshou"},
    {"hopper-velocity", 1000, 23.7, 158.6, 3000, "upper bound of the reward"},
    {"hopper-terrain", 1000, 17.54, 150.3, 3542, "SAC on hopper after 1M steps, Tianshou"},
    {"walker2d", 1000, 1.87, 95.5, 5007, "SAC after 1M steps, Tianshou"},
    {"walker2d-velocity", 1000, 20.8, 115.5, 3000, "upper bound of the reward"},
    {"walker2d-goal", 1000, 1.87, 95.5, 1500, "upper bound for a goal 4 m ahead"},
    {"walker2d-terrain", 1000, 1.87, 95.5, 5007, "SAC on walker2d after 1M steps, Tianshou"},
    {"ant", 200, -67.7, 993.7, 5850, "SAC after 1M steps, Tianshou"},
    {"antmaze-umaze", 100, 0.02, 0.00, 1, "every episode a success"},
    {"antmaze-umaze", 100, 10.92, 4.95, 700, "upper bound of the reward", "dense, continuing"},
    {"antmaze-medium", 100, 0.01, 0.00, 1, "every episode a success"},
    {"antmaze-large", 100, 0.02, 0.00, 1, "every episode a success"},
    {"humanoid", 1000, 113.4, 198.2, 5489, "SAC after 1M steps, Tianshou"},
    {"humanoid-stand", 1000, 106.4, 185.6, 5000, "upper bound of the reward"},
    {"humanoid-walk", 1000, 82.8, 147.9, 5000, "upper bound of the reward"},
    {"humanoid-direction", 1000, 80.1, 141.4, 5000, "upper bound of the reward"},
    {"pointmaze-umaze", 20000, 0.225, 0.00, 1, "every episode a success"},
    {"pointmaze-medium", 20000, 0.125, 0.00, 1, "every episode a success"},
    {"pointmaze-large", 20000, 0.101, 0.00, 1, "every episode a success"},
};

}  // namespace

void SetMeasuredReturns(EnvSpec& spec, std::string_view variant) {
  const auto* row = std::find_if(std::begin(kReturns), std::end(kReturns), [&](const Returns& r) {
    return r.id == spec.id && r.variant == variant;
  });
  if (row == std::end(kReturns)) {
    MSRL_CHECK(!variant.empty(), "no measured returns of ", spec.id);
    return;
  }
  const std::string where = StrCat(", mean of ", row->episodes, " episodes with seeds from 100000");
  spec.random_return = {row->random, "uniform random actions" + where};
  spec.still_return = {row->still, "zero actions" + where};
  spec.reference_return = {row->reference, row->reference_origin};
}

}  // namespace msrl
