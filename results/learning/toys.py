#!/usr/bin/env python3
"""Two small tasks that show what a world model is for: results/learning/toys.py [JOBS]

Needs the Python package and Gymnasium's MuJoCo tasks (pip install . "gymnasium[mujoco]"). Resumable: runs are
in runs/toys, finished ones are kept; toys.csv (every evaluation) and toys.md are written beside this script."""
import collections
import concurrent.futures
import multiprocessing
import pathlib
import statistics
import sys

import gymnasium
import numpy as np

import msrl

SEEDS = range(100, 105)
RUNS = pathlib.Path("runs/toys")
HERE = pathlib.Path(__file__).parent


class Recall(gymnasium.Env):
    """A cue, 1 or -1, is the first observation; all later ones are 0. Every step but the first pays cue times
    action, so that the best return is 5, and what sees the present alone gets 0 on average."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cue, self.time = float(self.np_random.choice([-1, 1])), 0
        return np.array([self.cue], np.float32), {}

    def step(self, action):
        reward = self.cue * float(action[0]) if self.time > 0 else 0.0
        self.time += 1
        return np.zeros(1, np.float32), reward, False, self.time == 6, {}


# Chosen on seed 0, the second that was tried: the compact preset (10 updates per step, tau 0.005, 1000 random
# steps) gets 186 there after 5,000 steps. No rule tells when the pendulum has fallen: the ensemble learns the ends.
MBPO = {"updates_per_step": 20, "tau": 0.01, "random_steps": 500}
SAC = {"hidden_width": 128, "batch_size": 128}
# Chosen on seed 0, the second that was tried: with the defaults the cue was not learned in 3,000 steps.
DREAMER = {"learning_rate": 2e-3, "warm_up": 100, "random_steps": 200, "sequence_length": 16, "horizon": 5, "normalize_observations": False}
TASKS = {
    "InvertedPendulum-v5": ("InvertedPendulum-v5", 5_000, 500, 5, {"mbpo": MBPO, "sac": SAC | {"random_steps": 500}}),
    "recall": (Recall, 3_000, 150, 50, {"dreamer": DREAMER, "tdmpc": {"random_steps": 200}, "sac": SAC | {"random_steps": 200}, "td3": SAC | {"random_steps": 200}, "ppo": {"rollout_steps": 256}}),
}


def play(task, agent, seed):
    env, steps, every, episodes, agents = TASKS[task]
    out = RUNS / task / agent / str(seed)
    own = {} if isinstance(env, str) else {"name": task, "step_limit": 6}
    if (out / "run.json").exists():
        run = msrl.resume(out, None if isinstance(env, str) else env, steps=steps)
    else:
        run = msrl.train(env, agent, steps, seed=seed, out=out, settings=agents[agent], eval_every=every, eval_episodes=episodes, **own)
    return [(task, agent, seed, int(step), float(value)) for step, value in zip(run.evals["step"], run.evals["mean_return"])]


def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    plan = [(task, agent, seed) for seed in SEEDS for task in TASKS for agent in TASKS[task][4]]
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        rows = sorted(row for curve in pool.map(play, *zip(*plan)) for row in curve)
    (HERE / "toys.csv").write_text("task,agent,seed,step,mean_return\n" + "".join("%s,%s,%d,%d,%.4f\n" % row for row in rows))

    curves = collections.defaultdict(lambda: collections.defaultdict(list))
    for task, agent, _, step, value in rows:
        curves[task, agent][step].append(value)
    lines = ["| task | agent | seeds | first evaluation | half way | end | end, worst seed | best mean of all seeds |", "|---|---|---|---|---|---|---|---|"]
    for (task, agent), curve in curves.items():
        steps = sorted(curve)
        spread = lambda step: "%.1f ± %.1f" % (statistics.mean(curve[step]), statistics.stdev(curve[step]))
        best = max(steps, key=lambda step: statistics.mean(curve[step]))
        lines.append("| `%s` | `%s` | %d | %s | %s | %s | %.1f | %.1f after %d |" % (
            task, agent, len(curve[steps[0]]), spread(steps[0]), spread(steps[len(steps) // 2]), spread(steps[-1]), min(curve[steps[-1]]),
            statistics.mean(curve[best]), best))
    (HERE / "toys.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
