// All tasks together: the interquartile mean along the budget, and performance profiles.

import uPlot from 'uplot';

import {Aggregate, Report} from './data';
import {copyButton, h} from './dom';
import {csv, fixed, isNumber, Maybe} from './format';
import {axisStyle, swatch} from './curves';
import {Panel, panel} from './panel';
import {faded, look, onThemeChange} from './theme';

const kHeight = 300;
const kMany = 8;

const numbers = (values: Maybe[]) => values.map((v) => (isNumber(v) ? v : null));

class AggregateChart {
  readonly element: HTMLElement;
  private readonly canvas = h('div', {class: 'chart-canvas', role: 'img'});
  private plot: uPlot | null = null;

  constructor(
    title: string,
    private readonly x: string,
    private readonly y: string,
    private readonly curves: Aggregate[],
  ) {
    this.element = h(
      'figure',
      {class: 'chart'},
      h('figcaption', {}, h('strong', {}, title)),
      this.canvas,
    );
    this.canvas.setAttribute('aria-label', `${title}: ${y} by ${x}`);
  }

  draw(): void {
    this.plot?.destroy();
    const data: (number | null)[][] = [this.curves[0].at];
    const series: uPlot.Series[] = [{}];
    const bands: uPlot.Band[] = [];
    const add = (values: Maybe[], options: uPlot.Series) => {
      data.push(numbers(values));
      series.push({points: {show: false}, ...options});
      return series.length - 1;
    };
    if (this.curves.length <= kMany) {
      for (const curve of this.curves) {
        if (!curve.low.some(isNumber)) continue;
        const edge = {stroke: 'transparent', width: 0};
        bands.push({
          series: [add(curve.high, edge), add(curve.low, edge)],
          fill: faded(look(curve.method).colour, 0.12),
        });
      }
    }
    for (const curve of this.curves) {
      const {colour, width, dash} = look(curve.method);
      add(curve.value, {stroke: colour, width, dash});
    }
    const axis = axisStyle();
    const digits = (values: number[]) => values.map((v) => fixed(v, 2));
    this.plot = new uPlot(
      {
        width: Math.max(200, this.canvas.clientWidth),
        height: kHeight,
        series,
        bands,
        legend: {show: false},
        padding: [10, 12, 0, 0],
        scales: {x: {time: false}},
        axes: [
          {...axis, label: this.x, values: (_u, ticks) => digits(ticks), space: 60},
          {...axis, label: this.y, values: (_u, ticks) => digits(ticks), space: 32, size: 46},
        ],
        cursor: {show: false},
      },
      data as uPlot.AlignedData,
      this.canvas,
    );
  }

  resize(): void {
    const width = this.canvas.clientWidth;
    if (this.plot && width > 0 && width !== this.plot.width) {
      this.plot.setSize({width, height: kHeight});
    }
  }
}

export interface AggregatesPanel extends Panel {
  draw: () => void;
}

// Only of several tasks: of one they are its own curves.
export function aggregatesPanel(report: Report): AggregatesPanel | null {
  const {aggregate_curves: curves, profiles} = report;
  if (curves.length === 0 || profiles.length === 0 || report.envs.length < 2) return null;
  const titles = new Map(report.methods.map((method) => [method.name, method.title]));
  const charts = [
    new AggregateChart(
      'Interquartile mean over all tasks',
      'share of the budget',
      'normalised return',
      curves,
    ),
    new AggregateChart(
      'Performance profile at the end',
      'normalised return',
      'share of runs above it',
      profiles,
    ),
  ];
  const legend = h('div', {class: 'legend'});
  const fill = () => {
    legend.replaceChildren(
      ...curves.map((curve) =>
        h(
          'span',
          {class: 'legend-item'},
          swatch(look(curve.method)),
          ` ${titles.get(curve.method) ?? curve.method}`,
        ),
      ),
    );
    for (const chart of charts) chart.draw();
  };
  const grid = h('div', {class: 'charts'}, ...charts.map((chart) => chart.element));
  new ResizeObserver(() => {
    for (const chart of charts) chart.resize();
  }).observe(grid);
  onThemeChange(fill);
  const asCsv = () =>
    csv([
      ['figure', 'method', 'at', 'value', 'low', 'high'],
      ...[
        {name: 'interquartile mean', rows: curves},
        {name: 'profile', rows: profiles},
      ].flatMap(({name, rows}) =>
        rows.flatMap((row) =>
          row.at.map((at, i) => [name, row.method, at, row.value[i], row.low[i], row.high[i]]),
        ),
      ),
    ]);
  const result = panel(
    'aggregates',
    'All tasks together',
    'All tasks',
    'Of methods with finished runs in every task. Left: mean of the middle half of all runs along ' +
      'the budget. Right: how many runs end above a return; higher is better everywhere, and a ' +
      'method that is above another at every return is better without any choice of an average. ' +
      'Bands: 95% stratified bootstrap.',
    legend,
    grid,
    h('div', {class: 'under'}, copyButton('Copy as CSV', asCsv)),
  );
  return {...result, draw: fill};
}
