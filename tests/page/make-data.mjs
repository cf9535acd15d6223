// Made-up data for the report page, of the shape that `msrl report --json` writes:
//   node make-data.mjs small|large|hostile|bare|empty > data.json
// small: 3 environments x 6 methods x 5 seeds; large: 500 runs; hostile: names that try to break
// out; bare: what a folder of runs without a sweep file gives; empty: no run at all.
import {resolve} from 'node:path';
import {fileURLToPath} from 'node:url';

// mulberry32: the same numbers everywhere
function generator(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return {uniform, normal};
}

const round = (v, digits = 5) => Number(v.toFixed(digits));
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const std = (values) => {
  const m = mean(values);
  return values.length < 2
    ? null
    : Math.sqrt(values.reduce((a, v) => a + (v - m) ** 2, 0) / (values.length - 1));
};

export const kHostile = [
  '</script><script>window.hacked=1</script>',
  '<img src=x onerror="window.hacked=1">',
  '"quoted", \'and\' `ticked`',
  'μ² — 日本語 \u202Eright-to-left',
  '__proto__',
  '\\u003cb\\u003e $& $1',
  'a very long name that goes on and on and on without any end in sight and_without_a_place_to_break_it',
];

const kEnvs = [
  ['reacher', 'Reacher/Pusher', -42.8, -3.7, 0.02],
  ['pusher', 'Reacher/Pusher', -150, -25, 0.01],
  ['hopper', 'Hopper', 18, 3100, -0.04],
  ['walker2d', 'Walker2d', 2, 4200, 0.06],
  ['antmaze-u', 'AntMaze', 0, 0.92, 0.09],
  ['humanoid', 'Humanoid', 120, 5200, 0.0],
];
const kMethods = [
  ['sac', 'SAC', 'baseline', 'none', 'sac', 0.48],
  ['scratch', 'MSRL from scratch', 'scratch', 'target-trained matrix value', 'msrl-scratch', 0.55],
  ['msrl', 'MSRL + pretrained F init', 'transfer', 'matrix-value branch', 'msrl-init', 0.58],
  ['shuffled', 'MSRL + shuffled values', 'control', 'matrix-value branch', 'msrl-shuffled', 0.5],
  [
    'no-library',
    'MSRL w/o library',
    'ablation',
    'target-trained matrix value',
    'msrl-no-library',
    0.5,
  ],
  ['random', 'Random policy', 'reference', '', '', 0],
  ['td3', 'TD3', 'baseline', 'none', 'td3', 0.46],
  ['ppo', 'PPO', 'baseline', 'none', 'ppo', 0.38],
  ['mbpo', 'MBPO', 'baseline', 'none', 'mbpo', 0.5],
  ['dreamerv3', 'DreamerV3', 'baseline', 'none', 'dreamerv3', 0.52],
  ['tdmpc', 'TD-MPC', 'baseline', 'none', 'tdmpc', 0.54],
  ['sf-gpi', 'SF-GPI-FT', 'baseline', 'successor features', 'sf-gpi', 0.5],
  ['uvfa', 'UVFA-FT', 'baseline', 'universal value encoder/head', 'uvfa', 0.51],
  ['dbc', 'DBC/Bisimulation-FT', 'baseline', 'bisimulation encoder', 'dbc', 0.52],
  ['t2v-rnn', 'Traj2Value-RNN-FT', 'baseline', 'recurrent encoder', 'traj2value-rnn', 0.53],
  ['t2v-tf', 'Traj2Value-Transformer-FT', 'baseline', 'transformer encoder', '', 0.54],
  ['random-init', 'MSRL + random F init', 'control', 'matrix-value branch', 'msrl-random', 0.54],
  ['unaligned', 'MSRL + unaligned lift', 'control', 'matrix-value branch', 'msrl-unaligned', 0.49],
  ['obs-only', 'MSRL + observation only', 'control', 'observation-value head', '', 0.53],
  [
    'no-obstruction',
    'MSRL w/o obstruction',
    'ablation',
    'target-trained',
    'msrl-no-obstruction',
    0.53,
  ],
  ['no-action', 'MSRL w/o action blocks', 'ablation', 'target-trained', '', 0.52],
];
// 8x6 pixels: a red frame and a blue one, and a green picture
const kGif =
  'R0lGODlhCAAGAPcfMQAAACQAAEgAAGwAAJAAALQAANgAAPwAAAAkACQkAEgkAGwkAJAkALQkANgkAPwk' +
  'AABIACRIAEhIAGxIAJBIALRIANhIAPxIAABsACRsAEhsAGxsAJBsALRsANhsAPxsAACQACSQAEiQAGyQ' +
  'AJCQALSQANiQAPyQAAC0ACS0AEi0AGy0AJC0ALS0ANi0APy0AADYACTYAEjYAGzYAJDYALTYANjYAPzY' +
  'AAD8ACT8AEj8AGz8AJD8ALT8ANj8APz8AAAAVSQAVUgAVWwAVZAAVbQAVdgAVfwAVQAkVSQkVUgkVWwk' +
  'VZAkVbQkVdgkVfwkVQBIVSRIVUhIVWxIVZBIVbRIVdhIVfxIVQBsVSRsVUhsVWxsVZBsVbRsVdhsVfxs' +
  'VQCQVSSQVUiQVWyQVZCQVbSQVdiQVfyQVQC0VSS0VUi0VWy0VZC0VbS0Vdi0Vfy0VQDYVSTYVUjYVWzY' +
  'VZDYVbTYVdjYVfzYVQD8VST8VUj8VWz8VZD8VbT8Vdj8Vfz8VQAAqiQAqkgAqmwAqpAAqrQAqtgAqvwA' +
  'qgAkqiQkqkgkqmwkqpAkqrQkqtgkqvwkqgBIqiRIqkhIqmxIqpBIqrRIqthIqvxIqgBsqiRsqkhsqmxs' +
  'qpBsqrRsqthsqvxsqgCQqiSQqkiQqmyQqpCQqrSQqtiQqvyQqgC0qiS0qki0qmy0qpC0qrS0qti0qvy0' +
  'qgDYqiTYqkjYqmzYqpDYqrTYqtjYqvzYqgD8qiT8qkj8qmz8qpD8qrT8qtj8qvz8qgAA/yQA/0gA/2wA' +
  '/5AA/7QA/9gA//wA/wAk/yQk/0gk/2wk/5Ak/7Qk/9gk//wk/wBI/yRI/0hI/2xI/5BI/7RI/9hI//xI' +
  '/wBs/yRs/0hs/2xs/5Bs/7Rs/9hs//xs/wCQ/ySQ/0iQ/2yQ/5CQ/7SQ/9iQ//yQ/wC0/yS0/0i0/2y0' +
  '/5C0/7S0/9i0//y0/wDY/yTY/0jY/2zY/5DY/7TY/9jY//zY/wD8/yT8/0j8/2z8/5D8/7T8/9j8//z8' +
  '/yH/C05FVFNDQVBFMi4wAwEAAAAh+QQECgAfACwAAAAACAAGAAAIDwAPCBxIsKDBgQYOKlQYEAAh+QQF' +
  'CgAAACwAAAAACAAGAAAIEAABARtIsKDBgwgRCkw4MCAAOw==';
const kStill =
  'iVBORw0KGgoAAAANSUhEUgAAAAgAAAAGCAIAAABxZ0isAAAACXBIWXMAAAABAAAAAQBPJcTWAAAAEElE' +
  'QVR4nGNgqGfAjgZSAgD64BfRTaU0DAAAAABJRU5ErkJggg==';
const kSlots = [
  'position_x',
  'position_y',
  'goal_x',
  'goal_y',
  'motion_x',
  'motion_y',
  'posture',
  'contact',
];

function interval(values, rng) {
  const means = Array.from({length: 200}, () =>
    mean(values.map(() => values[Math.floor(rng.uniform() * values.length)])),
  ).sort((a, b) => a - b);
  return [round(means[4]), round(means[195])];
}

function makeMatrices(env, method, rng) {
  const size = 28;
  const labels = [
    ...kSlots.map((n) => `x ${n}`),
    ...kSlots.map((n) => `dx ${n}`),
    ...Array.from({length: 10}, (_, i) => `a[${i}]`),
    'r',
    '1',
  ];
  const z = new Float64Array(size * size);
  const x = Array.from({length: 8}, () => rng.normal() * 0.6);
  const prefixes = [];
  let sum = 0;
  for (let t = 1; t <= 80; t++) {
    const a = Array.from({length: 10}, (_, i) => (i < 2 ? Math.tanh(rng.normal()) : 0));
    const dx = x.map((v, i) =>
      i === 2 || i === 3 ? 0 : -0.05 * v + 0.08 * (a[i % 2] ?? 0) + 0.02 * rng.normal(),
    );
    const r = -Math.hypot(x[0] - x[2], x[1] - x[3]) * 0.3;
    const psi = [...x, ...dx, ...a, r, 1];
    for (let i = 0; i < size; i++)
      for (let j = 0; j < size; j++) z[i * size + j] += psi[i] * psi[j];
    x.forEach((_, i) => {
      x[i] += dx[i];
    });
    sum += r;
    if (t % 2 === 0 || t === 1) {
      const packed = [];
      for (let i = 0; i < size; i++)
        for (let j = i; j < size; j++) packed.push(round(z[i * size + j]));
      prefixes.push({t, reward: round(r), return: round(sum), packed});
    }
  }
  return {
    env,
    method,
    seed: 100,
    labels,
    prefixes,
    blocks: [
      {name: 'x', size: 8},
      {name: 'dx', size: 8},
      {name: 'a', size: 10},
      {name: 'r', size: 1},
      {name: '1', size: 1},
    ],
  };
}

function makeLibrary(env, method, rng) {
  const segments = Array.from({length: 200}, (_, i) => {
    const entry = kSlots.map(() => round(rng.normal(), 4));
    return {
      id: 4000 - i * 7,
      uses: Math.floor(60 / (1 + i / 8)),
      reward: round(rng.normal() * 0.2),
      length: 1 + (i % 3),
      head: [round(rng.normal()), round(rng.normal())],
      entry,
      tail: entry.map((v) => round(v + 0.1 * rng.normal(), 4)),
      terminated: i % 17 === 0,
    };
  });
  return {env, method, seed: 100, size: 5000, capacity: 5000, segments};
}

function makeObstruction(env, method, rng) {
  const roc = [[0, 0]];
  for (let i = 1; i <= 40; i++)
    roc.push([i / 40, round(Math.min(1, (i / 40) ** (0.25 + 0.1 * rng.uniform())))]);
  roc.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  for (let i = 1; i < roc.length; i++) roc[i][1] = Math.max(roc[i][1], roc[i - 1][1]);
  return {
    env,
    method,
    seed: 100,
    auroc: 0.79,
    ece: 0.061,
    brier: 0.07,
    base_rate: 0.083,
    threshold: 0.55,
    roc,
    calibration: Array.from({length: 10}, (_, i) => {
      const predicted = (i + 0.5) / 10;
      return {
        predicted,
        observed: round(Math.min(1, Math.max(0, predicted * 0.8 + 0.1 * rng.uniform()))),
        n: Math.round(400 / (1 + i * i)),
      };
    }),
  };
}

export function makeData(kind) {
  const rng = generator(kind.length * 7919);
  const sizes = {
    small: [3, 6, 5, 21],
    large: [5, 21, 5, 101],
    hostile: [3, 6, 3, 11],
    bare: [1, 2, 1, 5],
    empty: [0, 0, 0, 0],
  };
  if (!(kind in sizes))
    throw new Error(`no kind '${kind}'; there is ${Object.keys(sizes).join(' ')}`);
  const [envCount, methodCount, seedCount, points] = sizes[kind];
  const hostile = kind === 'hostile';
  const bad = (i, plain) => (hostile ? kHostile[i % kHostile.length] : plain);
  const steps = 8000;
  const pickedEnvs = kind === 'small' ? [kEnvs[0], kEnvs[2], kEnvs[4]] : kEnvs.slice(0, envCount);
  const envs = pickedEnvs.map(([name, family, low, high], i) => ({
    name: bad(i, name),
    id: bad(i + 1, name),
    family: bad(i + 2, family),
    steps,
    few_shot_steps: steps / 4,
    random_return: low,
    reference_return: high,
    unit: 'return',
  }));
  const methods = kMethods
    .slice(0, methodCount)
    .map(([name, title, role, component, paper], i) => ({
      name: hostile ? `${kHostile[i % kHostile.length]}${i}` : name,
      title: bad(i + 3, title),
      role,
      component: bad(i + 4, component),
      paper,
      agent: ['transfer', 'scratch', 'control'].includes(role) ? 'msrl' : name,
    }));
  const seeds = Array.from({length: seedCount}, (_, i) => 100 + i);

  const curves = [];
  const auc = new Map();
  const last = new Map();
  envs.forEach((env, e) =>
    methods.forEach((method, m) => {
      if (method.role === 'reference') return;
      const level = kMethods[m][5] + (method.role === 'transfer' ? pickedEnvs[e][4] * 2 : 0);
      const runs = seeds.map((seed) => {
        const skill = level + 0.05 * rng.normal();
        const pace = 2 + rng.uniform();
        const values = Array.from({length: points}, (_, i) =>
          round(skill * (1 - Math.exp(((-pace * i) / points) * 2.2)) + 0.02 * rng.normal(), 4),
        );
        const scale = env.reference_return - env.random_return;
        return {seed, values, raw: values.map((v) => round(env.random_return + v * scale, 3))};
      });
      const at = (i) => runs.map((run) => run.values[i]);
      const bands = Array.from({length: points}, (_, i) => interval(at(i), rng));
      const few = Math.max(2, Math.ceil(points / 4));
      auc.set(
        `${e} ${m}`,
        runs.map((run) => mean(run.values.slice(0, few))),
      );
      last.set(`${e} ${m}`, at(points - 1));
      curves.push({
        env: env.name,
        method: method.name,
        steps: Array.from({length: points}, (_, i) =>
          Math.round((i * steps) / Math.max(1, points - 1)),
        ),
        mean: Array.from({length: points}, (_, i) => round(mean(at(i)))),
        low: bands.map((b) => b[0]),
        high: bands.map((b) => b[1]),
        raw_mean: Array.from({length: points}, (_, i) =>
          round(mean(runs.map((run) => run.raw[i])), 3),
        ),
        success:
          env.family === 'AntMaze'
            ? Array.from({length: points}, (_, i) => round(Math.min(1, Math.max(0, mean(at(i))))))
            : null,
        seeds: runs,
      });
    }),
  );

  const families = [...new Set(envs.map((env) => env.family))].map((name) => ({
    name,
    envs: envs.filter((env) => env.family === name).map((env) => env.name),
  }));
  const columns = families.length ? [...families.map((f) => f.name), 'Average'] : [];
  const cell = (store, m, column, paper) => {
    const own = envs.flatMap((env, e) =>
      column === 'Average' || env.family === column ? (store.get(`${e} ${m}`) ?? []) : [],
    );
    if (own.length === 0) return null;
    const [low, high] = interval(own, rng);
    return {
      mean: round(mean(own)),
      std: std(own),
      n: own.length,
      iqm: round(mean(own) + 0.003),
      low,
      high,
      paper: paper ? {mean: paper, std: column === 'Average' ? null : 0.04} : null,
    };
  };
  const rowOf = (m) => {
    const paper = methods[m].paper ? round(kMethods[m][5] + 0.12, 2) : null;
    const isReference = methods[m].role === 'reference';
    const fixed = () => ({mean: 0, std: 0, n: 100, iqm: 0, low: 0, high: 0, paper: null});
    return {
      method: methods[m].name,
      cells: columns.map((c) => (isReference ? fixed() : cell(auc, m, c, paper))),
      final: columns.map((c) => (isReference ? fixed() : cell(last, m, c, null))),
      success: columns.map((c) =>
        c === 'AntMaze' ? {mean: round(rng.uniform()), n: seedCount} : null,
      ),
      threshold: columns.map((c, i) =>
        c === 'Average' || isReference
          ? null
          : (m + i) % 4 === 0
            ? {median: null, reached: 0, n: seedCount}
            : {median: 2000 + 400 * ((m * 3 + i) % 12), reached: seedCount - 1, n: seedCount},
      ),
      auc_paper_style: columns.map((c) => (isReference ? fixed() : cell(auc, m, c, paper))),
    };
  };
  const rows = methods.map((_, m) => rowOf(m));
  const byRole = (roles) => rows.filter((_, m) => roles.includes(methods[m].role));
  const transfer = methods.findIndex((method) => method.role === 'transfer');
  const others = ['scratch', 'sac', 'shuffled']
    .map((name) => kMethods.slice(0, methodCount).findIndex((m) => m[0] === name))
    .filter((m) => m >= 0);
  const gains = [];
  const improvement = [];
  if (transfer >= 0) {
    for (const other of others) {
      envs.forEach((env, e) => {
        const pairs = auc.get(`${e} ${transfer}`).map((v, i) => v - auc.get(`${e} ${other}`)[i]);
        const [low, high] = interval(pairs, rng);
        gains.push({
          env: env.name,
          a: methods[transfer].name,
          b: methods[other].name,
          mean: round(mean(pairs)),
          low,
          high,
          n: seedCount,
          wins: pairs.filter((v) => v > 0).length,
          paper: other === others[0] ? 0.08 : null,
        });
        improvement.push({
          env: env.name,
          a: methods[transfer].name,
          b: methods[other].name,
          p: round(Math.min(1, Math.max(0, 0.5 + mean(pairs) * 5)), 2),
          low: round(Math.min(1, Math.max(0, 0.5 + low * 5)), 2),
          high: round(Math.min(1, Math.max(0, 0.5 + high * 5)), 2),
        });
      });
    }
  }
  const aggregates = (at, value) =>
    methods
      .filter((method) => method.role !== 'reference')
      .map((method, m) => ({
        method: method.name,
        at,
        value: at.map((place) => round(value(place, m))),
        low: at.map((place) => round(value(place, m) - 0.05)),
        high: at.map((place) => round(value(place, m) + 0.05)),
      }));
  const places = Array.from({length: 41}, (_, i) => i / 40);
  const words = (g) =>
    g.n < 5 ? 'too few seeds' : g.low > 0 ? 'clear gain' : g.high < 0 ? 'clear loss' : 'not clear';
  const rich = kind !== 'empty' && kind !== 'bare';
  const exhibits = rich ? envs.slice(0, 2).map((env) => env.name) : [];
  const own = transfer >= 0 ? methods[transfer].name : '';
  return {
    format: 'msrl-report',
    format_version: 1,
    header: {
      title: bad(0, `${kind} example`),
      created: '2026-11-16T06:00:00Z',
      msrl_version: '0.1.0',
      commit: '0123456789ab',
      host: bad(1, 'workstation, 8 × CPU'),
      commands: [
        'msrl sweep configs/quick.toml --out runs/quick',
        `msrl report runs/quick --html report.html${hostile ? ` # ${kHostile[0]}` : ''}`,
      ],
      runs: {
        finished: curves.length * seedCount,
        running: 0,
        failed: rich ? 1 : 0,
        interrupted: 0,
        missing: rich ? 2 : 0,
        damaged: 0,
      },
      problems: rich
        ? [
            {
              path: bad(0, 'reacher/sac/103'),
              what: bad(1, 'failed: RunError: critic loss is nan in step 4120'),
            },
            {path: bad(2, 'hopper/msrl/104'), what: 'missing'},
          ]
        : [],
    },
    min_verdict_pairs: 5,
    judges_transfer: true,
    cautions: rich ? [{env: envs[0].name, text: bad(2, '“Standing still” is above every method')}] : [],
    selections: rich
      ? [
          {
            of: bad(3, 'sac'),
            best: methods[0].name,
            settings: [bad(4, 'hidden_width=128'), 'batch_size=256'],
            score: 0.51234,
            next: 0.4821,
            last: 0.1,
            raw: false,
            variants: 12,
            scored: 11,
            tasks: envs.length,
            seeds: [0, 1, 2],
          },
        ]
      : [],
    aggregate_curves: rich ? aggregates(places, (share, m) => share * (0.4 + 0.05 * m)) : [],
    profiles: rich ? aggregates(places, (level, m) => Math.max(0, 1 - level * (1.5 - 0.1 * m))) : [],
    raw_returns: rich
      ? methods.slice(0, 2).map((method, m) => ({
          env: envs[0].name,
          method: method.name,
          few_shot: {mean: 12.5 + m, std: m === 0 ? 1.25 : null, n: m === 0 ? 5 : 1},
          final: {mean: 20 + m, std: null, n: 1},
        }))
      : [],
    verdicts: gains
      .filter((g) => g.b === methods[others[0]]?.name)
      .map((g) => ({
        env: g.env,
        comparison: `${methods[transfer].title} − ${methods[others[0]].title}`,
        gain: g.mean,
        low: g.low,
        high: g.high,
        n: g.n,
        text: words(g),
      })),
    families,
    envs,
    methods,
    curves,
    main: {columns, rows, improvement},
    gains,
    controls: {rows: rich ? byRole(['scratch', 'transfer', 'control']) : []},
    ablations: {rows: rich ? byRole(['transfer', 'scratch', 'ablation']) : []},
    pretraining: rich
      ? {
          objective: 'paper',
          rows: [
            ['graph-motif', 0.041, 0.09, 0.951],
            ['micro-grid', 0.055, 0.12, 0.94],
            ['point-rooms', 0.07, 0.16, 0.91],
            ['dubins-reacher', 0.068, 0.15, 0.92],
            ['mixed', 0.07, 0.142, 0.925],
          ].map(([source, train, validation, rank]) => ({
            source: bad(3, source),
            seeds: 5,
            train_error: train,
            train_error_std: 0.004,
            validation_error: validation,
            validation_error_std: 0.01,
            rank_correlation: rank,
            rank_correlation_std: 0.006,
            centred_rank_correlation: 0.61,
            centred_rank_correlation_std: 0.02,
            difference_correlation: 0.55,
            difference_correlation_std: 0.03,
            paper:
              source === 'mixed'
                ? {train_error: 0.062, validation_error: 0.13, rank_correlation: 0.933}
                : null,
          })),
        }
      : null,
    branches: rich
      ? [
          {
            name: bad(0, 'shape'),
            seeds: 3,
            rank_correlation: 0.7,
            centred_rank_correlation: 0.66,
            difference_correlation: 0.6,
            updates: 20000,
            dataset: '9f2c4a1be07d3358',
          },
        ]
      : [],
    diagnostics: rich
      ? {
          rows: [
            ['graph-motif', 'order-sensitive retrieval', 'accuracy', 0.972, 0.34, 0.125, 0.939],
            ['graph-motif', 'reversal detection', 'accuracy', 0.99, 0.53, 0.333, null],
            ['micro-grid', 'invalid-composition detection', 'AUROC', 0.92, 0.57, 0.5, 0.889],
            ['point-rooms', 'room retrieval', 'accuracy', 0.88, 0.5, 0.25, 0.867],
            ['dubins-reacher', 'turn retrieval', 'accuracy', 0.85, 0.47, 0.2, 0.833],
          ].map(([env, diagnostic, metric, score, occupancy, chance, paper]) => ({
            env,
            diagnostic: bad(1, diagnostic),
            metric,
            headline: paper !== null,
            score,
            std: 0.012,
            additive_error: 6.3e-16,
            weaker: {occupancy, 'without displacement': occupancy + 0.09, chance},
            paper,
          })),
        }
      : null,
    predictor: rich
      ? envs.flatMap((env) =>
          seeds.map((seed) => ({
            env: env.name,
            method: own,
            seed,
            predictor: round(0.4 + 0.1 * rng.normal()),
            amplitude: round(0.3 + 0.05 * rng.normal()),
          })),
        )
      : [],
    clips: rich
      ? envs.slice(0, 2).map((env, e) => ({
          env: env.name,
          method: methods[0].name,
          seed: seeds[0],
          runs: 12,
          steps: 50 + e,
          ended: e === 0,
          return: -4.25,
          width: 8,
          height: 6,
          gif: kGif,
          first_frame: e === 0 ? kStill : bad(0, kStill),
        }))
      : [],
    matrices: exhibits.map((env) => makeMatrices(env, own, rng)),
    library: exhibits.map((env) => makeLibrary(env, own, rng)),
    obstruction: exhibits.map((env) => makeObstruction(env, own, rng)),
    fairness: rich
      ? [
          {
            item: 'Source trajectories',
            ok: true,
            found: bad(0, 'one dataset, 9f2c4a1be07d3358, in all 3 branches'),
          },
          {item: 'Source compute', ok: true, found: '20000 updates in all branches'},
          {
            item: 'Target interaction budget',
            ok: false,
            found: '8000 steps in 39 runs, 4120 in reacher/sac/103',
          },
          {item: 'Architecture scale', ok: null, found: 'one method has a transferable module'},
        ]
      : [],
    cost: rich
      ? envs.flatMap((env) =>
          methods
            .filter((m) => m.role !== 'reference')
            .map((method) => ({
              env: env.name,
              method: method.name,
              steps_per_second: Math.round(900 + 1500 * rng.uniform()),
              parameters: Math.round(20000 + 4000 * rng.uniform()),
              seconds: round(4 + 20 * rng.uniform(), 1),
            })),
        )
      : [],
  };
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  process.stdout.write(JSON.stringify(makeData(process.argv[2] ?? 'small')));
}
