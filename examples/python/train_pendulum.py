"""Matrix-space reinforcement learning on a task of Gymnasium's: python examples/python/train_pendulum.py"""

import msrl

# observations are (cos, sin, speed) of the rod: where its tip is, and how fast it turns
MOVES = {"entries": [2], "unit": 8}
TIP = {"position": [1, 0], "goal": {"at": [0, 1]}, "motion": MOVES, "posture": 1}
SETTINGS = {"random_steps": 500, "hidden_width": 64, "batch_size": 128}

run = msrl.train("Pendulum-v1", "msrl", 5_000, geometry=TIP, reward_scale=8, settings=SETTINGS)
for step, value in zip(run.evals["step"], run.evals["mean_return"]):
    print(f"step {step}: return {value:.0f}")
print(f"{run.status['state']}: {run.path}")
