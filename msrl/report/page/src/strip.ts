// A row of a dot plot: an interval and points on an axis that all rows of a column share.

import {h, s} from './dom';
import {fixed, isNumber, Maybe} from './format';

export interface Axis {
  min: number;
  max: number;
  ticks: number[];
  digits: number;
}

// Round limits and about `wanted` ticks around the values.
export function niceAxis(values: Maybe[], include: number[] = [], wanted = 4): Axis {
  const all = [...values.filter(isNumber), ...include];
  let min = Math.min(...all);
  let max = Math.max(...all);
  if (!(max > min)) {
    min -= 0.5;
    max += 0.5;
  }
  const rough = (max - min) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= rough) ?? 10);
  const first = Math.floor(min / step + 1e-9);
  const last = Math.ceil(max / step - 1e-9);
  const ticks = [];
  for (let i = first; i <= last; i++) ticks.push(i * step);
  return {
    min: first * step,
    max: last * step,
    ticks,
    digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)),
  };
}

function place(axis: Axis, value: number): string {
  const share = (value - axis.min) / (axis.max - axis.min);
  return `${(3 + 94 * Math.min(1, Math.max(0, share))).toFixed(2)}%`;
}

export interface Mark {
  value: Maybe;
  kind: string;
  title?: string;
}

// `lines` are drawn through the full height: zero, or the paper's figure.
export function strip(
  axis: Axis,
  marks: Mark[],
  range: {low: Maybe; high: Maybe; kind: string} | null,
  lines: {value: number; kind: string}[] = [],
): SVGElement {
  const svg = s('svg', {class: 'strip', 'aria-hidden': 'true', focusable: 'false'});
  for (const line of lines) {
    const x = place(axis, line.value);
    svg.append(s('line', {x1: x, x2: x, y1: 0, y2: '100%', class: `rule ${line.kind}`}));
  }
  if (range && isNumber(range.low) && isNumber(range.high)) {
    const [x1, x2] = [place(axis, range.low), place(axis, range.high)];
    svg.append(s('line', {x1, x2, y1: 10, y2: 10, class: `whisker ${range.kind}`}));
    for (const x of [x1, x2]) {
      svg.append(s('line', {x1: x, x2: x, y1: 6.5, y2: 13.5, class: `whisker ${range.kind}`}));
    }
  }
  for (const mark of marks) {
    if (!isNumber(mark.value)) continue;
    svg.append(
      s(
        'circle',
        {cx: place(axis, mark.value), cy: 10, r: 4, class: `dot ${mark.kind}`},
        mark.title ? s('title', {}, mark.title) : null,
      ),
    );
  }
  return svg;
}

export function stripAxis(axis: Axis): HTMLElement {
  return h(
    'span',
    {class: 'strip-axis', 'aria-hidden': 'true'},
    ...axis.ticks.map((tick) =>
      h('span', {style: `left:${place(axis, tick)}`}, fixed(tick, axis.digits)),
    ),
  );
}
