"""What is run, with the settings of both sides: see results/peers/README.md."""

from __future__ import annotations

SEEDS = (100, 101, 102, 103, 104)
ALGORITHMS = ("sac", "td3", "ppo")
# ours -> Gymnasium's id, and what rewards are divided by in training
TASKS = {"hopper": ("Hopper-v5", 3.0), "reacher": ("Reacher-v5", 1.0)}
EPISODES = 10  # of an evaluation, deterministic
LONG = ("hopper", "sac", 104, 150_000)  # goes on, to see whether returns swing late

WIDTH, LAYERS, BATCH, LEARNING_RATE, RANDOM_STEPS, REPLAY = 64, 2, 128, 3e-4, 1_000, 1_000_000
OFF_POLICY = {
    "hidden_layers": LAYERS,
    "hidden_width": WIDTH,
    "batch_size": BATCH,
    "replay_size": REPLAY,
    "random_steps": RANDOM_STEPS,
    "actor_learning_rate": LEARNING_RATE,
    "critic_learning_rate": LEARNING_RATE,
}
OURS = {
    "sac": OFF_POLICY | {"alpha_learning_rate": LEARNING_RATE, "initial_alpha": 0.1},
    "td3": OFF_POLICY | {"exploration_noise": 0.1},
    # values are not clipped, and their loss has no factor 1/2 besides the weight, in Stable-Baselines3
    "ppo": {
        "hidden_layers": LAYERS,
        "hidden_width": WIDTH,
        "learning_rate": LEARNING_RATE,
        "clip_value": "false",
        "value_weight": 1.0,
    },
}


def steps(task: str, algorithm: str, seed: int) -> int:
    """The budget of a run; whole rollouts of 2,048 steps for PPO."""
    if (task, algorithm, seed) == LONG[:3]:
        return LONG[3]
    if algorithm == "ppo":
        return 51_200
    return {"hopper": 50_000, "reacher": 20_000}[task]


def evaluate_every(task: str, algorithm: str) -> int:
    return {"hopper": 50_000, "reacher": 20_000}[task] // 20 if algorithm != "ppo" else 2_560
