#!/usr/bin/env python3
"""Fills the tables of FOLDER/README.md from what `msrl report --csv` wrote: results/page.py FOLDER [MORE:TASK,TASK ...]

The page marks where each stands:
  <!-- scores -->               mean return of a run's evaluations, by method and task
  <!-- success -->              success in the last evaluation
  <!-- gains: A>B C>D ... -->   how far method A is ahead of B, by task; from runs.csv if the report has no such pair
and each ends with <!-- end -->. Runs and gains of these tasks of the folders MORE join those of FOLDER."""
import collections
import csv
import math
import pathlib
import re
import sys
from random import Random
from statistics import fmean

if len(sys.argv) < 2:
    sys.exit(__doc__)
folders = [pathlib.Path(argument.partition(":")[0]) for argument in sys.argv[1:]]
wanted = [set(filter(None, argument.partition(":")[2].split(","))) for argument in sys.argv[1:]]


def rows(name):
    for folder, tasks in zip(folders, wanted):
        with open(folder / name, newline="") as file:
            yield from (row for row in csv.DictReader(file) if not tasks or row["env"] in tasks)


def number(value, sign=""):
    digits = 3 if abs(value) < 2 else 2 if abs(value) < 20 else 1 if abs(value) < 200 else 0
    return f"{value:{sign}.{digits}f}".replace("-", "−")


def table(head, body):
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def by_method(column):
    """Mean ± standard deviation over the seeds of one column of runs.csv, methods down, tasks across."""
    values = collections.defaultdict(list)
    for row in rows("runs.csv"):
        if row["state"] == "finished" and row[column] not in ("", "–"):
            values[row["method"], row["env"]].append(float(row[column]))
    methods = list(dict.fromkeys(method for method, _ in values))
    tasks = list(dict.fromkeys(task for _, task in values))
    whole = max(map(len, values.values()))

    def cell(method, task):
        found = values.get((method, task))
        if not found:
            return ""
        mean = sum(found) / len(found)
        spread = math.sqrt(sum((v - mean) ** 2 for v in found) / max(1, len(found) - 1))
        seeds = "" if len(found) == whole else f" (n = {len(found)})"
        return number(mean) + (f" ± {number(spread)}" if len(found) > 1 else "") + seeds

    return table(["", *(f"`{task}`" for task in tasks)],
                 [[f"`{method}`", *(cell(method, task) for task in tasks)] for method in methods])


def paired(a, b):
    """Rows as in gains.csv for two methods that the report does not compare: differences of scores by seed, intervals by bootstrap."""
    scores = {(row["env"], row["method"], row["seed"]): float(row["few_shot_auc"])
              for row in rows("runs.csv") if row["state"] == "finished"}
    random = Random(0)
    by_seed = collections.defaultdict(list)

    def row(env, values):
        means = sorted(fmean(random.choices(values, k=len(values))) for _ in range(10000))
        return {"env": env, "a": a, "b": b, "gain": fmean(values), "low": means[250], "high": means[9749],
                "wins": sum(value > 0 for value in values), "pairs": len(values)}

    made = []
    for env in dict.fromkeys(env for env, _, _ in scores):
        seeds = [seed for e, m, seed in scores if (e, m) == (env, a) and (env, b, seed) in scores]
        for seed in seeds:
            by_seed[seed].append(scores[env, a, seed] - scores[env, b, seed])
        if len(seeds) > 1:
            made.append(row(env, [by_seed[seed][-1] for seed in seeds]))
    return [*made, row("all", [fmean(values) for values in by_seed.values()])]


def gains(pairs):
    found = {(row["env"], row["a"], row["b"]): row for row in rows("gains.csv")}
    for a, b in pairs:
        if not any(key[1:] == (a, b) for key in found):
            found.update({(row["env"], a, b): row for row in paired(a, b)})
    tasks = [task for task in dict.fromkeys(env for env, _, _ in found) if task != "all"]
    if len(folders) == 1:
        tasks.append("all")

    def cell(task, pair):
        row = found.get((task, *pair))
        if row is None:
            return ""
        text = number(float(row["gain"]), "+")
        if row["low"]:
            low, high = float(row["low"]), float(row["high"])
            text += f" [{number(low)}, {number(high)}]"
            if low > 0 or high < 0:
                text = f"**{text}**"
        return f"{text} {row['wins']}/{row['pairs']}"

    tasks = [task for task in tasks if any(cell(task, pair) for pair in pairs)]
    return table(["", *(f"`{a}` − `{b}`" for a, b in pairs)],
                 [[f"`{task}`" if task != "all" else "all", *(cell(task, pair) for pair in pairs)] for task in tasks])


def fill(match):
    kind, _, words = match[1].partition(":")
    made = {"scores": lambda: by_method("few_shot_return"), "success": lambda: by_method("success_rate"),
            "gains": lambda: gains([pair.split(">") for pair in words.split()])}[kind.strip()]()
    return f"<!-- {match[1]} -->\n{made}\n<!-- end -->"


page = folders[0] / "README.md"
text = page.read_text()
page.write_text(re.sub(r"<!-- ((?:scores|success|gains)\b.*?) -->\n.*?<!-- end -->", fill, text, flags=re.S))
print(page)
