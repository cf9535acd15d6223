#!/usr/bin/env python3
"""The tables of README.md: results/planning/tables.py [EVALUATIONS.csv.gz[,MORE.csv.gz] [AFTER_STEP [METHOD]]]

Means of the evaluations after a step (0), and how far METHOD (plan) is ahead of the others."""
import collections
import csv
import gzip
import math
import pathlib
import random
import sys

ORDER = {"sac": "SAC", "msrl": "MSRL with its library, pretrained", "plan-scratch": "planning, from scratch",
         "plan": "**planning, pretrained**", "plan-shuffled": "planning, shuffled values",
         "plan-reversed": "planning, reversed F", "plan-constant": "planning, constant F",
         "plan-distance": "planning, minus distance", "plan-last-state": "planning, F of the last state",
         "frames": "SAC, four stacked steps", "matrix": "MSRL from scratch: policy on (o, Z)",
         "matrix-plan": "the same, and planning", "reading-shuffled": "shuffled reading",
         "reading-shuffled-plan": "shuffled reading, and planning",
         "reading": "pretrained reading", "reading-plan": "pretrained reading, and planning",
         "shown": "SAC, goal shown", "sac-her": "SAC with hindsight"}
paths = sys.argv[1].split(",") if len(sys.argv) > 1 else [pathlib.Path(__file__).parent / "planning/evaluations.csv.gz"]
after = int(sys.argv[2]) if len(sys.argv) > 2 else 0
ahead_method = sys.argv[3] if len(sys.argv) > 3 else "plan"
returns = collections.defaultdict(list)
for path in paths:
    with gzip.open(path, "rt") as file:
        for row in csv.DictReader(file):
            if int(row["step"]) > after:  # before learning all are alike
                returns[row["env"], row["method"], int(row["seed"])].append(float(row["return"]))
auc = collections.defaultdict(dict)
for (env, method, seed), values in returns.items():
    auc[env, method][seed] = sum(values) / len(values)

rng = random.Random(1)
for env in sorted({env for env, _ in auc}):
    print(f"\n**{env}**\n\n| | seeds | return | {ahead_method} − it | ahead |\n|---|---|---|---|---|")
    best = auc[env, ahead_method]
    others = sorted({method for _, method in auc} - set(ORDER))
    for method, title in [*ORDER.items(), *zip(others, others)]:
        values = auc.get((env, method), {})
        if len(values) < 2:
            continue
        n = len(values)
        mean = sum(values.values()) / n
        error = math.sqrt(sum((v - mean) ** 2 for v in values.values()) / (n - 1) / n)
        gain = ahead = ""
        if method != ahead_method and best:
            pairs = [best[seed] - values[seed] for seed in sorted(values) if seed in best]
            means = sorted(sum(rng.choices(pairs, k=len(pairs))) / len(pairs) for _ in range(4000))
            gain = f"{sum(pairs) / len(pairs):+.2f} [{means[100]:.2f}, {means[3899]:.2f}]"
            ahead = f"{sum(d > 0 for d in pairs)} of {len(pairs)}"
        print(f"| {title} | {n} | {mean:.2f} ± {error:.2f} | {gain} | {ahead} |")
