"""Stable-Baselines3 on a task of msrl's: python examples/python/stable_baselines.py"""

import time

import gymnasium
import stable_baselines3

import msrl  # knows msrl/Hopper-v5

began = time.time()
env = gymnasium.make("msrl/Hopper-v5")
stable_baselines3.SAC("MlpPolicy", env, learning_starts=1_000, seed=0).learn(2_000)
print(f"2,000 steps in {time.time() - began:.0f} s, msrl {msrl.__version__}")
