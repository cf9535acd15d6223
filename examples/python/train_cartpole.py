"""The same with discrete actions: python examples/python/train_cartpole.py"""

import msrl

# observations are place and speed of the cart, angle and speed of the pole
CART = {
    "position": {"entries": [0], "unit": 2.4},
    "goal": {"at": [0]},
    "motion": [1, 3],
    "posture": {"entries": 2, "unit": 0.2},
}

run = msrl.train("CartPole-v1", "msrl-dqn", 5_000, geometry=CART, settings={"random_steps": 500})
for step, value in zip(run.evals["step"], run.evals["mean_return"]):
    print(f"step {step}: return {value:.0f}")
print(f"{run.status['state']}: {run.path}")
