// The matrix Z of an episode, prefix by prefix: heat map with blocks, eigenvalues, return. A second
// episode can be put beside it, with the difference.

import {Matrices, Report} from './data';
import {choice, h, s, select, toggle} from './dom';
import {eigenvalues, unpack} from './eigen';
import {count, fixed, general, isNumber} from './format';
import {Panel, panel} from './panel';
import {cssColour, isDark, onThemeChange} from './theme';

type View = 'sum' | 'mean' | 'added';
const kLargest = 8;
type Rgb = [number, number, number];

const kScales: Record<'light' | 'dark', [Rgb, Rgb, Rgb]> = {
  light: [
    [23, 92, 170],
    [250, 250, 248],
    [186, 44, 23],
  ],
  dark: [
    [104, 182, 255],
    [27, 31, 35],
    [255, 133, 92],
  ],
};

function colourOf(value: number): Rgb {
  const [low, middle, high] = kScales[isDark() ? 'dark' : 'light'];
  const end = value < 0 ? low : high;
  const share = Math.min(1, Math.abs(value));
  return [0, 1, 2].map((i) => Math.round(middle[i] + share * (end[i] - middle[i]))) as Rgb;
}

function css(colour: Rgb): string {
  return `rgb(${colour.join(',')})`;
}

export function matrixPanel(report: Report): Panel | null {
  const all = report.matrices.filter((m) => m.prefixes?.length > 0 && m.labels?.length > 0);
  if (all.length === 0) return null;

  let current = 0;
  let at = 0;
  let view: View = 'sum';
  let root = true;
  let cell: [number, number] | null = null;
  let full: Float64Array[] = [];
  let other: number | null = null;
  let otherFull: Float64Array[] = [];
  let limit = 1;
  let timer: number | undefined;

  const canvas = h('canvas', {class: 'heat', role: 'img', tabindex: 0, id: 'matrix-heat'});
  const second = h('canvas', {class: 'heat', role: 'img', id: 'matrix-second'});
  const difference = h('canvas', {class: 'heat', role: 'img', id: 'matrix-difference'});
  const names = [h('figcaption'), h('figcaption'), h('figcaption', {}, 'Difference')];
  const frames = [canvas, second, difference].map((map, i) => h('figure', {}, names[i], map));
  const frame = h('div', {class: 'heat-frame'}, ...frames);
  const readout = h('p', {class: 'readout', 'aria-live': 'polite', id: 'matrix-readout'});
  const slider = h('input', {
    type: 'range',
    min: 0,
    step: 1,
    id: 'matrix-slider',
    'aria-label': 'Prefix of the episode',
  });
  const play = h('button', {type: 'button', class: 'play', 'aria-pressed': 'false'}, 'Play');
  const where = h('output', {class: 'num', for: 'matrix-slider'});
  const facts = h('dl', {class: 'facts'});
  const bars = h('div', {class: 'eigen'});
  const largest = h('div');
  const trace = h('div', {class: 'spark'});
  const keyBox = h('div', {class: 'key', 'aria-hidden': 'true'});

  const data = (): Matrices => all[current];
  const size = () => data().labels.length;
  const prefix = () => data().prefixes[at];

  function seen(sums: Float64Array[], of: Matrices, i: number): Float64Array {
    if (view === 'mean') return sums[i].map((v) => v / Math.max(1, of.prefixes[i].t));
    if (view === 'added' && i > 0) return sums[i].map((v, k) => v - sums[i - 1][k]);
    return sums[i];
  }
  const valuesAt = (i: number) => seen(full, data(), i);

  // The other episode at the same share of its length.
  function otherIndex(): number {
    const [own, its] = [data().prefixes.length, otherFull.length];
    return own < 2 ? its - 1 : Math.round((at / (own - 1)) * (its - 1));
  }
  const otherValues = () => (other === null ? null : seen(otherFull, all[other], otherIndex()));

  // One scale for the whole episode, so that colours can be compared while it plays.
  function rescale(): void {
    limit = 0;
    data().prefixes.forEach((_, i) => {
      for (const v of valuesAt(i)) limit = Math.max(limit, Math.abs(v));
    });
    otherFull.forEach((_, i) => {
      for (const v of seen(otherFull, all[other as number], i))
        limit = Math.max(limit, Math.abs(v));
    });
    if (limit === 0) limit = 1;
  }

  const shade = (v: number) => (root ? Math.sign(v) * Math.sqrt(Math.abs(v) / limit) : v / limit);

  function geometry() {
    const m = size();
    const room =
      other === null || frame.clientWidth < 800 ? frame.clientWidth : (frame.clientWidth - 40) / 3;
    const width = Math.min(620, Math.max(260, room));
    const margin = 30;
    const side = Math.max(4, Math.floor((width - margin - 1) / m));
    return {m, margin, side, extent: margin + side * m + 1};
  }

  function paint(): void {
    const values = valuesAt(at);
    paintMap(canvas, values);
    canvas.setAttribute(
      'aria-label',
      `Matrix of ${data().env} after step ${prefix().t}; arrow keys ` + 'choose a cell',
    );
    const its = otherValues();
    for (const extra of [names[0], frames[1], frames[2]]) extra.hidden = its === null;
    if (its === null || other === null) return;
    const step = all[other].prefixes[otherIndex()].t;
    names[0].textContent = `${data().env}, step ${count(prefix().t)}`;
    names[1].textContent = `${all[other].env}, step ${count(step)}`;
    paintMap(second, its);
    second.setAttribute('aria-label', `Matrix of ${all[other].env} after step ${step}`);
    paintMap(
      difference,
      values.map((v, k) => v - its[k]),
    );
    difference.setAttribute('aria-label', 'The first matrix minus the second');
  }

  function paintMap(map: HTMLCanvasElement, values: Float64Array): void {
    const {m, margin, side, extent} = geometry();
    const ratio = devicePixelRatio || 1;
    map.width = map.height = Math.round(extent * ratio);
    map.style.width = map.style.height = `${extent}px`;
    const ctx = map.getContext('2d');
    if (!ctx) return;
    ctx.scale(ratio, ratio);
    const [ink, muted] = [cssColour('ink'), cssColour('muted')];
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < m; j++) {
        ctx.fillStyle = css(colourOf(shade(values[i * m + j])));
        ctx.fillRect(margin + j * side, margin + i * side, side, side);
      }
    }
    ctx.strokeStyle = muted;
    ctx.fillStyle = ink;
    ctx.lineWidth = 1;
    ctx.font = '12px system-ui, sans-serif';
    ctx.textAlign = 'center';
    ctx.textBaseline = 'middle';
    let start = 0;
    const end = margin + m * side;
    const line = (x1: number, y1: number, x2: number, y2: number) => {
      ctx.beginPath();
      ctx.moveTo(x1 + 0.5, y1 + 0.5);
      ctx.lineTo(x2 + 0.5, y2 + 0.5);
      ctx.stroke();
    };
    data().blocks.forEach((block, b) => {
      const from = margin + start * side;
      const middle = from + (block.size * side) / 2;
      // names of neighbours of width one would overlap: every other one further out
      const out = block.size === 1 && data().blocks[b - 1]?.size === 1 ? 8 : 19;
      ctx.fillText(block.name, middle, out, Math.max(18, block.size * side));
      ctx.fillText(block.name, out, middle);
      line(from, margin, from, end);
      line(margin, from, end, from);
      start += block.size;
    });
    line(end, margin, end, end);
    line(margin, end, end, end);
    if (cell) {
      ctx.strokeStyle = ink;
      ctx.lineWidth = 2;
      ctx.strokeRect(margin + cell[1] * side, margin + cell[0] * side, side, side);
    }
  }

  function say(): void {
    const m = size();
    if (!cell) {
      readout.textContent = 'Point at a cell, or move there with the arrow keys.';
      return;
    }
    const [i, j] = cell;
    const own = valuesAt(at)[i * m + j];
    const its = otherValues()?.[i * m + j];
    const beside =
      its === undefined ? '' : ` and ${general(its, 4)}, difference ${general(own - its, 4)}`;
    readout.replaceChildren(
      h('strong', {}, data().labels[i] ?? String(i)),
      ' × ',
      h('strong', {}, data().labels[j] ?? String(j)),
      ' = ',
      h('span', {class: 'num'}, `${general(own, 4)}${beside}`),
    );
  }

  function describe(): void {
    const m = size();
    const eigen = eigenvalues(full[at], m);
    const top = Math.max(eigen[0], 0);
    const sum = eigen.reduce((a, b) => a + b, 0);
    const live = eigen.filter((v) => v > 1e-9 * top);
    const spread = -live.reduce((a, v) => a + (v / sum) * Math.log(v / sum), 0);
    const fact = (name: string, value: string, hint = '') => [
      h('dt', {title: hint}, name),
      h('dd', {class: 'num'}, value),
    ];
    facts.replaceChildren(
      ...fact('Reward', general(prefix().reward)),
      ...fact('Return', general(prefix().return)),
      ...fact('Trace', general(sum, 4)),
      ...fact('Rank', `${live.length} of ${m}`, 'Eigenvalues above 1e-9 of the largest'),
      ...fact(
        'Effective rank',
        sum > 0 ? fixed(Math.exp(spread), 1) : fixed(0, 1),
        'exp of the entropy of the eigenvalues as shares of the trace',
      ),
      ...fact(
        'Condition',
        live.length > 0 ? general(top / live[live.length - 1]) : general(null),
        'Largest over smallest eigenvalue that is not zero',
      ),
    );
    // shares of the trace, six decades
    const [width, height, rim] = [280, 88, 14];
    const step = width / m;
    const svg = s('svg', {
      viewBox: `0 0 ${width} ${height + 14}`,
      role: 'img',
      'aria-label': `Eigenvalues: ${live
        .slice(0, 5)
        .map((v) => fixed(v / sum, 3))
        .join(', ')} of the trace, then smaller`,
    });
    for (const [power, text] of [
      [0, '1'],
      [-2, '10⁻²'],
      [-4, '10⁻⁴'],
      [-6, '10⁻⁶'],
    ] as const) {
      const y = rim - (power / 6) * (height - rim);
      svg.append(
        s('line', {x1: 0, x2: width, y1: y, y2: y, class: 'rule'}),
        s('text', {x: width, y: y - 2, class: 'tick', 'text-anchor': 'end'}, text),
      );
    }
    eigen.forEach((v, i) => {
      if (!(v > 0) || !(sum > 0)) return;
      const share = Math.max(0, 1 + Math.log10(v / sum) / 6) * (height - rim);
      svg.append(
        s('rect', {
          x: i * step + 0.5,
          width: Math.max(1, step - 1.5),
          y: height - share,
          height: share,
          class: 'bar',
        }),
      );
    });
    svg.append(
      s('text', {x: 0, y: height + 12, class: 'tick'}, `${m} eigenvalues as shares of the trace`),
    );
    bars.replaceChildren(svg);
  }

  // The entries off the diagonal that say most, by name.
  function listLargest(): void {
    const m = size();
    const values = valuesAt(at);
    const entries: [number, number][] = [];
    for (let i = 0; i < m; i++) for (let j = i + 1; j < m; j++) entries.push([i, j]);
    const value = ([i, j]: [number, number]) => values[i * m + j];
    entries.sort((a, b) => Math.abs(value(b)) - Math.abs(value(a)));
    const shown = entries.slice(0, kLargest).filter((entry) => value(entry) !== 0);
    largest.replaceChildren(
      shown.length > 0 ? h('h4', {}, 'Largest off the diagonal') : '',
      h(
        'table',
        {class: 'small largest'},
        h(
          'tbody',
          {},
          ...shown.map((entry) =>
            h(
              'tr',
              {},
              h('td', {class: 'number'}, general(value(entry))),
              h('td', {}, `${data().labels[entry[0]]} × ${data().labels[entry[1]]}`),
            ),
          ),
        ),
      ),
    );
  }

  function drawSpark(): void {
    const points = data().prefixes.map((p) => p.return);
    const values = points.filter(isNumber);
    trace.replaceChildren();
    if (values.length < 2) return;
    const [low, high] = [Math.min(...values, 0), Math.max(...values, 0)];
    const x = (i: number) => 8 + (i / Math.max(1, points.length - 1)) * 984;
    const y = (v: number) => 27 - ((v - low) / (high - low || 1)) * 24;
    const path = points
      .map((v, i) => (isNumber(v) ? `${x(i).toFixed(1)},${y(v).toFixed(1)}` : ''))
      .filter(Boolean)
      .join(' ');
    const now = points[at];
    trace.append(
      s(
        'svg',
        {viewBox: '0 0 1000 30', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
        s('line', {x1: 0, x2: 1000, y1: y(0), y2: y(0), class: 'rule'}),
        s('polyline', {points: path, class: 'path'}),
        isNumber(now) ? s('line', {x1: x(at), x2: x(at), y1: 0, y2: 30, class: 'needle'}) : null,
      ),
    );
  }

  function drawKey(): void {
    const stops = Array.from({length: 21}, (_, i) => i / 10 - 1).map((v) =>
      css(colourOf(root ? Math.sign(v) * Math.sqrt(Math.abs(v)) : v)),
    );
    keyBox.replaceChildren(
      h('span', {class: 'num'}, general(-limit)),
      h('span', {class: 'ramp', style: `background:linear-gradient(to right,${stops.join(',')})`}),
      h('span', {class: 'num'}, general(limit)),
    );
  }

  function show(): void {
    slider.value = String(at);
    const text = `step ${count(prefix().t)} of ${count(data().prefixes.at(-1)?.t)}`;
    where.textContent = text;
    slider.setAttribute('aria-valuetext', text);
    paint();
    say();
    describe();
    listLargest();
    drawSpark();
  }

  function load(): void {
    const m = size();
    full = data().prefixes.map((p) => unpack(p.packed, m));
    at = data().prefixes.length - 1;
    cell = null;
    slider.max = String(at);
    rescale();
    drawKey();
    show();
  }

  function stop(): void {
    window.clearInterval(timer);
    timer = undefined;
    play.textContent = 'Play';
    play.setAttribute('aria-pressed', 'false');
  }
  play.addEventListener('click', () => {
    if (timer !== undefined) return stop();
    if (at === data().prefixes.length - 1) at = 0;
    play.textContent = 'Pause';
    play.setAttribute('aria-pressed', 'true');
    timer = window.setInterval(() => {
      if (at >= data().prefixes.length - 1) return stop();
      at += 1;
      show();
    }, 120);
    show();
  });
  slider.addEventListener('input', () => {
    stop();
    at = Number(slider.value);
    show();
  });
  const point = (event: PointerEvent) => {
    const {m, margin, side} = geometry();
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const i = Math.floor((event.clientY - box.top - margin) / side);
    const j = Math.floor((event.clientX - box.left - margin) / side);
    if (i < 0 || j < 0 || i >= m || j >= m) return;
    cell = [i, j];
    paint();
    say();
  };
  for (const map of [canvas, second, difference]) {
    map.addEventListener('pointermove', point);
    map.addEventListener('pointerdown', point);
  }
  canvas.addEventListener('keydown', (event) => {
    const moves: Record<string, [number, number]> = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const clamp = (v: number) => Math.min(size() - 1, Math.max(0, v));
    cell = cell ? [clamp(cell[0] + move[0]), clamp(cell[1] + move[1])] : [0, 0];
    paint();
    say();
  });

  const refresh = () => {
    rescale();
    drawKey();
    show();
  };
  // Only matrices of the same lift can be put side by side.
  const compare = (i: number | null) => {
    other = i !== null && all[i].labels.length === size() ? i : null;
    otherFull = other === null ? [] : all[other].prefixes.map((p) => unpack(p.packed, size()));
    layout.classList.toggle('beside', other !== null);
  };
  const titles = all.map((m) => `${m.env} · ${m.method} · seed ${m.seed}`);
  const layout = h(
    'div',
    {class: 'matrix'},
    h('div', {class: 'matrix-map'}, frame, keyBox, readout),
    h('div', {class: 'matrix-side'}, facts, bars, largest),
  );
  const views: {value: View; title: string; hint: string}[] = [
    {value: 'sum', title: 'Z', hint: 'Sum over the prefix'},
    {value: 'mean', title: 'Z / t', hint: 'Mean over the prefix'},
    {value: 'added', title: 'Added', hint: 'What came in since the prefix before'},
  ];
  const controls = h(
    'div',
    {class: 'controls no-print'},
    select('Episode', titles, 0, (i) => {
      stop();
      current = i;
      compare(other);
      load();
    }),
    all.length > 1
      ? select('Beside it', ['nothing', ...titles], 0, (i) => {
          compare(i > 0 ? i - 1 : null);
          refresh();
        })
      : null,
    choice('Show', views, view, (value) => {
      view = value;
      refresh();
    }),
    h(
      'div',
      {class: 'toggles'},
      toggle(
        'Lift small values',
        root,
        (on) => {
          root = on;
          refresh();
        },
        {title: 'Colour by the square root of the value'},
      ),
    ),
  );
  onThemeChange(() => {
    drawKey();
    paint();
  });
  let width = 0;
  new ResizeObserver(() => {
    if (frame.clientWidth === width) return;
    width = frame.clientWidth;
    paint();
  }).observe(frame);
  const result = panel(
    'matrix',
    'Matrix viewer',
    'Matrix',
    'The descriptor Z of one evaluation episode: the sum of ψψᵀ over its first steps. One colour ' +
      'scale for the whole episode.',
    controls,
    h('div', {class: 'player no-print'}, play, h('div', {class: 'track'}, trace, slider), where),
    layout,
  );
  load();
  return result;
}
