// The obstruction filter: does it tell compositions that fail from those that hold?

import {Obstruction, Report} from './data';
import {h, s, select} from './dom';
import {count, fixed, isNumber} from './format';
import {Panel, panel} from './panel';
import {tableBlock} from './table';

const kSide = 220;
const kLeft = 34;
const kTop = 10;

// A unit square with grid, axis names and whatever is put into it.
function square(
  label: string,
  x: string,
  y: string,
): {svg: SVGElement; px: (v: number) => number; py: (v: number) => number} {
  const px = (v: number) => kLeft + v * kSide;
  const py = (v: number) => kTop + (1 - v) * kSide;
  const svg = s('svg', {
    viewBox: `0 0 ${kLeft + kSide + 12} ${kTop + kSide + 38}`,
    role: 'img',
    class: 'square',
    'aria-label': label,
  });
  for (const v of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(
      s('line', {x1: px(0), x2: px(1), y1: py(v), y2: py(v), class: 'rule'}),
      s('line', {x1: px(v), x2: px(v), y1: py(0), y2: py(1), class: 'rule'}),
    );
    if (v === 0.25 || v === 0.75) continue;
    svg.append(
      s('text', {x: px(v), y: py(0) + 14, class: 'tick', 'text-anchor': 'middle'}, v),
      s('text', {x: kLeft - 5, y: py(v) + 3.5, class: 'tick', 'text-anchor': 'end'}, v),
    );
  }
  svg.append(
    s('line', {x1: px(0), y1: py(0), x2: px(1), y2: py(1), class: 'rule diagonal'}),
    s('text', {x: px(0.5), y: py(0) + 30, class: 'tick', 'text-anchor': 'middle'}, x),
    s(
      'text',
      {x: -py(0.5), y: 10, class: 'tick', 'text-anchor': 'middle', transform: 'rotate(-90)'},
      y,
    ),
  );
  return {svg, px, py};
}

function roc(item: Obstruction): SVGElement {
  const plot = square(
    `ROC curve, area ${fixed(item.auroc, 3)}`,
    'false alarms',
    'obstructed found',
  );
  const points = (item.roc ?? []).map(
    ([x, y]) => `${plot.px(x).toFixed(1)},${plot.py(y).toFixed(1)}`,
  );
  if (points.length > 0) {
    plot.svg.append(
      s('polygon', {
        points: `${plot.px(0)},${plot.py(0)} ${points.join(' ')} ` + `${plot.px(1)},${plot.py(0)}`,
        class: 'area',
      }),
      s('polyline', {points: points.join(' '), class: 'path'}),
    );
  }
  return plot.svg;
}

function calibration(item: Obstruction): SVGElement {
  const plot = square(
    'Calibration: predicted probability against observed share',
    'predicted',
    'observed',
  );
  const bins = (item.calibration ?? []).filter((b) => b.n > 0);
  const most = Math.max(1, ...bins.map((b) => b.n));
  plot.svg.append(
    s('polyline', {
      points: bins
        .map((b) => `${plot.px(b.predicted).toFixed(1)},${plot.py(b.observed).toFixed(1)}`)
        .join(' '),
      class: 'path',
    }),
  );
  for (const b of bins) {
    plot.svg.append(
      s(
        'circle',
        {
          cx: plot.px(b.predicted),
          cy: plot.py(b.observed),
          class: 'dot main',
          r: (2 + 5 * Math.sqrt(b.n / most)).toFixed(1),
        },
        s(
          'title',
          {},
          `predicted ${fixed(b.predicted)}, observed ` + `${fixed(b.observed)}, n = ${count(b.n)}`,
        ),
      ),
    );
  }
  if (isNumber(item.threshold)) {
    const x = plot.px(item.threshold);
    plot.svg.append(
      s(
        'line',
        {x1: x, x2: x, y1: plot.py(0), y2: plot.py(1), class: 'rule paper'},
        s('title', {}, `threshold ${fixed(item.threshold)}`),
      ),
    );
  }
  return plot.svg;
}

export function obstructionPanel(report: Report): Panel | null {
  const all = report.obstruction;
  if (all.length === 0) return null;
  const place = h('div', {class: 'squares'});
  const show = (i: number) => {
    place.replaceChildren(
      h(
        'figure',
        {},
        h(
          'figcaption',
          {},
          h('strong', {}, 'ROC'),
          h('span', {class: 'muted'}, `area ${fixed(all[i].auroc, 3)}`),
        ),
        roc(all[i]),
      ),
      h(
        'figure',
        {},
        h(
          'figcaption',
          {},
          h('strong', {}, 'Calibration'),
          h('span', {class: 'muted'}, `error ${fixed(all[i].ece, 3)}`),
        ),
        calibration(all[i]),
      ),
    );
  };
  show(0);
  return panel(
    'obstruction',
    'Obstruction filter',
    'Obstruction',
    'Judgements of the learned filter against what then happened. A random filter has area 0.5 and ' +
      'lies on the diagonal; a calibrated one lies on the diagonal of the second plot, whose upright ' +
      'dashed line is the threshold.',
    h(
      'div',
      {class: 'controls no-print'},
      select(
        'Run',
        all.map((o) => `${o.env} · ${o.method} · seed ${o.seed}`),
        0,
        show,
      ),
    ),
    h(
      'div',
      {class: 'split obstruction'},
      place,
      tableBlock<Obstruction>({
        label: 'Obstruction filter',
        rows: all,
        columns: [
          {title: 'Target', value: (o) => o.env},
          {title: 'Method', value: (o) => o.method},
          {title: 'AUROC', kind: 'number', value: (o) => o.auroc, cell: (o) => fixed(o.auroc, 3)},
          {
            title: 'Calibration error',
            kind: 'number',
            value: (o) => o.ece,
            cell: (o) => fixed(o.ece, 3),
          },
          {title: 'Brier', kind: 'number', value: (o) => o.brier, cell: (o) => fixed(o.brier, 3)},
          {
            title: 'Base rate',
            kind: 'number',
            value: (o) => o.base_rate,
            cell: (o) => fixed(o.base_rate, 3),
            hint: 'Share of judged compositions that failed',
          },
        ],
      }),
    ),
  );
}
