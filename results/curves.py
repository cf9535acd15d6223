#!/usr/bin/env python3
"""Learning curves as pictures, one per task: results/curves.py FOLDER EVALUATIONS.csv.gz[,MORE.csv.gz] [env=TASK ...] METHOD[=TITLE] ...

Mean over the seeds of each evaluation, with its standard error as a band, of the methods and, if there are any, the
tasks that are named."""
import collections
import csv
import gzip
import math
import pathlib
import sys
from xml.sax.saxutils import escape

if len(sys.argv) < 4:
    sys.exit(__doc__)
folder = pathlib.Path(sys.argv[1])
named = [argument.split("=", 1) for argument in sys.argv[3:]]
tasks = {words[1] for words in named if words[0] == "env"}
titles = dict((words * 2)[:2] for words in named if words[0] != "env")
COLOURS = ["#c0392b", "#2c3e50", "#2980b9", "#7f8c8d", "#e67e22", "#27ae60", "#8e44ad"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 64, 232, 36, 48

returns = collections.defaultdict(list)
for path in sys.argv[2].split(","):
    with gzip.open(path, "rt") as file:
        for row in csv.DictReader(file):
            returns[row["env"], row["method"], int(row["step"])].append(float(row["return"]))


def curve(env, method):
    for step in sorted(s for e, m, s in returns if (e, m) == (env, method)):
        values = returns[env, method, step]
        mean = sum(values) / len(values)
        spread = sum((v - mean) ** 2 for v in values) / max(1, len(values) - 1)
        yield step, mean, math.sqrt(spread / len(values)), len(values)


def ticks(low, high):
    step = 10 ** math.floor(math.log10((high - low) / 3))
    step *= next(f for f in (1, 2, 5, 10) if (high - low) / (f * step) <= 6)
    first = math.ceil(low / step)
    return [step * i for i in range(first, math.floor(high / step) + 1)]


def number(value):
    return f"{value:,.10g}".replace("-", "−")


for env in sorted(tasks or {env for env, _, _ in returns}):
    curves = {method: list(curve(env, method)) for method in titles}
    curves = {method: points for method, points in curves.items() if points}
    if not curves:
        continue
    low = min(mean - error for points in curves.values() for _, mean, error, _ in points)
    high = max(mean + error for points in curves.values() for _, mean, error, _ in points)
    last = max(points[-1][0] for points in curves.values())
    x = lambda step: LEFT + (WIDTH - LEFT - RIGHT) * step / last
    y = lambda value: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
             '<rect width="100%" height="100%" fill="white"/>', f'<text x="{LEFT}" y="20" font-size="15">{escape(env)}</text>']
    for value in ticks(low, high):
        parts.append(f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{number(value)}</text>')
    for step in ticks(0, last):
        parts.append(f'<text x="{x(step):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{number(step)}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">environment steps</text>'
                 f'<text transform="translate(14 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">return of evaluations</text>')
    for place, (method, points) in enumerate(curves.items()):
        colour = COLOURS[list(titles).index(method) % len(COLOURS)]
        upper = [f"{x(step):.1f} {y(mean + error):.1f}" for step, mean, error, _ in points]
        lower = [f"{x(step):.1f} {y(mean - error):.1f}" for step, mean, error, _ in reversed(points)]
        line = "L".join(f"{x(step):.1f} {y(mean):.1f}" for step, mean, _, _ in points)
        legend = WIDTH - RIGHT + 14
        parts.append(f'<path d="M{"L".join(upper + lower)}Z" fill="{colour}" fill-opacity="0.15"/>'
                     f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
                     f'<path d="M{legend} {TOP + 10 + 20 * place}h18" stroke="{colour}" stroke-width="3"/>'
                     f'<text x="{legend + 24}" y="{TOP + 14 + 20 * place}">{escape(titles[method])} (n = {points[-1][3]})</text>')
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{env}.svg").write_text("\n".join(parts + ["</svg>"]) + "\n")
    print(folder / f"{env}.svg")
