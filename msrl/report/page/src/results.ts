// The tables of figures: main table with the paper's figures, gains, controls, ablations.

import {
  Cell,
  Gain,
  Improvement,
  Method,
  RawReturn,
  Report,
  Row,
  Selection,
  SuccessCell,
  ThresholdCell,
} from './data';
import {Child, choice, copyButton, h, toggle} from './dom';
import {
  compact,
  count,
  fixed,
  general,
  interval,
  isNumber,
  kAbsent,
  Maybe,
  plural,
  signed,
} from './format';
import {swatch} from './curves';
import {Panel, panel} from './panel';
import {niceAxis, strip, stripAxis} from './strip';
import {Column, makeTable, tableBlock, tableCsv} from './table';
import {look, onThemeChange} from './theme';

type Metric = 'auc' | 'iqm' | 'final' | 'paper-style' | 'success' | 'threshold';

const kMetrics: {value: Metric; title: string; hint: string; note: string}[] = [
  {
    value: 'auc',
    title: 'AUC',
    hint: 'Few-shot AUC, mean ± standard deviation over seeds',
    note:
      'Mean ± standard deviation over seeds of the normalised return, averaged over the ' +
      'few-shot part of the budget.',
  },
  {
    value: 'iqm',
    title: 'IQM',
    hint: 'Interquartile mean of the AUC with its 95% interval',
    note: 'Interquartile mean of the few-shot AUC with its 95% stratified bootstrap interval.',
  },
  {
    value: 'final',
    title: 'Final',
    hint: 'Normalised return at the end',
    note: 'Normalised return at the end of the budget, mean ± standard deviation over seeds.',
  },
  {
    value: 'paper-style',
    title: 'Paper-style AUC',
    hint: 'AUC with the best final return of the comparison as 1',
    note:
      'Few-shot AUC with 1 set to the best final return within the comparison, as the paper ' +
      'normalises.',
  },
  {
    value: 'success',
    title: 'Success',
    hint: 'Share of episodes that reach the goal',
    note:
      'Share of evaluation episodes at the end that reach the goal; a dash where the task ' +
      'defines no success.',
  },
  {
    value: 'threshold',
    title: 'Steps to 80%',
    hint: 'First evaluation at 80% of the best final return',
    note:
      'Median steps to the first evaluation at 80% of the best final return of the comparison, ' +
      'over the seeds that get there; “never” where none does.',
  },
];

type Any = Cell | SuccessCell | ThresholdCell | null | undefined;

function pickCells(row: Row, metric: Metric): Any[] {
  switch (metric) {
    case 'auc':
    case 'iqm':
      return row.cells ?? [];
    case 'final':
      return row.final ?? [];
    case 'paper-style':
      return row.auc_paper_style ?? [];
    case 'success':
      return row.success ?? [];
    case 'threshold':
      return row.threshold ?? [];
  }
}

function mainValue(cell: Any, metric: Metric): number | null {
  if (!cell) return null;
  const value =
    metric === 'threshold'
      ? (cell as ThresholdCell).median
      : metric === 'iqm'
        ? (cell as Cell).iqm
        : (cell as Cell).mean;
  return isNumber(value) ? value : null;
}

// The interval that belongs to the figure: of the interquartile mean, or of the mean if known.
function limits(cell: Cell | null | undefined, metric: Metric): [Maybe, Maybe] {
  if (metric !== 'iqm' && isNumber(cell?.mean_low)) return [cell?.mean_low, cell?.mean_high];
  return [cell?.low, cell?.high];
}

function hasMetric(rows: Row[], metric: Metric): boolean {
  return rows.some((row) =>
    pickCells(row, metric).some((cell) =>
      metric === 'threshold'
        ? isNumber((cell as ThresholdCell | null)?.n)
        : mainValue(cell, metric) !== null,
    ),
  );
}

function numbers(first: string, second: string): Child {
  return h('span', {class: 'value'}, first, second ? h('span', {class: 'spread'}, second) : null);
}

function cellContent(cell: Any, metric: Metric, best: boolean, paper: boolean): Child[] {
  if (!cell) return [h('span', {class: 'muted', title: 'no finished run'}, kAbsent)];
  const out: Child[] = [];
  if (metric === 'threshold') {
    const {median, reached, n} = cell as ThresholdCell;
    out.push(
      isNumber(median)
        ? numbers(compact(median), '')
        : h('span', {class: 'muted'}, isNumber(n) ? 'never' : kAbsent),
    );
    if (isNumber(n))
      out.push(h('span', {class: 'second'}, `${count(reached ?? 0)} of ${count(n)}`));
  } else if (metric === 'success') {
    out.push(numbers(fixed((cell as SuccessCell).mean, 2), ''));
  } else {
    const full = cell as Cell;
    if (metric === 'iqm') {
      out.push(numbers(fixed(full.iqm), ''));
      out.push(h('span', {class: 'second'}, interval(full.low, full.high, 2)));
    } else {
      out.push(numbers(fixed(full.mean), isNumber(full.std) ? ` ±${fixed(full.std)}` : ''));
    }
    if (paper && isNumber(full.paper?.mean)) {
      const std = isNumber(full.paper?.std) ? ` ±${fixed(full.paper?.std)}` : '';
      out.push(h('span', {class: 'second paper'}, `${fixed(full.paper?.mean)}${std}`));
    }
  }
  return [h('span', {class: best ? 'cell best' : 'cell'}, ...out)];
}

// The row of a column that is better than all others beyond doubt: intervals don't touch.
function clearWinner(
  rows: Row[],
  methods: Map<string, Method>,
  column: number,
  metric: Metric,
): Row | null {
  if (metric === 'success' || metric === 'threshold') return null;
  const own = rows
    .filter((row) => methods.get(row.method)?.role !== 'reference')
    .map((row) => {
      const cell = pickCells(row, metric)[column] as Cell | null;
      const [low, high] = limits(cell, metric);
      return {row, low: low as number, high: high as number};
    })
    .filter(({low, high}) => isNumber(low) && isNumber(high));
  if (own.length < 2) return null;
  const top = own.reduce((a, b) => (b.low > a.low ? b : a));
  return own.every((other) => other === top || other.high < top.low) ? top.row : null;
}

function methodCell(name: string, methods: Map<string, Method>, drawn: boolean): Child[] {
  const method = methods.get(name);
  const mark = drawn ? swatch(look(name)) : h('span', {class: 'swatch'});
  return [
    h('span', {class: 'method'}, mark, h('span', {}, method?.title ?? name)),
    method?.component && method.component !== 'none'
      ? h('span', {class: 'second'}, method.component)
      : null,
  ].filter((child) => child !== null);
}

function resultColumns(report: Report, rows: Row[], metric: Metric, paper: boolean): Column<Row>[] {
  const methods = new Map(report.methods.map((method) => [method.name, method]));
  const drawn = new Set(report.curves.map((curve) => curve.method));
  const winners = report.main.columns.map((_, i) => clearWinner(rows, methods, i, metric));
  const columns: Column<Row>[] = [
    {
      title: 'Method',
      value: (row) => methods.get(row.method)?.title ?? row.method,
      cell: (row) => methodCell(row.method, methods, drawn.has(row.method)),
      export: [
        ['method', (row) => row.method],
        ['component', (row) => methods.get(row.method)?.component ?? ''],
      ],
    },
  ];
  report.main.columns.forEach((title, i) => {
    const at = (row: Row) => pickCells(row, metric)[i];
    const field = (name: string) => (row: Row) => (at(row) as Record<string, Maybe> | null)?.[name];
    const names =
      metric === 'threshold'
        ? ['median', 'reached', 'n']
        : metric === 'success'
          ? ['mean', 'n']
          : ['mean', 'std', 'n', 'iqm', 'low', 'high', 'mean_low', 'mean_high'];
    columns.push({
      title,
      kind: 'number',
      value: (row) => mainValue(at(row), metric),
      cell: (row) => cellContent(at(row), metric, winners[i] === row, paper),
      export: [
        ...names.map((name) => [`${title} ${name}`, field(name)] as [string, (row: Row) => Maybe]),
        ...(paper
          ? [
              [`${title} paper`, (row: Row) => (at(row) as Cell | null)?.paper?.mean] as [
                string,
                (row: Row) => Maybe,
              ],
            ]
          : []),
      ],
    });
  });
  // the last column once more as a dot plot
  const last = report.main.columns.length - 1;
  if (metric !== 'threshold' && metric !== 'success' && last >= 0) {
    const cell = (row: Row) => pickCells(row, metric)[last] as Cell | null | undefined;
    const low = (row: Row) => limits(cell(row), metric)[0];
    const high = (row: Row) => limits(cell(row), metric)[1];
    const all = rows.flatMap((row) => [
      low(row),
      high(row),
      mainValue(cell(row), metric),
      paper ? cell(row)?.paper?.mean : null,
    ]);
    if (all.some(isNumber)) {
      // differences below a hundredth must not fill the axis
      const known = all.filter(isNumber);
      const middle = (Math.min(...known) + Math.max(...known)) / 2;
      const axis = niceAxis(all, [middle - 0.05, middle + 0.05]);
      columns.push({
        title: `${report.main.columns[last]}, 95%`,
        kind: 'plot',
        value: () => null,
        head: () => stripAxis(axis),
        cell: (row) => {
          const role = methods.get(row.method)?.role ?? '';
          const kind = role === 'transfer' ? 'main' : 'plain';
          return strip(
            axis,
            [
              {value: paper ? cell(row)?.paper?.mean : null, kind: 'paper'},
              {value: mainValue(cell(row), metric), kind},
            ],
            {low: low(row), high: high(row), kind},
          );
        },
      });
    }
  }
  return columns;
}

function seedsNote(rows: Row[], methods: Map<string, Method>): string {
  const learners = rows.filter((row) => methods.get(row.method)?.role !== 'reference');
  const sizes = learners
    .flatMap((row) => (row.cells ?? []).map((cell) => cell?.n))
    .filter(isNumber);
  if (sizes.length === 0) return '';
  const [low, high] = [Math.min(...sizes), Math.max(...sizes)];
  return low === high ? `${plural(low, 'run')} per cell.` : `${low} to ${high} runs per cell.`;
}

function hasPaper(rows: Row[]): boolean {
  return rows.some((row) => (row.cells ?? []).some((cell) => isNumber(cell?.paper?.mean)));
}

const kPaperNote = 'Slanted and hollow: the paper’s figure, from other tasks’ returns and budgets.';

// A table of methods × families with a switch between the figures.
function resultsTable(report: Report, rows: Row[], label: string, metrics: Metric[]): HTMLElement {
  const methods = new Map(report.methods.map((method) => [method.name, method]));
  let metric: Metric = 'auc';
  let paper = hasPaper(rows);
  const place = h('div');
  const note = h('p', {class: 'note'});
  let columns: Column<Row>[] = [];
  const fill = () => {
    const withPaper = paper && (metric === 'auc' || metric === 'paper-style');
    columns = resultColumns(report, rows, metric, withPaper);
    place.replaceChildren(
      makeTable({
        label,
        columns,
        rows,
        group: (row) => methods.get(row.method)?.role ?? '',
        rowClass: (row) => (methods.get(row.method)?.role === 'reference' ? 'reference' : ''),
      }).element,
    );
    const kind = kMetrics.find((m) => m.value === metric);
    note.textContent = [
      kind?.note,
      seedsNote(rows, methods),
      metric === 'success' || metric === 'threshold'
        ? ''
        : 'Bold: its 95% interval lies above all others of the column.',
      withPaper ? kPaperNote : '',
    ]
      .filter(Boolean)
      .join(' ');
  };
  fill();
  onThemeChange(fill);
  const offered = kMetrics.filter((m) => metrics.includes(m.value) && hasMetric(rows, m.value));
  return h(
    'div',
    {class: 'table-block'},
    h(
      'div',
      {class: 'controls no-print'},
      offered.length > 1
        ? choice('Figure', offered, metric, (value) => {
            metric = value;
            fill();
          })
        : null,
      hasPaper(rows)
        ? h(
            'div',
            {class: 'toggles'},
            toggle('Paper’s figures', paper, (on) => {
              paper = on;
              fill();
            }),
          )
        : null,
    ),
    place,
    note,
    h(
      'div',
      {class: 'under'},
      copyButton('Copy as CSV', () => tableCsv(columns, rows)),
    ),
  );
}

export function mainPanel(report: Report): Panel | null {
  if (report.main.rows.length === 0) return null;
  return panel(
    'main',
    'Results by family',
    'Results',
    null,
    resultsTable(
      report,
      report.main.rows,
      'Results by method and family',
      kMetrics.map((metric) => metric.value),
    ),
  );
}

// Of tasks whose returns cannot be normalised.
export function rawPanel(report: Report): Panel | null {
  if (report.raw_returns.length === 0) return null;
  const titles = new Map(report.methods.map((method) => [method.name, method.title]));
  const figure = (title: string, of: (row: RawReturn) => Cell | null): Column<RawReturn> => ({
    title,
    kind: 'number',
    value: (row) => of(row)?.mean,
    cell: (row) => {
      const cell = of(row);
      if (!isNumber(cell?.mean)) return kAbsent;
      return isNumber(cell.std) ? `${general(cell.mean)} ± ${general(cell.std)}` : general(cell.mean);
    },
    export: [
      [`${title} mean`, (row) => of(row)?.mean],
      [`${title} std`, (row) => of(row)?.std],
      [`${title} n`, (row) => of(row)?.n],
    ],
  });
  return panel(
    'raw',
    'Raw returns',
    'Raw returns',
    'Tasks without a known random and reference return, in their own unit: mean ± standard ' +
      'deviation over seeds.',
    tableBlock<RawReturn>({
      label: 'Raw returns',
      rows: report.raw_returns,
      heading: (row) => row.env,
      columns: [
        {
          title: 'Method',
          value: (row) => titles.get(row.method) ?? row.method,
          export: [
            ['env', (row) => row.env],
            ['method', (row) => row.method],
          ],
        },
        figure('Few-shot return', (row) => row.few_shot),
        figure('Final return', (row) => row.final),
      ],
    }),
  );
}

// Of lists in settings and of random search.
export function selectionsPanel(report: Report): Panel | null {
  if (report.selections.length === 0) return null;
  const titles = new Map(report.methods.map((method) => [method.name, method.title]));
  const score = (row: Selection, value: Maybe) => (row.raw ? general(value) : fixed(value, 3));
  const figure = (title: string, of: (row: Selection) => Maybe): Column<Selection> => ({
    title,
    kind: 'number',
    value: of,
    cell: (row) => score(row, of(row)),
  });
  const seeds = new Set(report.selections.flatMap((row) => row.seeds));
  return panel(
    'selections',
    'Best of the variants',
    'Variants',
    [
      'By the mean few-shot AUC over the tasks and seeds that all variants of a method have. ',
      h(
        'strong',
        {},
        `Each was selected on ${plural(seeds.size, 'seed')} that it was measured with, so its score ` +
          'flatters it: run the chosen settings on other seeds before you report them.',
      ),
    ],
    tableBlock<Selection>({
      label: 'Best of the variants',
      rows: report.selections,
      columns: [
        {title: 'Method', value: (row) => row.of},
        {title: 'Best', value: (row) => titles.get(row.best) ?? row.best},
        {title: 'Settings', value: (row) => row.settings.join(' ')},
        figure('Score', (row) => row.score),
        figure('Second', (row) => row.next),
        figure('Worst', (row) => row.last),
        {
          title: 'Variants',
          kind: 'number',
          value: (row) => row.variants,
          cell: (row) =>
            row.scored < row.variants ? `${row.scored} of ${row.variants}` : count(row.variants),
        },
        {title: 'Seeds', kind: 'number', value: (row) => row.seeds.length},
      ],
    }),
  );
}

export function controlsPanel(report: Report): Panel | null {
  if (report.controls.rows.length === 0) return null;
  return panel(
    'controls',
    'Negative controls',
    'Controls',
    'The same start with its meaning taken away: random weights, shuffled values, a lift that ' +
      'does not align, observations instead of matrices. A gain that a control shares does not come ' +
      'from matrix values.',
    resultsTable(report, report.controls.rows, 'Negative controls', ['auc', 'iqm', 'final']),
  );
}

export function ablationsPanel(report: Report): Panel | null {
  if (report.ablations.rows.length === 0) return null;
  return panel(
    'ablations',
    'Ablations',
    'Ablations',
    'MSRL with one part left out.',
    resultsTable(report, report.ablations.rows, 'Ablations', ['auc', 'iqm', 'final']),
  );
}

// "all" stands for the mean over all targets, unless an environment has that name.
export function target(env: string, report: Report): Child {
  const whole = env === 'all' && !report.envs.some((known) => known.name === env);
  return whole ? h('strong', {}, 'All targets') : env;
}

// The interval's side of zero.
function side(low: Maybe, high: Maybe): string {
  if (isNumber(low) && low > 0) return 'up';
  if (isNumber(high) && high < 0) return 'down';
  return 'unclear';
}

export function tone(gain: {low: Maybe; high: Maybe; n: Maybe} | undefined, report: Report): string {
  if (!gain || (isNumber(gain.n) && gain.n < report.min_verdict_pairs)) return 'unclear';
  return side(gain.low, gain.high);
}

// The first comparison is the report's question; its rows belong together.
function byComparison<T extends {a: string; b: string}>(all: T[]): T[] {
  const key = (item: T) => JSON.stringify([item.a, item.b]);
  return [...new Set(all.map(key))].flatMap((pair) => all.filter((item) => key(item) === pair));
}

export function gainsPanel(report: Report): Panel | null {
  const {gains} = report;
  const improvement = report.main.improvement;
  if (gains.length === 0 && improvement.length === 0) return null;
  const titles = new Map(report.methods.map((method) => [method.name, method.title]));
  const name = (method: string) => titles.get(method) ?? method;
  const content: Child[] = [];
  if (gains.length > 0) {
    const papers = [...new Set(gains.map((gain) => gain.paper).filter(isNumber))];
    const axis = niceAxis(
      gains.flatMap((g) => [g.mean, g.low, g.high]),
      [0, ...papers],
      5,
    );
    const rules = (gain: Gain) => [
      {value: 0, kind: 'zero'},
      ...(isNumber(gain.paper) ? [{value: gain.paper, kind: 'paper'}] : []),
    ];
    const columns: Column<Gain>[] = [
      {
        title: 'Target',
        value: (g) => g.env,
        cell: (g) => target(g.env, report),
        export: [
          ['target', (g) => g.env],
          ['a', (g) => g.a],
          ['b', (g) => g.b],
        ],
      },
      {
        title: 'Gain in AUC with its 95% interval',
        kind: 'plot',
        value: () => null,
        head: () => stripAxis(axis),
        cell: (g) => {
          const kind = `${tone(g, report)} ${isNumber(g.mean) && g.mean < 0 ? 'negative' : ''}`;
          return strip(axis, [{value: g.mean, kind}], {low: g.low, high: g.high, kind}, rules(g));
        },
      },
      {
        title: 'Gain',
        kind: 'number',
        value: (g) => g.mean,
        cell: (g) => h('span', {class: `value ${tone(g, report)}`}, signed(g.mean)),
        export: [['gain', (g) => g.mean]],
      },
      {
        title: '95% interval',
        kind: 'number',
        value: (g) => g.low,
        cell: (g) => interval(g.low, g.high),
        export: [
          ['low', (g) => g.low],
          ['high', (g) => g.high],
        ],
      },
      {title: 'Pairs', kind: 'number', value: (g) => g.n, hint: 'Seeds that both methods have, in every task'},
      {
        title: 'Wins',
        kind: 'number',
        value: (g) => g.wins,
        hint: 'Seeds with a positive difference, in the mean over tasks',
        cell: (g) => (isNumber(g.wins) && isNumber(g.n) ? `${g.wins} of ${g.n}` : kAbsent),
      },
    ];
    if (papers.length > 0) {
      columns.push({
        title: 'Paper',
        kind: 'number',
        value: (g) => g.paper,
        cell: (g) => h('span', {class: 'paper'}, signed(g.paper, 2)),
      });
    }
    content.push(
      tableBlock({
        label: 'Gains in AUC',
        columns,
        rows: byComparison(gains),
        heading: (g) => `${name(g.a)} − ${name(g.b)}`,
      }),
    );
  }
  if (improvement.length > 0) {
    const axis = {min: 0, max: 1, ticks: [0, 0.25, 0.5, 0.75, 1], digits: 2};
    const kind = (row: Improvement) =>
      side(isNumber(row.low) ? row.low - 0.5 : null, isNumber(row.high) ? row.high - 0.5 : null) +
      (isNumber(row.p) && row.p < 0.5 ? ' negative' : '');
    content.push(
      h('h3', {}, 'Probability of improvement'),
      h(
        'p',
        {class: 'note'},
        'How often a run of the first method beats a run of the second; ' +
          'ties count half, 0.5 is no difference.',
      ),
      tableBlock<Improvement>({
        label: 'Probability of improvement',
        rows: byComparison(improvement),
        heading: (row) => `${name(row.a)} over ${name(row.b)}`,
        columns: [
          {
            title: 'Target',
            value: (row) => row.env,
            cell: (row) => target(row.env, report),
            export: [
              ['target', (row) => row.env],
              ['a', (row) => row.a],
              ['b', (row) => row.b],
            ],
          },
          {
            title: 'Probability with its 95% interval',
            kind: 'plot',
            value: () => null,
            head: () => stripAxis(axis),
            cell: (row) =>
              strip(
                axis,
                [{value: row.p, kind: kind(row)}],
                {low: row.low, high: row.high, kind: kind(row)},
                [{value: 0.5, kind: 'zero'}],
              ),
          },
          {
            title: 'Probability',
            kind: 'number',
            value: (row) => row.p,
            cell: (row) => fixed(row.p, 2),
          },
          {
            title: '95% interval',
            kind: 'number',
            value: (row) => row.low,
            cell: (row) => interval(row.low, row.high, 2),
            export: [
              ['low', (row) => row.low],
              ['high', (row) => row.high],
            ],
          },
        ],
      }),
    );
  }
  return panel(
    'gains',
    'Gains',
    'Gains',
    'Difference of the few-shot AUC between two methods, paired by seed. An interval that contains ' +
      'zero does not show a gain, nor do fewer than five pairs. Filled: clear; orange: worse; dashed ' +
      'line: the paper’s gain.',
    ...content,
  );
}
