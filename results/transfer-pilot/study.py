"""Records, tables and plots of the transfer pilot: study.py RUNS OUT"""
import json
import pathlib
import random
import statistics
import sys

runs, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
MAIN = ["base", "scratch", "shape", "paper", "shuffled", "unaligned"]
PLOTTED = {"base": "#555555", "scratch": "#1f77b4", "shape": "#d62728", "paper": "#9467bd",
           "shuffled": "#2ca02c", "unaligned": "#ff7f0e"}


def interval(values):
    """95 % percentile bootstrap of the mean, 10,000 resamples."""
    rng = random.Random(0)
    means = sorted(statistics.fmean(rng.choices(values, k=len(values))) for _ in range(10000))
    return means[249], means[9749]


def standard_error(values):
    return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


curves, predictor, afterwards, training, unfinished = {}, {}, {}, {}, []
for directory in sorted(runs.glob("*/*/*/")):
    if not (directory / "status.json").exists():
        continue
    env, method, seed = directory.parts[-3:]
    if json.loads((directory / "status.json").read_text())["state"] != "finished":
        unfinished.append(f"{env}/{method}/{seed}")
        continue
    records = [json.loads(line) for line in (directory / "evals.jsonl").read_text().splitlines()]
    curves.setdefault(env, {}).setdefault(method, {})[int(seed)] = [
        (record["step"], record["mean_return"]) for record in records]
    for line in (directory / "metrics.jsonl").read_text().splitlines():
        metrics = json.loads(line)
        if "transfer/predictor" in metrics:
            predictor.setdefault(env, {}).setdefault(method, []).append(
                (metrics["transfer/predictor"], metrics["transfer/amplitude"]))
        # returns of training episodes in the first half of the budget, after the random steps
        if "train/return" in metrics and 1000 < metrics["step"] <= records[-1]["step"] / 2:
            training.setdefault(env, {}).setdefault(method, {}).setdefault(int(seed), []).append(metrics["train/return"])
    if (directory / "inspect.json").exists():
        now = json.loads((directory / "inspect.json").read_text())["predictor_now"]
        afterwards.setdefault(env, {}).setdefault(method, []).append((now["correlation"], now["amplitude"]))

with open(out / "evaluations.csv", "w") as file:
    file.write("env,method,seed,step,mean_return\n")
    for env, methods in sorted(curves.items()):
        for method, seeds in sorted(methods.items()):
            for seed, curve in sorted(seeds.items()):
                for step, value in curve:
                    file.write(f"{env},{method},{seed},{step},{value:.4f}\n")


def auc(curve):
    """Mean of the evaluations after the first step."""
    return statistics.fmean(value for step, value in curve if step > 0)


def row(env, method, references):
    scores = {seed: auc(curve) for seed, curve in curves[env][method].items()}
    values = list(scores.values())
    last = [curve[-1][1] for curve in curves[env][method].values()]
    cells = [f"`{method}`", str(len(values)),
             f"{statistics.fmean(values):.2f} ± {standard_error(values):.2f}",
             f"{statistics.fmean(last):.2f} ± {standard_error(last):.2f}"]
    for reference in references:
        if reference == method or reference not in curves[env]:
            cells.append("")
            continue
        other = {seed: auc(curve) for seed, curve in curves[env][reference].items()}
        common = sorted(set(scores) & set(other))
        gains = [scores[seed] - other[seed] for seed in common]
        low, high = interval(gains)
        better = sum(gain > 0 for gain in gains)
        cells.append(f"{statistics.fmean(gains):+.2f} [{low:+.2f}, {high:+.2f}] {better}/{len(gains)}")
    heard = predictor.get(env, {}).get(method)
    cells.append("" if not heard else
                 f"{statistics.fmean(p for p, _ in heard):.2f} / {statistics.fmean(a for _, a in heard):.3f}")
    return "| " + " | ".join(cells) + " |"


lines = ["AUC is the mean of the 20 evaluations after step 0; ± is a standard error over seeds; gains are paired by seed, with",
         "a 95 % bootstrap interval and the number of seeds that gain. Predictor: correlation of F with progress / amplitude.", ""]
for env, methods in curves.items():
    lines += [f"## {env}", "",
              "| method | seeds | AUC | last evaluation | − scratch | − base | − shuffled | predictor |",
              "|---|---|---|---|---|---|---|---|"]
    lines += [row(env, method, ["scratch", "base", "shuffled"]) for method in MAIN if method in methods]
    lines.append("")
    extra = [method for method in sorted(methods) if method not in MAIN]
    if extra:
        lines += [f"### {env}: one thing changed", "",
                  "| method | seeds | AUC | last evaluation | − shape | − base | predictor |",
                  "|---|---|---|---|---|---|---|"]
        lines += [row(env, method, ["shape", "base"]) for method in extra]
        lines.append("")

def pairs_mean(values, which):
    return f"{statistics.fmean(value[which] for value in values):.2f}"


def training_gain(env, reference):
    ours, theirs = training.get(env, {}).get("shape", {}), training.get(env, {}).get(reference, {})
    gains = [statistics.fmean(ours[seed]) - statistics.fmean(theirs[seed]) for seed in sorted(set(ours) & set(theirs))]
    if not gains:
        return ""
    low, high = interval(gains)
    return f"{statistics.fmean(gains):+.2f} [{low:+.2f}, {high:+.2f}]"


lines += ["## Where the gain is lost", "",
          "`shape` in each task. Value prediction: the predictor over the random steps. Calibration: its amplitude (scaled down to 0.5",
          "where it is larger). Forgetting: predictor and amplitude of F after training, over its replay (`msrl inspect`). Exploration: return",
          "of training episodes in the first half of the budget, against base and shuffled.", "",
          "| task | predictor | amplitude | predictor after | amplitude after | training return − base | − shuffled |",
          "|---|---|---|---|---|---|---|"]
for env in curves:
    before, after = predictor.get(env, {}).get("shape"), afterwards.get(env, {}).get("shape")
    if before:
        lines.append("| " + " | ".join(
            [env, pairs_mean(before, 0), pairs_mean(before, 1), pairs_mean(after, 0) if after else "",
             pairs_mean(after, 1) if after else "", training_gain(env, "base"), training_gain(env, "shuffled")]) + " |")
lines.append("")
if unfinished:
    lines.append(f"Not finished, left out: {len(unfinished)} runs.")
(out / "tables.md").write_text("\n".join(lines) + "\n")
print("\n".join(lines))


def plot(env, methods):
    """Mean curves with a band of one standard error, as SVG."""
    width, height, left, bottom = 560, 320, 60, 40
    bands = {}
    for method in MAIN:
        if method not in methods:
            continue
        by_step = {}
        for curve in methods[method].values():
            for step, value in curve:
                by_step.setdefault(step, []).append(value)
        bands[method] = [(step, statistics.fmean(v), standard_error(v)) for step, v in sorted(by_step.items())]
    low = min(mean - error for band in bands.values() for _, mean, error in band)
    high = max(mean + error for band in bands.values() for _, mean, error in band)
    last = max(band[-1][0] for band in bands.values())
    x = lambda step: left + (width - left - 110) * step / last
    y = lambda value: 20 + (height - bottom - 20) * (high - value) / (high - low or 1)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{left}" y="14">{env}: return of evaluations, mean ± standard error</text>',
             f'<line x1="{left}" y1="{y(low):.1f}" x2="{x(last):.1f}" y2="{y(low):.1f}" stroke="black"/>',
             f'<line x1="{left}" y1="{y(low):.1f}" x2="{left}" y2="{y(high):.1f}" stroke="black"/>']
    for share in (0, 0.5, 1):
        value = low + share * (high - low)
        parts.append(f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.3g}</text>')
        parts.append(f'<text x="{x(share * last):.1f}" y="{height - bottom + 18}" text-anchor="middle">{share * last:.0f}</text>')
    for place, (method, band) in enumerate(bands.items()):
        color = PLOTTED[method]
        area = [f"{x(s):.1f},{y(m + e):.1f}" for s, m, e in band] + [f"{x(s):.1f},{y(m - e):.1f}" for s, m, e in reversed(band)]
        parts.append(f'<polygon points="{" ".join(area)}" fill="{color}" opacity="0.15"/>')
        line = " ".join(f"{x(s):.1f},{y(m):.1f}" for s, m, _ in band)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="1.8"/>')
        parts.append(f'<text x="{width - 100}" y="{40 + 18 * place}" fill="{color}">{method}</text>')
    parts.append("</svg>")
    (out / f"{env}.svg").write_text("\n".join(parts) + "\n")


def bars(name, title, groups):
    """Groups of bars with the single values as dots: groups is {group: {bar: values}}."""
    width, height, left, bottom = 90 + 110 * len(groups), 260, 50, 60
    values = [value for group in groups.values() for series in group.values() for value in series] + [0.0]
    low, high = min(values), max(values)
    y = lambda value: 24 + (height - bottom - 24) * (high - value) / (high - low or 1)
    colors = ["#d62728", "#7f7f7f", "#2ca02c", "#1f77b4"]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
             f'<rect width="{width}" height="{height}" fill="white"/>', f'<text x="{left}" y="14">{title}</text>',
             f'<line x1="{left}" y1="{y(0):.1f}" x2="{width - 10}" y2="{y(0):.1f}" stroke="black"/>']
    for value in (low, high):
        parts.append(f'<text x="{left - 5}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.2f}</text>')
    names = []
    for i, (group, series) in enumerate(groups.items()):
        x = left + 10 + 110 * i
        parts.append(f'<text x="{x}" y="{height - bottom + 16}">{group}</text>')
        for j, (bar, points) in enumerate(series.items()):
            if bar not in names:
                names.append(bar)
            color = colors[names.index(bar) % len(colors)]
            mean, at = statistics.fmean(points), x + 26 * j
            top, foot = sorted((y(mean), y(0)))
            parts.append(f'<rect x="{at}" y="{top:.1f}" width="20" height="{foot - top:.1f}" fill="{color}" opacity="0.5"/>')
            parts += [f'<circle cx="{at + 10}" cy="{y(point):.1f}" r="2" fill="{color}"/>' for point in points]
    for j, bar in enumerate(names):
        parts.append(f'<text x="{left + 120 * j}" y="{height - 12}" fill="{colors[j % len(colors)]}">{bar}</text>')
    parts.append("</svg>")
    (out / name).write_text("\n".join(parts) + "\n")


for env, methods in curves.items():
    plot(env, methods)
known = [env for env in curves if "shape" in predictor.get(env, {})]
bars("hypothesis-value-prediction.svg", "Does F follow progress on random steps? (correlation, one dot per run)",
     {env: {method: [p for p, _ in predictor[env][method]] for method in ("shape", "shuffled", "unaligned", "paper")
            if method in predictor[env]} for env in known})
bars("hypothesis-calibration.svg", "How loud is F before scaling? (amplitude of shape; the limit is 0.5)",
     {env: {"shape": [a for _, a in predictor[env]["shape"]]} for env in known})
bars("hypothesis-forgetting.svg", "Does F still follow progress after training? (correlation, shape)",
     {env: {"before": [p for p, _ in predictor[env]["shape"]], "after": [p for p, _ in afterwards[env]["shape"]]}
      for env in known if "shape" in afterwards.get(env, {})})


def relative(env, method):
    """Training returns of the first half, in standard deviations of the base's seeds above its mean."""
    base = [statistics.fmean(v) for v in training[env]["base"].values()]
    spread = statistics.stdev(base) or 1.0
    return [(statistics.fmean(v) - statistics.fmean(base)) / spread for v in training[env][method].values()]


bars("hypothesis-exploration.svg", "Training return in the first half, in deviations of the base's seeds",
     {env: {method: relative(env, method) for method in ("shape", "base", "shuffled")} for env in known
      if all(len(training.get(env, {}).get(method, {})) > 1 for method in ("shape", "base", "shuffled"))})
