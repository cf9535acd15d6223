#include "msrl/agents/ppo/ppo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "msrl/testing/agent_update.h"
#include "msrl/testing/archived.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas

constexpr int kSteps = 16;
constexpr std::uint64_t kSeed = 5;

PpoConfig SmallConfig() {
  PpoConfig config;
  config.hidden_width = 6;
  config.rollout_steps = kSteps;
  config.minibatch_size = 8;
  config.epochs = 3;
  config.learning_rate = 0.03;
  config.gamma = 0.9;
  config.entropy_weight = 0.01;
  config.normalize_observations = false;
  config.normalize_rewards = false;
  return config;
}

// A rollout with a termination and a truncation in the middle, as the agent saw it.
struct Story {
  std::vector<Doubles> observation, next_observation, action;
  Doubles reward;
  std::vector<bool> terminated, truncated;
};

Story Play(Ppo& agent, const EnvSpec& spec, const PpoConfig& config, double reward_size = 1.0) {
  const Lift::Ptr lift = CompactLift();
  const SegmentMatrix matrix(lift);
  const Doubles geometry(kGeometrySize);
  const Doubles code(kActionCodeSize);
  auto world = [rng = Rng(3, "world"), &spec]() mutable {
    Doubles values(static_cast<std::size_t>(spec.observation_size));
    for (double& value : values) value = static_cast<float>(rng.Normal());
    return values;
  };
  Rng rewards(3, "rewards");
  Rng policy(7, "policy");
  Rng again(7, "policy");  // what the agent draws
  ActionBuffer buffer(spec.action);
  const std::unique_ptr<Carry> carry = agent.MakeCarry();
  Story story;
  Doubles now = world();
  const auto view = [&](const Doubles& values) {
    return Situation{EnvView(values.data(), static_cast<Eigen::Index>(values.size())),
                     EnvView(geometry.data(), kGeometrySize), matrix, 0};
  };
  for (int t = 0; t < kSteps; ++t) {
    const Doubles log_std =
        spec.action.kind == ActionKind::kContinuous
            ? Saved(agent, "log_std", static_cast<std::size_t>(spec.action.size))
            : Doubles{};
    agent.Act({view(now), *carry, policy, buffer}, ActMode::kExplore);
    const Doubles next = world();
    Doubles action{static_cast<double>(buffer.index())};
    if (spec.action.kind == ActionKind::kContinuous) {
      // the environment gets the sample clipped, learning uses it as it was drawn
      const PlainNet actor{.sizes = {spec.observation_size, 6, 6, spec.action.size},
                           .hidden = Tanh};
      action = actor(AsDoubles(agent.actor().parameters()), now);
      for (std::size_t i = 0; i < action.size(); ++i) {
        action[i] += std::exp(log_std[i]) * again.Normal();
        if (config.normalize_observations) continue;  // the mean is another
        EXPECT_NEAR(buffer.values()[i], std::min(std::max(action[i], -1.0), 1.0), Tol(1e-6));
      }
    }
    const double reward = static_cast<float>(reward_size * rewards.Normal());
    const bool terminated = t == 4;
    const bool truncated = t == 10;
    agent.Observe({.before = view(now),
                   .action = buffer.view(),
                   .action_code = code,
                   .reward = 100.0 * reward,
                   .scaled_reward = reward,
                   .psi = {},
                   .after = view(next),
                   .terminated = terminated,
                   .truncated = truncated},
                  *carry);
    if (terminated || truncated) carry->Begin();
    story.observation.push_back(now);
    story.next_observation.push_back(next);
    story.action.push_back(action);
    story.reward.push_back(reward);
    story.terminated.push_back(terminated);
    story.truncated.push_back(truncated);
    now = terminated || truncated ? world() : next;
  }
  return story;
}

// The definition: A_t = sum_k (gamma lambda)^k delta_{t+k} to the end of the episode.
Doubles PlainAdvantages(const Story& story, const Doubles& values, const Doubles& next_values,
                        double gamma, double lambda) {
  Doubles advantages(story.reward.size());
  for (std::size_t t = 0; t < story.reward.size(); ++t) {
    double weight = 1.0;
    for (std::size_t k = t; k < story.reward.size(); ++k) {
      const double next = story.terminated[k] ? 0.0 : next_values[k];
      advantages[t] += weight * (story.reward[k] + gamma * next - values[k]);
      if (story.terminated[k] || story.truncated[k]) break;
      weight *= gamma * lambda;
    }
  }
  return advantages;
}

double PlainLogProb(ActionKind kind, const Doubles& head, const Doubles& log_std,
                    const Doubles& action) {
  double sum = 0.0;
  if (kind == ActionKind::kDiscrete) {
    for (const double logit : head) sum += std::exp(logit);
    return head[static_cast<std::size_t>(action[0])] - std::log(sum);
  }
  for (std::size_t i = 0; i < head.size(); ++i) {
    sum += LogNormal(action[i], head[i], std::exp(log_std[i]));
  }
  return sum;
}

double PlainEntropy(ActionKind kind, const Doubles& head, const Doubles& log_std) {
  double entropy = 0.0;
  if (kind == ActionKind::kDiscrete) {
    for (std::size_t a = 0; a < head.size(); ++a) {
      const double log_p = PlainLogProb(kind, head, {}, {static_cast<double>(a)});
      entropy -= std::exp(log_p) * log_p;
    }
    return entropy;
  }
  for (const double s : log_std)
    entropy += s + 0.5 * std::log(2.0 * std::numbers::pi * std::numbers::e);
  return entropy;
}

void CompareUpdate(ActionKind kind, bool clip_value) {
  const EnvSpec spec = SmallSpec(kind, 3);
  PpoConfig config = SmallConfig();
  config.clip_value = clip_value;
  Ppo agent(spec, config, kSeed);
  const PlainNet actor{.sizes = {3, 6, 6, 3}, .hidden = Tanh};
  const PlainNet critic{.sizes = {3, 6, 6, 1}, .hidden = Tanh};
  const std::size_t stds = kind == ActionKind::kContinuous ? 3 : 0;
  // all that is trained, one after the other
  Doubles w = AsDoubles(agent.actor().parameters());
  const std::size_t actor_size = w.size();
  w.resize(actor_size + stds, 0.0);
  w = Join(w, AsDoubles(agent.critic().parameters()));
  const auto part = [](const Doubles& all, std::size_t first, std::size_t count) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    return Doubles(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  const auto actor_of = [&](const Doubles& all) { return part(all, 0, actor_size); };
  const auto stds_of = [&](const Doubles& all) { return part(all, actor_size, stds); };
  const auto critic_of = [&](const Doubles& all) {
    return part(all, actor_size + stds, critic.parameter_count());
  };
  const auto log_prob = [&](const Doubles& all, const Story& story, std::size_t t) {
    return PlainLogProb(kind, actor(actor_of(all), story.observation[t]), stds_of(all),
                        story.action[t]);
  };

  const Story story = Play(agent, spec, config, /*reward_size=*/2.0);
  Doubles values, next_values, old_log_prob;
  for (std::size_t t = 0; t < kSteps; ++t) {
    values.push_back(critic(critic_of(w), story.observation[t])[0]);
    next_values.push_back(critic(critic_of(w), story.next_observation[t])[0]);
    old_log_prob.push_back(log_prob(w, story, t));
  }
  const Doubles advantages =
      PlainAdvantages(story, values, next_values, config.gamma, config.lambda);

  PlainAdam adam{.epsilon = 1e-5};
  Rng shuffle(kSeed, "shuffle");
  std::vector<std::size_t> order(kSteps);
  std::iota(order.begin(), order.end(), 0);
  int stopped = 0;
  int value_stopped = 0;
  int scaled_down = 0;
  double kl = 0.0;
  double clipped = 0.0;
  double value_loss = 0.0;
  for (int epoch = 0; epoch < config.epochs; ++epoch) {
    for (std::size_t i = kSteps - 1; i > 0; --i) {
      std::swap(order[i],
                order[static_cast<std::size_t>(shuffle.Index(static_cast<std::int64_t>(i) + 1))]);
    }
    for (std::size_t first = 0; first < kSteps; first += 8) {
      const std::span<const std::size_t> batch = std::span(order).subspan(first, 8);
      double mean = 0.0;
      for (const std::size_t t : batch) mean += advantages[t] / 8.0;
      double variance = 0.0;
      for (const std::size_t t : batch) variance += std::pow(advantages[t] - mean, 2) / 7.0;
      const auto surrogate = [&](const Doubles& all, std::size_t t, bool clip) {
        double ratio = std::exp(log_prob(all, story, t) - old_log_prob[t]);
        if (clip) ratio = std::min(std::max(ratio, 0.8), 1.2);
        return ratio * (advantages[t] - mean) / (std::sqrt(variance) + 1e-8);
      };
      const auto value_error = [&](const Doubles& all, std::size_t t, bool clip) {
        double value = critic(critic_of(all), story.observation[t])[0];
        if (clip) value = values[t] + std::min(std::max(value - values[t], -0.2), 0.2);
        return std::pow(value - (advantages[t] + values[t]), 2);
      };
      const auto loss = [&](const Doubles& all) {
        double sum = 0.0;
        for (const std::size_t t : batch) {
          sum -= std::min(surrogate(all, t, false), surrogate(all, t, true));
          const double error = value_error(all, t, false);
          sum += 0.5 * 0.5 * (clip_value ? std::max(error, value_error(all, t, true)) : error);
          sum -=
              0.01 * PlainEntropy(kind, actor(actor_of(all), story.observation[t]), stds_of(all));
        }
        return sum / 8.0;
      };
      for (const std::size_t t : batch) {
        const double log_ratio = log_prob(w, story, t) - old_log_prob[t];
        kl += (std::exp(log_ratio) - 1.0 - log_ratio) / (6.0 * 8.0);
        clipped += std::abs(std::exp(log_ratio) - 1.0) > 0.2 ? 1.0 / (6.0 * 8.0) : 0.0;
        const double plain_error = value_error(w, t, false);
        const double bound_error = value_error(w, t, true);
        value_loss +=
            0.5 * (clip_value ? std::max(plain_error, bound_error) : plain_error) / (6.0 * 8.0);
        stopped += surrogate(w, t, true) < surrogate(w, t, false) ? 1 : 0;
        value_stopped += bound_error > plain_error ? 1 : 0;
      }
      Doubles gradient = NumericGradient(w, loss);
      double norm = 0.0;
      for (const double g : gradient) norm += g * g;
      norm = std::sqrt(norm);
      if (norm > 0.5) {
        ++scaled_down;
        for (double& g : gradient) g *= 0.5 / norm;
      }
      adam.Step(w, gradient, config.learning_rate);
    }
  }
  // what must have happened for the comparison to say something
  EXPECT_GT(stopped, 3);
  EXPECT_GT(value_stopped, 3);
  EXPECT_GT(scaled_down, 0);

  agent.Update();
  ExpectNear(Saved(agent, "actor_adam/mean", actor_size), actor_of(adam.mean), "actor gradient",
             5e-6);
  ExpectNear(Saved(agent, "log_std_adam/mean", stds), stds_of(adam.mean), "log_std gradient", 5e-6);
  ExpectNear(Saved(agent, "critic_adam/mean", critic.parameter_count()), critic_of(adam.mean),
             "critic gradient", 5e-6);
  ExpectNear(AsDoubles(agent.actor().parameters()), actor_of(w), "actor", 2e-5);
  ExpectNear(Saved(agent, "log_std", stds), stds_of(w), "log_std", 2e-5);
  ExpectNear(AsDoubles(agent.critic().parameters()), critic_of(w), "critic", 2e-5);
  const MetricMap metrics(agent);
  EXPECT_NEAR(metrics["policy/kl"], kl, Tol(1e-5));
  EXPECT_NEAR(metrics["policy/clipped"], clipped, Tol(1e-6));
  EXPECT_NEAR(metrics["loss/value"], value_loss, Tol(1e-5));
}

TEST(Ppo, ContinuousUpdatesAreThoseOfTheFormulas) {
  CompareUpdate(ActionKind::kContinuous, /*clip_value=*/true);
}
TEST(Ppo, DiscreteUpdatesAreThoseOfTheFormulas) {
  CompareUpdate(ActionKind::kDiscrete, /*clip_value=*/true);
}
TEST(Ppo, UpdatesWithoutValueClippingAreThoseOfTheFormulas) {
  CompareUpdate(ActionKind::kContinuous, /*clip_value=*/false);
}

TEST(Ppo, OnTheFirstMinibatchThePolicyIsTheOldOne) {
  for (const ActionKind kind : {ActionKind::kDiscrete, ActionKind::kContinuous}) {
    const EnvSpec spec = SmallSpec(kind, 3);
    PpoConfig config = SmallConfig();
    config.minibatch_size = kSteps;
    config.epochs = 1;
    config.normalize_observations = true;
    Ppo agent(spec, config, kSeed);
    Play(agent, spec, config);
    agent.Update();
    const MetricMap first(agent);
    EXPECT_NEAR(first["policy/kl"], 0.0, Tol(1e-12));
    EXPECT_EQ(first["policy/clipped"], 0.0);
    // and with a second pass it is not
    config.epochs = 2;
    Ppo other(spec, config, kSeed);
    Play(other, spec, config);
    other.Update();
    EXPECT_GT(MetricMap(other)["policy/kl"], 1e-6);
  }
}

TEST(Ppo, NormalisesWhatItSaw) {
  const EnvSpec spec = SmallSpec(ActionKind::kDiscrete, 3);
  PpoConfig config = SmallConfig();
  config.rollout_steps = 2 * kSteps;  // so that nothing is learned yet
  config.normalize_observations = true;
  config.normalize_rewards = true;
  Ppo agent(spec, config, kSeed);
  const Story story = Play(agent, spec, config);

  // population variance of all entries up to t
  const auto moments = [](const Doubles& all) {
    double mean = 0.0;
    double variance = 0.0;
    for (const double x : all) mean += x / static_cast<double>(all.size());
    for (const double x : all)
      variance += (x - mean) * (x - mean) / static_cast<double>(all.size());
    return std::pair{mean, variance};
  };
  const auto cut = [](double x) { return std::min(std::max(x, -10.0), 10.0); };
  Doubles running;
  Doubles expected(2 * kSteps);
  double discounted = 0.0;
  for (std::size_t t = 0; t < kSteps; ++t) {
    discounted = config.gamma * discounted + story.reward[t];
    running.push_back(discounted);
    if (story.terminated[t] || story.truncated[t]) discounted = 0.0;
    expected[t] = cut(story.reward[t] / std::sqrt(moments(running).second + 1e-8));
  }
  ExpectNear(Saved(agent, "rewards", 2 * kSteps), expected, "rewards");

  // rows of a rollout that are stored as steps x entries
  const std::string bytes = Archived(agent);
  const TensorFile file = TensorFile::Parse(std::as_bytes(std::span(bytes)), "test");
  std::vector<float> seen(3 * 2 * kSteps);
  std::vector<float> next(3 * 2 * kSteps);
  Archive(file).Array("observations", seen, {2 * kSteps, 3});
  Archive(file).Array("next_observations", next, {2 * kSteps, 3});
  for (std::size_t i = 0; i < 3; ++i) {
    Doubles entries;
    for (std::size_t t = 0; t < kSteps; ++t) {
      entries.push_back(story.observation[t][i]);
      const auto normal = [&, seen_so_far = moments(entries)](double x) {
        return cut((x - seen_so_far.first) / std::sqrt(seen_so_far.second + 1e-8));
      };
      EXPECT_NEAR(seen[3 * t + i], normal(story.observation[t][i]), Tol(1e-5));
      // a successor does not count until it is acted in
      EXPECT_NEAR(next[3 * t + i], normal(story.next_observation[t][i]), Tol(1e-4)) << t;
    }
  }
}

// Two episodes whose steps overlap, against the same steps one after the other.
TEST(Ppo, AChoiceWaitsForTheOutcomeOfItsOwnEpisode) {
  const EnvSpec spec = SmallSpec(ActionKind::kContinuous, 2);
  PpoConfig config = SmallConfig();
  config.normalize_rewards = true;
  const SegmentMatrix matrix(CompactLift());
  const Doubles geometry(kGeometrySize);
  std::string states[2];
  for (const bool overlap : {false, true}) {
    Ppo agent(spec, config, kSeed);
    const std::unique_ptr<Carry> carries[] = {agent.MakeCarry(), agent.MakeCarry()};
    Rng policies[] = {Rng(1, "a"), Rng(1, "b")};
    ActionBuffer actions[] = {ActionBuffer(spec.action), ActionBuffer(spec.action)};
    const auto view = [&](const Doubles& values) {
      return Situation{EnvView(values.data(), 3), EnvView(geometry.data(), kGeometrySize), matrix,
                       0};
    };
    for (int t = 0; t < 4; ++t) {
      const auto act = [&](int e) {
        const Doubles here{0.1 * t, 0.5 * e, -0.3};
        agent.Act({view(here), *carries[e], policies[e], actions[e]}, ActMode::kExplore);
      };
      const auto observe = [&](int e) {
        const Doubles next{0.1 * t + 0.1, 0.5 * e, -0.3};
        agent.Observe({.before = view(next),
                       .action = actions[e].view(),
                       .action_code = {},
                       .scaled_reward = 1.0 + e + t,
                       .psi = {},
                       .after = view(next)},
                      *carries[e]);
      };
      act(1);
      if (overlap) act(0);
      observe(1);
      if (!overlap) act(0);
      observe(0);
    }
    states[overlap ? 1 : 0] = Archived(agent);
  }
  EXPECT_TRUE(states[0] == states[1]);
}

TEST(GeneralizedAdvantages, KnownExample) {
  const std::vector<float> rewards{1, 1, 1};
  const std::vector<float> values{0.5F, 0.6F, 0.7F};
  const auto check = [&](const std::vector<float>& next_values,
                         const std::vector<std::uint8_t>& terminated,
                         const std::vector<std::uint8_t>& ended, const Doubles& expected) {
    std::vector<float> advantages(3);
    GeneralizedAdvantages(rewards, values, next_values, terminated, ended, 0.99, 0.95, advantages);
    ExpectNear(AsDoubles(advantages), expected, "advantages", 1e-6);
  };
  check({0.6F, 0.7F, 0.8F}, {0, 0, 0}, {0, 0, 0}, {3.087884, 2.120026, 1.092000});
  check({0.6F, 0.9F, 0.8F}, {0, 1, 0}, {0, 1, 0}, {1.470200, 0.400000, 1.092000});
  check({0.6F, 0.9F, 0.8F}, {0, 0, 0}, {0, 1, 0}, {2.308185, 1.291000, 1.092000});
}

TEST(PolicyHead, GradientsAreThoseOfDifferences) {
  for (const ActionKind kind : {ActionKind::kDiscrete, ActionKind::kContinuous}) {
    constexpr int kBatch = 5;
    constexpr int kActions = 4;
    const PolicyHead policy({kind, kActions});
    Rng rng(1, "head");
    Eigen::MatrixXf head(kActions, kBatch);
    Eigen::MatrixXf action(kind == ActionKind::kDiscrete ? 1 : kActions, kBatch);
    std::vector<float> log_std(kind == ActionKind::kDiscrete ? 0 : kActions);
    std::vector<float> weights(kBatch);
    for (float& x : Flat(head)) x = static_cast<float>(rng.Normal());
    for (float& x : log_std) x = static_cast<float>(0.3 * rng.Normal());
    for (float& x : weights) x = static_cast<float>(rng.Normal());
    policy.Sample(head, log_std, rng, action);

    const Doubles point = Join(AsDoubles(Flat(head)), AsDoubles(log_std));
    const Doubles expected = NumericGradient(point, [&](const Doubles& at) {
      const Doubles stds(at.end() - static_cast<std::ptrdiff_t>(log_std.size()), at.end());
      double sum = 0.0;
      for (int b = 0; b < kBatch; ++b) {
        const Doubles column(at.begin() + kActions * b, at.begin() + kActions * (b + 1));
        sum += weights[static_cast<std::size_t>(b)] *
               PlainLogProb(kind, column, stds, Column(action, b));
        sum -= 0.3 * PlainEntropy(kind, column, stds) / kBatch;
      }
      return sum;
    });
    Eigen::MatrixXf d_head(kActions, kBatch);
    std::vector<float> d_log_std(log_std.size());
    policy.Backward(head, log_std, action, weights, 0.3, d_head, d_log_std);
    ExpectNear(Join(AsDoubles(Flat(d_head)), AsDoubles(d_log_std)), expected, "gradient");
  }
}

TEST(PolicyHead, DrawsWithTheProbabilitiesOfTheLogits) {
  const PolicyHead policy({ActionKind::kDiscrete, 3});
  Eigen::MatrixXf head(3, 1);
  head << 0.0F, std::log(2.0F), std::log(5.0F);
  Eigen::MatrixXf action(1, 1);
  Rng rng(1, "draws");
  Doubles counts(3);
  constexpr int kDraws = 8000;
  for (int i = 0; i < kDraws; ++i) {
    policy.Sample(head, {}, rng, action);
    ++counts[static_cast<std::size_t>(action(0, 0))];
  }
  for (std::size_t a = 0; a < 3; ++a) {
    const double p = Doubles{0.125, 0.25, 0.625}[a];
    EXPECT_NEAR(counts[a] / kDraws, p, 4.0 * std::sqrt(p * (1.0 - p) / kDraws));
  }
  policy.Mode(head, action);
  EXPECT_EQ(action(0, 0), 2.0F);
}

TEST(Ppo, RefusesImpossibleSettings) {
  PpoConfig config = SmallConfig();
  config.minibatch_size = 7;
  EXPECT_NE(UserErrorText([&] {
              Ppo(SmallSpec(ActionKind::kDiscrete, 3), config, 1);
            }).find("must divide 'rollout_steps'"),
            std::string::npos);
}

}  // namespace
}  // namespace msrl
