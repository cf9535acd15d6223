// Header, verdicts and the plain tables.

import {
  Branch,
  Cost,
  DiagnosticRow,
  Fairness,
  Gain,
  Predictor,
  PretrainingRow,
  Report,
  Verdict,
} from './data';
import {Child, choice, copyButton, h} from './dom';
import {
  count,
  duration,
  fixed,
  general,
  interval,
  isNumber,
  kAbsent,
  Maybe,
  plural,
  signed,
} from './format';
import {Panel, panel} from './panel';
import {target, tone} from './results';
import {niceAxis, strip, stripAxis} from './strip';
import {Column, tableBlock} from './table';
import {currentScheme, Scheme, setScheme} from './theme';

const kProblemsShown = 8;
const kComparisonsShown = 3;

function commandBlock(commands: string[]): HTMLElement {
  return h(
    'div',
    {class: 'commands'},
    ...commands.map((command) =>
      h(
        'div',
        {class: 'command'},
        h('code', {tabindex: 0}, command),
        copyButton('Copy', () => command),
      ),
    ),
  );
}

function problemList(report: Report): HTMLElement | null {
  const {problems} = report.header;
  if (problems.length === 0) return null;
  const line = (problem: {path: string; what: string}) =>
    h('li', {}, h('code', {}, problem.path), ' ', problem.what);
  const rest = problems.slice(kProblemsShown);
  return h(
    'div',
    {class: 'problems', role: 'alert'},
    h('strong', {}, plural(problems.length, 'problem')),
    h('ul', {}, ...problems.slice(0, kProblemsShown).map(line)),
    rest.length > 0
      ? h(
          'details',
          {},
          h('summary', {}, `${count(rest.length)} more`),
          h('ul', {}, ...rest.map(line)),
        )
      : null,
  );
}

// For readers who have not heard of it.
function explanation(report: Report): HTMLElement | null {
  if (!report.methods.some((method) => /^msrl/.test(method.agent ?? ''))) return null;
  const starts = report.methods.some((method) => method.role === 'transfer');
  return h(
    'p',
    {class: 'intro'},
    'MSRL sums up everything that has happened in an episode so far in one matrix, and values and ' +
      'plans actions with it.',
    starts
      ? ' “F init” and “pretrained”: the part F that values such matrices was learned on toy tasks ' +
          'beforehand; “from scratch” starts without it.'
      : null,
  );
}

function cautionList(report: Report): HTMLElement | null {
  if (report.cautions.length === 0) return null;
  return h(
    'div',
    {class: 'cautions', role: 'note'},
    h('strong', {}, 'Before you read the figures'),
    h(
      'ul',
      {},
      ...report.cautions.map((caution) => h('li', {}, `${caution.env}: ${caution.text}`)),
    ),
  );
}

export function pageHeader(report: Report): HTMLElement {
  const {header} = report;
  const runs = Object.entries(header.runs).filter(([, n]) => isNumber(n));
  const total = runs.reduce((sum, [, n]) => sum + n, 0);
  const bad = ['failed', 'missing', 'damaged', 'interrupted', 'other'];
  const words: Record<string, string> = {other: 'with other settings'};
  const counts = runs
    .filter(([kind, n]) => kind !== 'finished' && n > 0)
    .map(([kind, n]) =>
      h('span', {class: bad.includes(kind) ? 'bad' : 'running'}, `${count(n)} ${words[kind] ?? kind}`),
    );
  const seeds = new Set(report.curves.flatMap((curve) => curve.seeds.map((seed) => seed.seed)));
  const methods = new Set(report.curves.map((curve) => curve.method));
  const size = [
    report.envs.length > 0 ? plural(report.envs.length, 'environment') : '',
    methods.size > 0 ? plural(methods.size, 'method') : '',
    seeds.size > 0 ? plural(seeds.size, 'seed') : '',
  ]
    .filter(Boolean)
    .join(' × ');
  const made = [
    header.created,
    header.msrl_version ? `msrl ${header.msrl_version}` : '',
    header.commit ? `commit ${header.commit}` : '',
    header.host,
  ].filter(Boolean);
  return h(
    'header',
    {class: 'top'},
    h('h1', {}, header.title),
    h(
      'p',
      {class: 'counts'},
      total > 0
        ? h(
            'span',
            {class: 'done'},
            `${count(header.runs.finished ?? 0)} of ${plural(total, 'run')} finished`,
          )
        : null,
      ...counts,
      size ? h('span', {class: 'muted'}, size) : null,
    ),
    h('p', {class: 'made muted'}, ...made.map((part) => h('span', {}, part))),
    problemList(report),
    explanation(report),
    cautionList(report),
    header.commands.length > 0 ? commandBlock(header.commands) : null,
  );
}

export function themeSwitch(): HTMLElement {
  const options: {value: Scheme; title: string}[] = [
    {value: 'auto', title: 'Auto'},
    {value: 'light', title: 'Light'},
    {value: 'dark', title: 'Dark'},
  ];
  const box = choice('Theme', options, currentScheme(), setScheme);
  box.id = 'theme';
  return box;
}

function summary(verdicts: Verdict[], report: Report): string {
  const kinds = verdicts.map((v) => (/too few/.test(v.text) ? 'few' : tone(v, report)));
  const of = (kind: string) => kinds.filter((k) => k === kind).length;
  const parts = [
    of('up') > 0 ? `clearly better on ${of('up')}` : '',
    of('down') > 0 ? `clearly worse on ${of('down')}` : '',
    of('unclear') > 0 ? `not clear on ${of('unclear')}` : '',
    of('few') > 0 ? `too few seeds on ${of('few')}` : '',
  ].filter(Boolean);
  return `${parts.join(', ')} of ${plural(verdicts.length, 'target')}`;
}

// "a − b" with the methods' titles, if it is that.
function titled(comparison: string, report: Report): string {
  for (const a of report.methods) {
    for (const b of report.methods) {
      if (comparison === `${a.name} − ${b.name}`) return `${a.title} − ${b.title}`;
    }
  }
  return comparison;
}

export function verdictPanel(report: Report): Panel | null {
  const {verdicts} = report;
  if (verdicts.length === 0) return null;
  const axis = niceAxis(
    verdicts.flatMap((v) => [v.gain, v.low, v.high]),
    [0],
    4,
  );
  const comparisons = [...new Set(verdicts.map((v) => v.comparison))];
  const cards = (comparison: string): HTMLElement[] => {
    const own = verdicts.filter((v) => v.comparison === comparison);
    const single = own.filter((v) => typeof target(v.env, report) === 'string');
    const title = h(
      'h3',
      {},
      titled(comparison, report),
      single.length > 0 ? h('span', {class: 'muted'}, ` ${summary(single, report)}`) : null,
    );
    return [
      title,
      h(
        'ul',
        {class: 'verdicts'},
        ...own.map((v) => {
          const kind = tone(v, report);
          const colours = kind + (isNumber(v.gain) && v.gain < 0 ? ' negative' : '');
          return h(
            'li',
            {class: colours},
            h('span', {class: 'verdict-env'}, target(v.env, report)),
            h('span', {class: 'verdict-gain num'}, signed(v.gain)),
            strip(
              axis,
              [{value: v.gain, kind: colours}],
              {low: v.low, high: v.high, kind: colours},
              [{value: 0, kind: 'zero'}],
            ),
            h('span', {class: 'verdict-words'}, v.text),
            h(
              'span',
              {class: 'muted num'},
              `${isNumber(v.low) ? interval(v.low, v.high) : 'no interval'}, n = ${count(v.n)}`,
            ),
          );
        }),
      ),
    ];
  };
  const rest = comparisons.slice(kComparisonsShown);
  return panel(
    'verdict',
    report.judges_transfer ? 'Does the transferred start help?' : 'Which method learns faster?',
    'Verdict',
    'Gain in few-shot AUC, paired by seed, with its 95% interval. n: seeds that both methods have.',
    ...comparisons.slice(0, kComparisonsShown).flatMap(cards),
    rest.length > 0
      ? h(
          'details',
          {},
          h('summary', {}, `${plural(rest.length, 'comparison')} more`),
          ...rest.flatMap(cards),
        )
      : null,
  );
}

const kPretraining: [string, string, string][] = [
  ['train_error', 'Train error', 'Mean squared error / variance of the training targets'],
  ['validation_error', 'Validation error', 'The same on held-out instances'],
  ['rank_correlation', 'Rank correlation', 'Spearman of F and V: mostly differences between tasks'],
  ['centred_rank_correlation', 'Centred rank', 'Spearman within an episode'],
  ['difference_correlation', 'Difference', 'Pearson of differences between two prefixes'],
];

export function pretrainingPanel(report: Report): Panel | null {
  const rows = report.pretraining?.rows ?? [];
  if (rows.length === 0 && report.branches.length === 0) return null;
  const content: Child[] = [];
  if (rows.length > 0) {
    const columns: Column<PretrainingRow>[] = [
      {title: 'Source', value: (row) => row.source},
      ...kPretraining.map(([key, title, hint]): Column<PretrainingRow> => {
        const mean = (row: PretrainingRow) => row[key] as Maybe;
        const std = (row: PretrainingRow) => row[`${key}_std`] as Maybe;
        return {
          title,
          hint,
          kind: 'number',
          value: mean,
          cell: (row) =>
            h(
              'span',
              {class: 'cell'},
              h(
                'span',
                {class: 'value'},
                fixed(mean(row), 3),
                isNumber(std(row)) ? h('span', {class: 'spread'}, ` ±${fixed(std(row), 3)}`) : null,
              ),
              isNumber(row.paper?.[key])
                ? h('span', {class: 'second paper'}, fixed(row.paper?.[key], 3))
                : null,
            ),
          export: [
            [key, mean],
            [`${key}_std`, std],
            [`${key}_paper`, (row) => row.paper?.[key]],
          ],
        };
      }),
    ];
    content.push(tableBlock({label: 'Source pretraining', columns, rows}));
  }
  if (report.branches.length > 0) {
    content.push(
      h('h3', {}, 'Branches that the runs start from'),
      tableBlock<Branch>({
        label: 'Branches',
        rows: report.branches,
        columns: [
          {title: 'Branch', value: (b) => b.name},
          {title: 'Seeds', kind: 'number', value: (b) => b.seeds},
          {
            title: 'Updates',
            kind: 'number',
            value: (b) => b.updates,
            cell: (b) => count(b.updates),
          },
          {
            title: 'Rank correlation',
            kind: 'number',
            value: (b) => b.rank_correlation,
            cell: (b) => fixed(b.rank_correlation, 3),
          },
          {
            title: 'Centred rank',
            kind: 'number',
            value: (b) => b.centred_rank_correlation,
            cell: (b) => fixed(b.centred_rank_correlation, 3),
          },
          {
            title: 'Difference',
            kind: 'number',
            value: (b) => b.difference_correlation,
            cell: (b) => fixed(b.difference_correlation, 3),
          },
          {
            title: 'Dataset',
            value: (b) => b.dataset,
            cell: (b) => h('code', {}, b.dataset ?? kAbsent),
          },
        ],
      }),
    );
  }
  const objective = report.pretraining?.objective;
  return panel(
    'pretraining',
    'Source pretraining',
    'Pretraining',
    'How well the branch predicts source values on held-out instances' +
      (objective ? ` (objective: ${objective})` : '') +
      '. Slanted: the paper’s figure.',
    ...content,
  );
}

export function diagnosticsPanel(report: Report): Panel | null {
  const rows = report.diagnostics?.rows ?? [];
  if (rows.length === 0) return null;
  const weaker = [...new Set(rows.flatMap((row) => Object.keys(row.weaker ?? {})))];
  const axis = {min: 0, max: 1, ticks: [0, 0.5, 1], digits: 1};
  const unit = (row: DiagnosticRow) => row.metric !== 'error';
  const digits = (row: DiagnosticRow, v: Maybe) => (unit(row) ? fixed(v, 3) : general(v, 2));
  const columns: Column<DiagnosticRow>[] = [
    {title: 'Source', value: (row) => row.env},
    {title: 'Diagnostic', value: (row) => row.diagnostic},
    {title: 'Metric', value: (row) => row.metric},
    {
      title: 'Score and weaker',
      kind: 'plot',
      value: () => null,
      head: () => stripAxis(axis),
      cell: (row) =>
        unit(row)
          ? strip(
              axis,
              [
                ...Object.entries(row.weaker ?? {}).map(([name, value]) => ({
                  value,
                  kind: name === 'chance' ? 'chance' : 'weaker',
                  title: name,
                })),
                {value: row.paper, kind: 'paper', title: 'paper'},
                {value: row.score, kind: 'main', title: 'score'},
              ],
              null,
            )
          : '',
    },
    {
      title: 'Score',
      kind: 'number',
      value: (row) => row.score,
      cell: (row) =>
        h(
          'span',
          {class: 'value'},
          digits(row, row.score),
          isNumber(row.std) ? h('span', {class: 'spread'}, ` ±${digits(row, row.std)}`) : null,
        ),
      export: [
        ['score', (row) => row.score],
        ['std', (row) => row.std],
      ],
    },
    {
      title: 'Paper',
      kind: 'number',
      value: (row) => row.paper,
      cell: (row) => h('span', {class: 'paper'}, digits(row, row.paper)),
    },
    ...weaker.map((name): Column<DiagnosticRow> => ({
      title: name,
      kind: 'number',
      value: (row) => row.weaker?.[name],
      cell: (row) => h('span', {class: 'muted'}, digits(row, row.weaker?.[name])),
    })),
    {
      title: 'Additive error',
      kind: 'number',
      value: (row) => row.additive_error,
      cell: (row) => general(row.additive_error, 2),
      hint: 'Relative error of Z of a composition against the sum of its parts',
    },
  ];
  return panel(
    'diagnostics',
    'Source diagnostics',
    'Diagnostics',
    'What the matrix alone tells about the source environments, beside lesser descriptors: a ' +
      'diagnostic that they pass as well shows nothing.',
    tableBlock({
      label: 'Source diagnostics',
      columns,
      rows,
      group: (row) => row.env,
      rowClass: (row) => (row.headline ? 'headline' : ''),
    }),
  );
}

interface PredictorRow {
  env: string;
  method: string;
  own: Predictor[];
  gain: Gain | undefined;
}

export function predictorPanel(report: Report): Panel | null {
  if (report.predictor.length === 0) return null;
  const titles = new Map(report.methods.map((method) => [method.name, method.title]));
  const groups = new Map<string, PredictorRow>();
  for (const item of report.predictor) {
    const key = `${item.env}\n${item.method}`;
    const row = groups.get(key) ?? {
      env: item.env,
      method: item.method,
      own: [],
      gain: report.gains.find((gain) => gain.env === item.env && gain.a === item.method),
    };
    row.own.push(item);
    groups.set(key, row);
  }
  const values = (row: PredictorRow, key: 'predictor' | 'amplitude') =>
    row.own.map((item) => item[key]).filter(isNumber);
  const mean = (all: number[]) => (all.length ? all.reduce((a, b) => a + b, 0) / all.length : null);
  const column = (
    title: string,
    key: 'predictor' | 'amplitude',
    hint: string,
  ): Column<PredictorRow> => ({
    title,
    hint,
    kind: 'number',
    value: (row) => mean(values(row, key)),
    cell: (row) => {
      const all = values(row, key);
      return h(
        'span',
        {class: 'value'},
        fixed(mean(all), 3),
        all.length > 1
          ? h('span', {class: 'spread'}, ` ${fixed(Math.min(...all))} … ${fixed(Math.max(...all))}`)
          : null,
      );
    },
  });
  return panel(
    'predictor',
    'Can the gain be predicted?',
    'Predictor',
    'What the branch says after the random steps, before anything is learned on the target: the ' +
      'correlation of its ten-step differences with progress towards the goal, and their amplitude. ' +
      'Beside it the gain that followed.',
    tableBlock<PredictorRow>({
      label: 'Transfer predictor',
      rows: [...groups.values()],
      columns: [
        {title: 'Target', value: (row) => row.env},
        {title: 'Method', value: (row) => titles.get(row.method) ?? row.method},
        column('Predictor', 'predictor', 'Correlation; mean and range over seeds'),
        column('Amplitude', 'amplitude', 'Of the differences; mean and range over seeds'),
        {title: 'Seeds', kind: 'number', value: (row) => row.own.length},
        {
          title: 'Gain that followed',
          kind: 'number',
          value: (row) => row.gain?.mean,
          cell: (row) =>
            h(
              'span',
              {class: `value ${tone(row.gain, report)}`},
              signed(row.gain?.mean),
            ),
        },
      ],
    }),
  );
}

export function costPanel(report: Report): Panel | null {
  if (report.cost.length === 0) return null;
  const titles = new Map(report.methods.map((method) => [method.name, method.title]));
  return panel(
    'cost',
    'Cost',
    'Cost',
    'Per run, mean over seeds.',
    tableBlock<Cost>({
      label: 'Cost',
      rows: report.cost,
      group: (row) => row.env,
      height: '32rem',
      columns: [
        {title: 'Target', value: (row) => row.env},
        {title: 'Method', value: (row) => titles.get(row.method) ?? row.method},
        {
          title: 'Steps / s',
          kind: 'number',
          value: (row) => row.steps_per_second,
          cell: (row) => count(row.steps_per_second),
        },
        {
          title: 'Parameters',
          kind: 'number',
          value: (row) => row.parameters,
          cell: (row) => count(row.parameters),
        },
        {
          title: 'Time',
          kind: 'number',
          value: (row) => row.seconds,
          cell: (row) => duration(row.seconds),
          export: [['seconds', (row) => row.seconds]],
        },
      ],
    }),
  );
}

export function fairnessPanel(report: Report): Panel | null {
  if (report.fairness.length === 0) return null;
  const state = (ok: boolean | null | undefined) =>
    ok === true ? ['holds', '✓'] : ok === false ? ['violated', '✗'] : ['not applicable', kAbsent];
  const bad = report.fairness.filter((row) => row.ok === false).length;
  return panel(
    'fairness',
    'Fairness checklist',
    'Fairness',
    'Read from the run records, not typed by hand. ' +
      (bad === 0 ? 'No item is violated.' : `${plural(bad, 'item')} violated.`),
    tableBlock<Fairness>({
      label: 'Fairness checklist',
      rows: report.fairness,
      rowClass: (row) => (row.ok === false ? 'violated' : ''),
      columns: [
        {title: 'Item', value: (row) => row.item},
        {
          title: 'State',
          value: (row) => state(row.ok)[0],
          cell: (row) => {
            const [word, mark] = state(row.ok);
            return h(
              'span',
              {class: `state ${word.replace(' ', '-')}`},
              h('span', {'aria-hidden': 'true'}, mark),
              ` ${word}`,
            );
          },
        },
        {title: 'Found', value: (row) => row.found},
      ],
    }),
  );
}

export function reproducePanel(report: Report): Panel {
  const {header} = report;
  const rows: [string, string][] = [
    ['Version', header.msrl_version],
    ['Commit', header.commit],
    ['Host', header.host],
    ['Created', header.created],
  ];
  const envs = report.envs.filter((env) => isNumber(env.steps));
  return panel(
    'reproduce',
    'How to reproduce',
    'Reproduce',
    'With the same version these commands give the same numbers on the same kind of machine; runs ' +
      'that exist are kept, killed ones go on.',
    header.commands.length > 0
      ? commandBlock(header.commands)
      : h('p', {class: 'note'}, 'The commands were not recorded.'),
    h(
      'dl',
      {class: 'facts wide'},
      ...rows
        .filter(([, value]) => value)
        .flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, h('code', {}, value))]),
    ),
    envs.length > 0
      ? tableBlock({
          label: 'Environments',
          rows: envs,
          columns: [
            {title: 'Environment', value: (env) => env.name},
            {title: 'Id', value: (env) => env.id, cell: (env) => h('code', {}, env.id)},
            {title: 'Family', value: (env) => env.family},
            {
              title: 'Steps',
              kind: 'number',
              value: (env) => env.steps,
              cell: (env) => count(env.steps),
            },
            {
              title: 'Few-shot steps',
              kind: 'number',
              value: (env) => env.few_shot_steps,
              cell: (env) => count(env.few_shot_steps),
            },
            {
              title: 'Random return',
              kind: 'number',
              value: (env) => env.random_return,
              cell: (env) => general(env.random_return),
              hint: 'Normalised return 0',
            },
            {
              title: 'Reference return',
              kind: 'number',
              value: (env) => env.reference_return,
              cell: (env) => general(env.reference_return),
              hint: 'Normalised return 1',
            },
          ],
        })
      : null,
  );
}
