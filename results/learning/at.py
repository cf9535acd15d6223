#!/usr/bin/env python3
"""Returns at given steps: results/learning/at.py EVALUATIONS.csv.gz STEP ...

Mean ± standard deviation over the seeds of the evaluation at each step, by task and method."""
import collections
import csv
import gzip
import statistics
import sys

if len(sys.argv) < 3:
    sys.exit(__doc__)
steps = [int(word) for word in sys.argv[2:]]
returns = collections.defaultdict(lambda: collections.defaultdict(list))
with gzip.open(sys.argv[1], "rt") as file:
    for row in csv.DictReader(file):
        returns[row["env"], row["method"]][int(row["step"])].append(float(row["return"]))


def cell(values):
    return "%.1f ± %.1f" % (statistics.mean(values), statistics.stdev(values)) if len(values) > 1 else " ".join("%.1f" % v for v in values)


print("| task | method | seeds | " + " | ".join(f"{step:,}" for step in steps) + " |\n|---|---|---" + "|---" * len(steps) + "|")
for (env, method), curve in sorted(returns.items()):
    cells = " | ".join(cell(curve[step]) for step in steps)
    print(f"| `{env}` | `{method}` | {len(curve[0])} | {cells} |")
