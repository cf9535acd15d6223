// Learning curves: one chart per environment, the mean over seeds with its band. Every switch
// rebuilds the charts: that takes milliseconds and leaves no state to go wrong.

import uPlot from 'uplot';

import {Curve, Env, Report} from './data';
import {choice, copyButton, h, toggle} from './dom';
import {compact, csv, fixed, general, isNumber, kAbsent, Maybe, plural} from './format';
import {Panel, panel} from './panel';
import {cssColour, faded, look, Look, onThemeChange} from './theme';

type Scale = 'normalised' | 'raw' | 'success';
const kMany = 8;
const kHeight = 270;

interface State {
  scale: Scale;
  bands: boolean;
  seeds: boolean;
  sameAxis: boolean;
  methods: Set<string>;
  families: Set<string>;
}

interface Line {
  mean: Maybe[];
  low: Maybe[] | null;
  high: Maybe[] | null;
}

function has(values: Maybe[] | null | undefined): values is Maybe[] {
  return Array.isArray(values) && values.some(isNumber);
}

// The band in the task's unit follows from the normalised one: the scales differ by a line.
function toRaw(values: Maybe[] | null | undefined, env: Env): Maybe[] | null {
  const [zero, one] = [env.random_return, env.reference_return];
  if (!has(values) || !isNumber(zero) || !isNumber(one)) return null;
  return values.map((v) => (isNumber(v) ? zero + v * (one - zero) : null));
}

function lineOf(curve: Curve, env: Env, scale: Scale): Line | null {
  if (scale === 'success') {
    return has(curve.success) ? {mean: curve.success, low: null, high: null} : null;
  }
  if (scale === 'normalised') {
    if (!has(curve.mean)) return null;
    return {mean: curve.mean, low: curve.low ?? null, high: curve.high ?? null};
  }
  const mean = has(curve.raw_mean) ? curve.raw_mean : toRaw(curve.mean, env);
  if (!mean) return null;
  let low = curve.raw_low ?? toRaw(curve.low, env);
  let high = curve.raw_high ?? toRaw(curve.high, env);
  const at = low ? low.findIndex((v, i) => isNumber(v) && isNumber(high?.[i])) : -1;
  if (low && high && at >= 0 && (low[at] as number) > (high[at] as number))
    [low, high] = [high, low];
  return {mean, low, high};
}

// Values at the common steps; null where a curve has no evaluation.
function spread(
  steps: number[],
  values: Maybe[],
  index: Map<number, number> | null,
  length: number,
): (number | null)[] {
  if (!index) return values.map((v) => (isNumber(v) ? v : null));
  const out = new Array<number | null>(length).fill(null);
  steps.forEach((step, i) => {
    const v = values[i];
    if (isNumber(v)) out[index.get(step) as number] = v;
  });
  return out;
}

function commonSteps(curves: Curve[]): {x: number[]; index: Map<number, number> | null} {
  const first = curves[0]?.steps ?? [];
  if (
    curves.every(
      (c) => c.steps.length === first.length && c.steps.every((step, i) => step === first[i]),
    )
  ) {
    return {x: first, index: null};
  }
  const x = [...new Set(curves.flatMap((c) => c.steps))].sort((a, b) => a - b);
  return {x, index: new Map(x.map((step, i) => [step, i]))};
}

interface Shown {
  curve: Curve;
  line: Line;
  look: Look;
  title: string;
}

export function axisStyle() {
  const [ink, grid] = [cssColour('muted'), cssColour('grid')];
  const font = '11px system-ui, sans-serif';
  return {
    stroke: ink,
    font,
    labelFont: font,
    labelSize: 16,
    grid: {stroke: grid, width: 1},
    ticks: {stroke: grid, width: 1, size: 4},
    gap: 4,
  };
}

const kAxisTitles: Record<Scale, string> = {
  normalised: 'normalised return',
  raw: 'return',
  success: 'success rate',
};

class Chart {
  readonly element: HTMLElement;
  readonly canvas = h('div', {class: 'chart-canvas'});
  private readonly note = h('span', {class: 'muted'});
  private readonly tip = h('div', {class: 'tip', hidden: true});
  private plot: uPlot | null = null;

  constructor(
    readonly env: Env,
    private readonly curves: Curve[],
    private readonly titles: Map<string, string>,
  ) {
    const wide = h(
      'button',
      {type: 'button', class: 'quiet no-print', 'aria-pressed': 'false', title: 'Full width'},
      'Enlarge',
    );
    wide.addEventListener('click', () => {
      const on = this.element.classList.toggle('wide');
      wide.setAttribute('aria-pressed', String(on));
      wide.textContent = on ? 'Reduce' : 'Enlarge';
      this.resize();
    });
    const detail = [env.family, env.id].filter((text) => text && text !== env.name);
    this.element = h(
      'figure',
      {class: 'chart'},
      h(
        'figcaption',
        {},
        h('strong', {}, env.name),
        ...detail.map((text) => h('span', {class: 'muted'}, text)),
        this.note,
        wide,
      ),
      this.canvas,
    );
    this.element.dataset.env = env.name;
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'img');
    this.canvas.addEventListener('keydown', (event) => this.move(event));
    this.canvas.addEventListener('blur', () => this.plot?.setCursor({left: -10, top: -10}));
  }

  shown(state: State): Shown[] {
    const lines: Shown[] = [];
    for (const curve of this.curves) {
      if (!state.methods.has(curve.method)) continue;
      const line = lineOf(curve, this.env, state.scale);
      if (!line) continue;
      lines.push({
        curve,
        line,
        look: look(curve.method),
        title: this.titles.get(curve.method) ?? curve.method,
      });
    }
    // the method that the report is about on top
    return lines.sort((a, b) => a.look.width - b.look.width);
  }

  extent(state: State): [number, number] | null {
    let [min, max] = [Infinity, -Infinity];
    for (const {line} of this.shown(state)) {
      for (const values of [
        line.mean,
        state.bands ? line.low : null,
        state.bands ? line.high : null,
      ]) {
        for (const v of values ?? []) {
          if (!isNumber(v)) continue;
          min = Math.min(min, v);
          max = Math.max(max, v);
        }
      }
    }
    return max >= min ? [min, max] : null;
  }

  draw(state: State, shared: [number, number] | null, width: number): void {
    this.plot?.destroy();
    this.plot = null;
    this.canvas.replaceChildren();
    const shown = this.shown(state);
    this.describe(shown, state);
    if (shown.length === 0) {
      this.canvas.append(h('p', {class: 'empty'}, this.emptyReason(state)));
      return;
    }
    const {x, index} = commonSteps(shown.map((item) => item.curve));
    const data: (number | null)[][] = [x];
    const series: uPlot.Series[] = [{}];
    const bands: uPlot.Band[] = [];
    const few = x.length <= 2;
    const add = (values: Maybe[], curve: Curve, options: uPlot.Series) => {
      data.push(spread(curve.steps, values, index, x.length));
      series.push({spanGaps: true, points: {show: false}, ...options});
      return series.length - 1;
    };
    if (state.bands) {
      for (const {curve, line, look: style} of shown) {
        if (!has(line.low) || !has(line.high)) continue;
        const edge = {stroke: 'transparent', width: 0};
        const high = add(line.high, curve, edge);
        const low = add(line.low, curve, edge);
        bands.push({
          series: [high, low],
          fill: faded(style.colour, shown.length > kMany ? 0.08 : 0.16),
        });
      }
    }
    if (state.seeds && state.scale !== 'success') {
      for (const {curve, look: style} of shown) {
        for (const seed of curve.seeds) {
          const values =
            state.scale === 'raw' ? (seed.raw ?? toRaw(seed.values, this.env)) : seed.values;
          if (!has(values)) continue;
          add(values, curve, {stroke: faded(style.colour, 0.5), width: 0.75});
        }
      }
    }
    for (const {curve, line, look: style} of shown) {
      add(line.mean, curve, {
        stroke: style.colour,
        width: style.width,
        dash: style.dash,
        points: few ? {show: true, size: 6, fill: style.colour} : {show: false},
      });
    }
    const axis = axisStyle();
    this.plot = new uPlot(
      {
        width: Math.max(200, width),
        height: this.height(),
        series,
        bands,
        legend: {show: false},
        padding: [10, 12, 0, 0],
        scales: {
          x: {time: false},
          y: {
            range: (_u, min, max) => {
              const [a, b] = shared ?? [min ?? 0, max ?? 1];
              const pad = (b - a || Math.abs(a) || 1) * 0.06;
              return [a - pad, b + pad];
            },
          },
        },
        axes: [
          {
            ...axis,
            label: 'environment steps',
            size: 26,
            values: (_u, ticks) => ticks.map((v) => compact(v)),
            space: 60,
          },
          {
            ...axis,
            label: kAxisTitles[state.scale],
            size: 46,
            values: (_u, ticks) => ticks.map((v) => tick(v, ticks)),
            space: 32,
          },
        ],
        cursor: {points: {show: false}, drag: {x: true, y: false, setScale: true}, y: false},
        hooks: {
          drawClear: [(u) => this.paintGround(u)],
          drawAxes: [(u) => this.paintReferences(u, state)],
          setCursor: [(u) => this.readout(u, shown, x, state)],
        },
      },
      data as uPlot.AlignedData,
      this.canvas,
    );
    this.tip.hidden = true;
    this.plot.over.append(this.tip);
  }

  private height(): number {
    return this.element.classList.contains('wide') ? 2 * kHeight : kHeight;
  }

  resize(): void {
    const width = this.canvas.clientWidth;
    if (
      this.plot &&
      width > 0 &&
      (width !== this.plot.width || this.height() !== this.plot.height)
    ) {
      this.plot.setSize({width, height: this.height()});
    }
  }

  private emptyReason(state: State): string {
    if (this.curves.every((curve) => !state.methods.has(curve.method))) {
      return 'All methods with runs here are switched off.';
    }
    if (state.scale === 'success') return 'This task defines no success.';
    if (state.scale === 'normalised') {
      return 'No normalised return: random and reference return are not known. Switch to return.';
    }
    return 'No evaluations yet.';
  }

  // The few-shot part of the budget, over which the AUC is taken.
  private paintGround(u: uPlot): void {
    const end = this.env.few_shot_steps;
    if (!isNumber(end)) return;
    const {left, top, width, height} = u.bbox;
    const right = Math.min(left + width, Math.max(left, u.valToPos(end, 'x', true)));
    const from = Math.min(right, Math.max(left, u.valToPos(0, 'x', true)));
    u.ctx.save();
    u.ctx.fillStyle = cssColour('few-shot');
    u.ctx.fillRect(from, top, right - from, height);
    u.ctx.restore();
  }

  private paintReferences(u: uPlot, state: State): void {
    const {left, top, width, height} = u.bbox;
    const ratio = devicePixelRatio || 1;
    const ctx = u.ctx;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.font = `${10 * ratio}px system-ui, sans-serif`;
    ctx.fillStyle = cssColour('muted');
    ctx.strokeStyle = cssColour('muted');
    ctx.lineWidth = ratio;
    const end = this.env.few_shot_steps;
    if (isNumber(end)) {
      const right = u.valToPos(end, 'x', true);
      ctx.textAlign = 'left';
      if (right - left > 50 * ratio) ctx.fillText('few-shot', left + 5 * ratio, top + 12 * ratio);
    }
    const levels: [string, Maybe][] =
      state.scale === 'raw'
        ? [
            ['random', this.env.random_return],
            ['reference', this.env.reference_return],
          ]
        : state.scale === 'normalised'
          ? [
              ['random', 0],
              ['reference', 1],
            ]
          : [];
    ctx.setLineDash([3 * ratio, 4 * ratio]);
    ctx.textAlign = 'right';
    for (const [name, level] of levels) {
      if (!isNumber(level)) continue;
      const y = u.valToPos(level, 'y', true);
      if (y < top || y > top + height) continue;
      ctx.beginPath();
      ctx.moveTo(left, y);
      ctx.lineTo(left + width, y);
      ctx.stroke();
      ctx.fillText(name, left + width - 4 * ratio, y - 4 * ratio);
    }
    ctx.restore();
  }

  private describe(shown: Shown[], state: State): void {
    const sizes = shown.map((item) => item.curve.seeds.length).filter((n) => n > 0);
    if (sizes.length > 0) {
      const [low, high] = [Math.min(...sizes), Math.max(...sizes)];
      const seeds = low === high ? plural(low, 'seed') : `${low} to ${high} seeds`;
      this.note.textContent = low < 3 ? `${seeds}: too few for a band to mean much` : seeds;
      this.note.classList.toggle('warning', low < 3);
    } else {
      this.note.textContent = '';
    }
    const last = (values: Maybe[]) => values.filter(isNumber).at(-1) ?? null;
    const digits = state.scale === 'raw' ? general : (v: Maybe) => fixed(v, 2);
    this.canvas.setAttribute(
      'aria-label',
      `${this.env.name}, ${state.scale}, last evaluation: ` +
        (shown.map((item) => `${item.title} ${digits(last(item.line.mean))}`).join(', ') ||
          'none') +
        '. Arrow keys move the readout.',
    );
  }

  private readout(u: uPlot, shown: Shown[], x: number[], state: State): void {
    const at = u.cursor.idx;
    const left = u.cursor.left ?? -1;
    if (at === null || at === undefined || left < 0) {
      this.tip.hidden = true;
      return;
    }
    const digits = state.scale === 'raw' ? general : (v: Maybe) => fixed(v, 3);
    const lines = shown
      .map((item) => {
        const own = item.curve.steps === x ? at : item.curve.steps.indexOf(x[at]);
        return {
          item,
          value: own >= 0 ? item.line.mean[own] : null,
          low: own >= 0 ? item.line.low?.[own] : null,
          high: own >= 0 ? item.line.high?.[own] : null,
        };
      })
      .filter((line) => isNumber(line.value))
      .sort((a, b) => (b.value as number) - (a.value as number));
    this.tip.replaceChildren(
      h('div', {class: 'tip-head'}, `step ${compact(x[at])}`),
      ...lines
        .slice(0, 12)
        .map((line) =>
          h(
            'div',
            {class: 'tip-line'},
            swatch(line.item.look),
            h('span', {class: 'tip-name'}, line.item.title),
            h('span', {class: 'num'}, digits(line.value)),
            h(
              'span',
              {class: 'num muted'},
              isNumber(line.low) && isNumber(line.high)
                ? `${digits(line.low)} … ${digits(line.high)}`
                : '',
            ),
          ),
        ),
      lines.length > 12 ? h('div', {class: 'muted'}, `and ${lines.length - 12} more`) : '',
    );
    this.tip.hidden = lines.length === 0;
    const room = u.over.clientWidth;
    this.tip.classList.toggle('left', left > room / 2);
    this.tip.style.left = left > room / 2 ? '' : `${left + 12}px`;
    this.tip.style.right = left > room / 2 ? `${room - left + 12}px` : '';
  }

  private move(event: KeyboardEvent): void {
    const u = this.plot;
    if (!u) return;
    const count = u.data[0].length;
    const now = u.cursor.left !== undefined && u.cursor.left >= 0 ? (u.cursor.idx ?? -1) : -1;
    const next: Record<string, number> = {
      ArrowRight: Math.min(count - 1, now + 1),
      ArrowLeft: Math.max(0, now - 1),
      Home: 0,
      End: count - 1,
    };
    if (event.key === 'Escape') u.setCursor({left: -10, top: -10});
    if (!(event.key in next)) return;
    event.preventDefault();
    u.setCursor({left: u.valToPos(u.data[0][next[event.key]], 'x'), top: 10});
  }
}

function tick(value: number | null, ticks: (number | null)[]): string {
  if (!isNumber(value)) return '';
  const step = Math.abs((ticks[1] ?? 1) - (ticks[0] ?? 0)) || 1;
  if (Math.abs(value) >= 1e4) return compact(value);
  return fixed(value, Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9))));
}

// A piece of the method's line.
export function swatch(style: Look): HTMLElement {
  const canvas = h('canvas', {class: 'swatch', width: 40, height: 8, 'aria-hidden': 'true'});
  const ctx = canvas.getContext('2d');
  if (ctx) {
    ctx.strokeStyle = style.colour;
    ctx.lineWidth = style.width * 2;
    ctx.setLineDash(style.dash.map((d) => d * 1.6));
    ctx.beginPath();
    ctx.moveTo(0, 4);
    ctx.lineTo(40, 4);
    ctx.stroke();
  }
  return canvas;
}

const kRoles: [string, string][] = [
  ['transfer', 'Transfer'],
  ['scratch', 'From scratch'],
  ['baseline', 'Baselines'],
  ['control', 'Controls'],
  ['ablation', 'Ablations'],
  ['reference', 'References'],
  ['', 'Methods'],
];

export function roleTitle(role: string): string {
  return kRoles.find(([name]) => name === role)?.[1] ?? role;
}

export interface CurvesPanel extends Panel {
  draw: () => Promise<number>;
}

export function curvesPanel(
  report: Report,
  redrawn: (milliseconds: number) => void,
): CurvesPanel | null {
  const withCurves = new Set(report.curves.map((curve) => curve.env));
  const known = new Set(report.envs.map((env) => env.name));
  const envs: Env[] = [
    ...report.envs.filter((env) => withCurves.has(env.name)),
    ...[...withCurves]
      .filter((name) => !known.has(name))
      .map((name) => ({
        name,
        id: name,
        family: '',
        steps: null,
        few_shot_steps: null,
        random_return: null,
        reference_return: null,
      })),
  ];
  if (envs.length === 0) return null;
  const titles = new Map(report.methods.map((method) => [method.name, method.title]));
  const names = [...new Set(report.curves.map((curve) => curve.method))];
  const rank = new Map(report.methods.map((method, i) => [method.name, i]));
  names.sort((a, b) => (rank.get(a) ?? 1e9) - (rank.get(b) ?? 1e9));
  const roleOf = (name: string) => {
    const role = report.methods.find((method) => method.name === name)?.role ?? '';
    return kRoles.some(([known]) => known === role) ? role : '';
  };
  const key = names.filter((name) => ['transfer', 'scratch', 'baseline'].includes(roleOf(name)));
  const familyOf = (env: Env) =>
    report.families.find((family) => family.envs.includes(env.name))?.name ?? env.family;
  const families = [...new Set(envs.map(familyOf))];
  const normalised = report.curves.some((curve) => has(curve.mean));
  const state: State = {
    scale: normalised ? 'normalised' : 'raw',
    bands: true,
    seeds: false,
    sameAxis: false,
    methods: new Set(names.length > kMany && key.length > 0 ? key : names),
    families: new Set(families),
  };

  const byEnv = new Map<string, Curve[]>(envs.map((env) => [env.name, []]));
  for (const curve of report.curves) byEnv.get(curve.env)?.push(curve);
  const charts = envs.map((env) => new Chart(env, byEnv.get(env.name) ?? [], titles));

  // Gives the milliseconds that drawing took. uPlot paints in microtasks, which come before ours.
  async function draw(): Promise<number> {
    const start = performance.now();
    const visible = charts.filter((chart) => {
      const on = state.families.has(familyOf(chart.env));
      chart.element.hidden = !on;
      return on;
    });
    let shared: [number, number] | null = null;
    if (state.sameAxis) {
      const all = visible.map((chart) => chart.extent(state)).filter((e) => e !== null);
      if (all.length > 0) {
        shared = [Math.min(...all.map((e) => e[0])), Math.max(...all.map((e) => e[1]))];
      }
    }
    // all widths before the first change: one layout instead of one per chart
    const widths = visible.map((chart) => chart.canvas.clientWidth);
    visible.forEach((chart, i) => chart.draw(state, shared, widths[i]));
    await Promise.resolve();
    return performance.now() - start;
  }
  const redraw = () => {
    void draw().then(redrawn);
  };

  const chips = new Map<string, HTMLInputElement>();
  const legend = h('div', {class: 'legend', role: 'group', 'aria-label': 'Methods'});
  for (const [role, title] of kRoles) {
    const own = names.filter((name) => roleOf(name) === role);
    if (own.length === 0) continue;
    legend.append(
      h(
        'div',
        {class: 'legend-group'},
        h('span', {class: 'legend-role'}, title),
        ...own.map((name) => {
          const chip = toggle(
            titles.get(name) ?? name,
            state.methods.has(name),
            (on) => {
              if (on) state.methods.add(name);
              else state.methods.delete(name);
              redraw();
            },
            {class: 'chip'},
          );
          chip.dataset.method = name;
          chips.set(name, chip.querySelector('input') as HTMLInputElement);
          return chip;
        }),
      ),
    );
  }
  const paintSwatches = () => {
    for (const [name, input] of chips) {
      input.parentElement?.querySelector('canvas')?.remove();
      input.after(swatch(look(name)));
    }
  };
  paintSwatches();
  const choose = (wanted: string[]) => {
    state.methods = new Set(wanted);
    for (const [name, input] of chips) input.checked = state.methods.has(name);
    redraw();
  };
  const quick = (title: string, wanted: string[]) =>
    h('button', {type: 'button', class: 'quiet', onclick: () => choose(wanted)}, title);

  const scales: {value: Scale; title: string; hint: string}[] = [
    {value: 'normalised', title: 'Normalised', hint: '0 is the random policy, 1 the reference'},
    {value: 'raw', title: 'Return', hint: "In the task's own unit"},
  ];
  if (report.curves.some((curve) => has(curve.success))) {
    scales.push({
      value: 'success',
      title: 'Success',
      hint: 'Share of episodes that reach the goal',
    });
  }
  const controls = h(
    'div',
    {class: 'controls no-print'},
    choice('Scale', scales, state.scale, (value) => {
      state.scale = value;
      redraw();
    }),
    h(
      'div',
      {class: 'toggles'},
      toggle('Bands', state.bands, (on) => {
        state.bands = on;
        redraw();
      }),
      toggle(
        'Seeds',
        state.seeds,
        (on) => {
          state.seeds = on;
          redraw();
        },
        {title: 'A thin line per seed'},
      ),
      envs.length > 1
        ? toggle('Same y axis', false, (on) => {
            state.sameAxis = on;
            redraw();
          })
        : null,
    ),
    families.length > 1
      ? h(
          'div',
          {class: 'toggles', role: 'group', 'aria-label': 'Families'},
          h('span', {class: 'muted'}, 'Families'),
          ...families.map((family) => {
            const box = toggle(
              family || kAbsent,
              true,
              (on) => {
                if (on) state.families.add(family);
                else state.families.delete(family);
                redraw();
              },
              {class: 'chip'},
            );
            box.dataset.family = family;
            return box;
          }),
        )
      : null,
    names.length > 2
      ? h(
          'div',
          {class: 'toggles'},
          quick('All methods', names),
          key.length > 0 && key.length < names.length ? quick('Without controls', key) : null,
          quick('None', []),
        )
      : null,
  );

  // What is on the screen, a line per evaluation.
  const asCsv = () =>
    csv([
      ['environment', 'method', 'step', 'normalised', 'low', 'high', 'return', 'success'],
      ...charts
        .filter((chart) => !chart.element.hidden)
        .flatMap((chart) =>
          (byEnv.get(chart.env.name) ?? [])
            .filter((curve) => state.methods.has(curve.method))
            .flatMap((curve) =>
              curve.steps.map((step, i) => [
                curve.env,
                curve.method,
                step,
                curve.mean?.[i],
                curve.low?.[i],
                curve.high?.[i],
                curve.raw_mean?.[i],
                curve.success?.[i],
              ]),
            ),
        ),
    ]);

  const grid = h('div', {class: 'charts'}, ...charts.map((chart) => chart.element));
  new ResizeObserver(() => {
    for (const chart of charts) chart.resize();
  }).observe(grid);
  onThemeChange(() => {
    paintSwatches();
    redraw();
  });
  const result = panel(
    'curves',
    'Learning curves',
    'Curves',
    'Mean over seeds of the evaluation return against environment steps; the band is the 95% ' +
      'bootstrap interval of the mean. The shaded part is the few-shot budget, over which the AUC ' +
      'is taken. Drag to zoom, double-click to go back.',
    controls,
    legend,
    grid,
    h('div', {class: 'under'}, copyButton('Copy as CSV', asCsv)),
  );
  return {...result, draw};
}
