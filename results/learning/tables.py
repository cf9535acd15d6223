"""Compact records and tables of learning runs: tables.py RUNS OUT"""
import json
import pathlib
import statistics
import sys

runs, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
rows = []
for evals in sorted(runs.glob("*/*/*/evals.jsonl")):
    env, agent, seed = evals.parts[-4:-1]
    for line in evals.read_text().splitlines():
        record = json.loads(line)
        rows.append((env, agent, int(seed), record["step"], record["mean_return"], record["std_return"]))
with open(out / "evaluations.csv", "w") as file:
    file.write("env,agent,seed,step,mean_return,std_return\n")
    for row in rows:
        file.write("%s,%s,%d,%d,%.4f,%.4f\n" % row)

lines = ["| task | agent | steps | seeds | return at the start | at half the budget | at the end | best evaluation, worst seed |",
         "|---|---|---|---|---|---|---|---|"]
for env, agent in sorted({(row[0], row[1]) for row in rows}):
    curves = {}
    for row in rows:
        if row[:2] == (env, agent):
            curves.setdefault(row[2], []).append((row[3], row[4]))
    def at(share):
        values = [curve[round(share * (len(curve) - 1))][1] for curve in curves.values()]
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        return "%.1f ± %.1f" % (statistics.mean(values), spread)
    best = min(max(value for _, value in curve) for curve in curves.values())
    steps = max(curve[-1][0] for curve in curves.values())
    lines.append("| %s | %s | %s | %s | %s | %s | %s | %.1f |" % (
        env, agent, steps, " ".join(str(seed) for seed in sorted(curves)), at(0), at(0.5), at(1), best))
(out / "table.md").write_text("\n".join(lines) + "\n")
print("\n".join(lines))
