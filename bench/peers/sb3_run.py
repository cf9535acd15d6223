#!/usr/bin/env python3
"""One run of Stable-Baselines3, or its speed:

    build/peers/bin/python bench/peers/sb3_run.py TASK ALGORITHM SEED OUT.json
    build/peers/bin/python bench/peers/sb3_run.py --speed TASK ALGORITHM SEED FROM TO

The first writes evaluations and processor times; the second prints the steps per second of processor time from
step FROM to step TO, without evaluations.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import gymnasium
import mujoco
import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import plan

VERSIONS = {
    "python": platform.python_version(),
    "stable_baselines3": stable_baselines3.__version__,
    "torch": torch.__version__,
    "gymnasium": gymnasium.__version__,
    "mujoco": mujoco.__version__,
    "numpy": np.__version__,
}


def make_model(task: str, algorithm: str, seed: int):
    name, scale = plan.TASKS[task]

    def make_env():
        env = gymnasium.make(name)
        return gymnasium.wrappers.TransformReward(env, lambda reward: reward / scale)

    if algorithm == "ppo":
        env = VecNormalize(DummyVecEnv([make_env]))  # clips both at 10, discount 0.99, as ours does
        return stable_baselines3.PPO(
            "MlpPolicy",
            env,
            learning_rate=plan.LEARNING_RATE,
            policy_kwargs={"net_arch": [plan.WIDTH] * plan.LAYERS},
            seed=seed,
            device="cpu",
        )
    common = {
        "learning_rate": plan.LEARNING_RATE,
        "buffer_size": plan.REPLAY,
        "learning_starts": plan.RANDOM_STEPS,
        "batch_size": plan.BATCH,
        "train_freq": 1,
        "gradient_steps": 1,
        "policy_kwargs": {"net_arch": [plan.WIDTH] * plan.LAYERS},
        "seed": seed,
        "device": "cpu",
    }
    if algorithm == "sac":
        return stable_baselines3.SAC("MlpPolicy", make_env(), ent_coef="auto_0.1", **common)
    actions = gymnasium.make(name).action_space.shape
    noise = NormalActionNoise(np.zeros(actions), np.full(actions, 0.1))
    return stable_baselines3.TD3("MlpPolicy", make_env(), action_noise=noise, **common)


class Evaluations(BaseCallback):
    """Deterministic episodes in an environment of their own, in raw rewards; counts their processor time."""

    def __init__(self, task: str, seed: int, every: int):
        super().__init__()
        self.env = gymnasium.make(plan.TASKS[task][0])
        self.every = every
        self.first_episode = 10_000 * seed
        self.seconds = 0.0
        self.rows: list[dict] = []

    def evaluate(self) -> None:
        began = time.process_time()
        returns = []
        for episode in range(plan.EPISODES):
            reset_seed = self.first_episode + plan.EPISODES * len(self.rows) + episode
            observation, _ = self.env.reset(seed=reset_seed)
            total, ended = 0.0, False
            while not ended:
                if isinstance(self.training_env, VecNormalize):
                    observation = self.training_env.normalize_obs(observation)
                action, _ = self.model.predict(observation, deterministic=True)
                observation, reward, terminated, truncated, _ = self.env.step(action)
                total += float(reward)
                ended = terminated or truncated
            returns.append(round(total, 2))
        self.rows.append({"step": self.num_timesteps, "returns": returns})
        self.seconds += time.process_time() - began

    def _on_training_start(self) -> None:
        self.evaluate()

    def _on_step(self) -> bool:
        # before the update of this step; the last one comes after learning
        if self.num_timesteps % self.every == 0 and self.num_timesteps < self.model._total_timesteps:
            self.evaluate()
        return True

    def _on_training_end(self) -> None:
        self.evaluate()


class Speed(BaseCallback):
    def __init__(self, begin: int, end: int):
        super().__init__()
        self.begin, self.end = begin, end
        self.times: dict[int, float] = {}

    def _on_step(self) -> bool:
        if self.num_timesteps in (self.begin, self.end):
            self.times[self.num_timesteps] = time.process_time()
        return True


def main(arguments: list[str]) -> int:
    torch.set_num_threads(1)
    if arguments == ["--versions"]:
        print(" ".join(f"{name} {version}" for name, version in VERSIONS.items()))
        return 0
    if len(arguments) == 6 and arguments[0] == "--speed":
        task, algorithm, seed, begin, end = arguments[1], arguments[2], *map(int, arguments[3:])
        speed = Speed(begin, end)
        make_model(task, algorithm, seed).learn(end, speed)
        print((end - begin) / (speed.times[end] - speed.times[begin]))
        return 0
    if len(arguments) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    task, algorithm, seed, out = arguments[0], arguments[1], int(arguments[2]), Path(arguments[3])
    evaluations = Evaluations(task, seed, plan.evaluate_every(task, algorithm))
    model = make_model(task, algorithm, seed)
    began = time.process_time()
    model.learn(plan.steps(task, algorithm, seed), evaluations)
    seconds = time.process_time() - began
    record = {
        "training_seconds": round(seconds - evaluations.seconds, 2),
        "evaluation_seconds": round(evaluations.seconds, 2),
        "versions": VERSIONS,
        "evaluations": evaluations.rows,
    }
    out.write_text(json.dumps(record))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
