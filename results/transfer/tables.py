"""Self-transfer: every method against itself with random weights. tables.py RUNS OUT

Writes OUT/evaluations.csv, OUT/table.md and, of what was pretrained, OUT/figures.md, and prints the tables. A run counts by the mean of its evaluations after step 0; differences are paired by seed. Seeds that a control lacks are left out."""
import json
import math
import pathlib
import statistics
import sys

# two-sided 95 % of Student's t, by degrees of freedom
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


runs, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
curves, told, lines = {}, {}, []
for evals in sorted(runs.glob("*/*/*/evals.jsonl")):
    env, method, seed = evals.parts[-4:-1]
    spec = json.loads((evals.parent / "status.json").read_text())
    if spec.get("state") != "finished":
        continue
    curve = [(record["step"], record["mean_return"]) for record in records(evals)]
    curves.setdefault((env, method), {})[int(seed)] = curve
    lines += ["%s,%s,%s,%d,%.4f" % (env, method, seed, step, value) for step, value in curve]
    for record in records(evals.parent / "metrics.jsonl"):
        for key in ("transfer/kappa", "transfer/fit"):
            if key in record:
                told.setdefault((env, method), {}).setdefault(key, {})[int(seed)] = record[key]
(out / "evaluations.csv").write_text("env,method,seed,step,mean_return\n" + "\n".join(lines) + "\n")


def mean(curve):
    return statistics.mean(value for step, value in curve if step > 0)


def spread(values):
    half = T95[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else float("nan")
    return "%+.2f ± %.2f" % (statistics.mean(values), half)


def last(env, method, key, seeds):
    values = told.get((env, method), {}).get(key, {})
    return "%.2f" % statistics.mean(values[seed] for seed in seeds) if all(seed in values for seed in seeds) else "–"


table = ["| target | method | seeds | mean return | random weights | difference (95 %) | seeds ahead | − SAC | ahead of it | κ | R² of its fit | of random weights |",
         "|---|---|---|---|---|---|---|---|---|---|---|---|"]
for env, method in sorted(curves):
    control = method + "-random"
    if (env, control) not in curves:
        continue
    own, other = curves[env, method], curves[env, control]
    seeds = sorted(own.keys() & other.keys())
    gains = [mean(own[seed]) - mean(other[seed]) for seed in seeds]
    sac = curves.get((env, "sac"), {})
    over_sac = [mean(own[seed]) - mean(sac[seed]) for seed in seeds if seed in sac]
    table.append("| `%s` | `%s` | %s | %.2f | %.2f | %s | %d of %d | %s | %d of %d | %s | %s | %s |" % (
        env, method, len(seeds), statistics.mean(mean(own[seed]) for seed in seeds), statistics.mean(mean(other[seed]) for seed in seeds),
        spread(gains), sum(gain > 0 for gain in gains), len(seeds),
        spread(over_sac) if over_sac else "–", sum(gain > 0 for gain in over_sac), len(over_sac), last(env, method, "transfer/kappa", seeds),
        last(env, method, "transfer/fit", seeds), last(env, control, "transfer/fit", seeds)))
(out / "table.md").write_text("\n".join(table) + "\n")
print("\n".join(table))

# What each method's pretraining measured on the same held-out episodes.
figures, of = {}, {}
for record in sorted((runs / "source").glob("*.json")):
    described = json.loads(record.read_text())
    if described.get("config", {}).get("control") != "none":
        continue
    of[described["kind"]] = described["config"]["updates"]
    for key, value in described["rows"][0].items():
        if isinstance(value, float) and not key.endswith("_std"):
            figures.setdefault(key, {})[described["kind"]] = value
kinds = sorted(of)
lines = ["| | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 1) + "|", "| updates | " + " | ".join(str(of[kind]) for kind in kinds) + " |"]
lines += ["| `%s` | %s |" % (key, " | ".join("%.3f" % row[kind] if kind in row else "–" for kind in kinds)) for key, row in figures.items()]
(out / "figures.md").write_text("\n".join(lines) + "\n")
print("\n" + "\n".join(lines))
