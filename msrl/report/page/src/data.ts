// What `msrl report` puts into the page. Numbers that don't exist are null; every list may be
// empty. read() fills in what is absent, so that a page opens with the data of an older or newer msrl.

import {Maybe} from './format';

export interface Problem {
  path: string;
  what: string;
}
export interface Header {
  title: string;
  created: string;
  msrl_version: string;
  commit: string;
  host: string;
  commands: string[];
  runs: Record<string, number>;
  problems: Problem[];
}
export interface Verdict {
  env: string;
  comparison: string;
  gain: Maybe;
  low: Maybe;
  high: Maybe;
  n: Maybe;
  text: string;
}
export interface Family {
  name: string;
  envs: string[];
}
export interface Env {
  name: string;
  id: string;
  family: string;
  steps: Maybe;
  few_shot_steps: Maybe;
  random_return: Maybe;
  reference_return: Maybe;
  unit?: string;
}
export interface Method {
  name: string;
  title: string;
  role: string;
  component: string;
  paper: string;
  agent?: string;
}
export interface SeedCurve {
  seed: number;
  values: Maybe[] | null;
  raw: Maybe[] | null;
}
export interface Curve {
  env: string;
  method: string;
  steps: number[];
  mean: Maybe[] | null;
  low: Maybe[] | null;
  high: Maybe[] | null;
  raw_mean: Maybe[] | null;
  raw_low?: Maybe[] | null;
  raw_high?: Maybe[] | null;
  success: Maybe[] | null;
  seeds: SeedCurve[];
}
export interface Cell {
  mean: Maybe;
  std: Maybe;
  n: Maybe;
  iqm: Maybe;
  low: Maybe;
  high: Maybe;
  mean_low?: Maybe;
  mean_high?: Maybe;
  paper: {mean: Maybe; std: Maybe} | null;
}
export interface SuccessCell {
  mean: Maybe;
  n: Maybe;
}
export interface ThresholdCell {
  median: Maybe;
  reached: Maybe;
  n: Maybe;
}
export interface Row {
  method: string;
  cells: (Cell | null)[];
  final?: (Cell | null)[];
  success?: (SuccessCell | null)[];
  threshold?: (ThresholdCell | null)[];
  auc_paper_style?: (Cell | null)[];
}
export interface Improvement {
  a: string;
  b: string;
  env: string;
  p: Maybe;
  low: Maybe;
  high: Maybe;
}
export interface Gain {
  env: string;
  a: string;
  b: string;
  mean: Maybe;
  low: Maybe;
  high: Maybe;
  n: Maybe;
  wins: Maybe;
  paper: Maybe;
}
export interface PretrainingRow {
  source: string;
  seeds?: Maybe;
  paper: Record<string, Maybe> | null;
  [column: string]: string | Maybe | Record<string, Maybe>;
}
export interface Branch {
  name: string;
  seeds: Maybe;
  rank_correlation: Maybe;
  centred_rank_correlation: Maybe;
  difference_correlation: Maybe;
  updates: Maybe;
  dataset: string | null;
}
export interface DiagnosticRow {
  env: string;
  diagnostic: string;
  metric: string;
  headline: boolean;
  score: Maybe;
  std: Maybe;
  additive_error: Maybe;
  weaker: Record<string, Maybe>;
  paper: Maybe;
}
export interface Predictor {
  env: string;
  method: string;
  seed: number;
  predictor: Maybe;
  amplitude: Maybe;
}
export interface Clip {
  env: string;
  method: string;
  seed: number;
  runs: number;
  steps: number;
  ended: boolean;
  return: Maybe;
  width: number;
  height: number;
  gif: string; // base64
  first_frame: string; // base64, a PNG
}
export interface Prefix {
  t: number;
  reward: Maybe;
  return: Maybe;
  packed: number[];
}
export interface Matrices {
  env: string;
  method: string;
  seed: number;
  blocks: {name: string; size: number}[];
  labels: string[];
  prefixes: Prefix[];
}
export interface Segment {
  id: number;
  uses: number;
  reward: Maybe;
  length: Maybe;
  head: number[];
  entry: number[];
  tail: number[];
  terminated: boolean;
}
export interface Library {
  env: string;
  method: string;
  seed: number;
  size: Maybe;
  capacity: Maybe;
  slots?: string[];
  segments: Segment[];
}
export interface Obstruction {
  env: string;
  method: string;
  seed: number;
  auroc: Maybe;
  ece: Maybe;
  brier: Maybe;
  base_rate: Maybe;
  threshold: Maybe;
  roc: [number, number][];
  calibration: {predicted: number; observed: number; n: number}[];
}
export interface Fairness {
  item: string;
  ok: boolean | null;
  found: string;
}
export interface Caution {
  env: string;
  text: string;
}
export interface Selection {
  of: string;
  best: string;
  settings: string[];
  score: Maybe;
  next: Maybe;
  last: Maybe;
  raw: boolean;
  variants: number;
  scored: number;
  tasks: number;
  seeds: number[];
}
export interface Aggregate {
  method: string;
  at: number[];
  value: Maybe[];
  low: Maybe[];
  high: Maybe[];
}
export interface RawReturn {
  env: string;
  method: string;
  few_shot: Cell | null;
  final: Cell | null;
}
export interface Cost {
  env: string;
  method: string;
  steps_per_second: Maybe;
  parameters: Maybe;
  seconds: Maybe;
}

export interface Report {
  format_version: number;
  header: Header;
  min_verdict_pairs: number; // with fewer an interval is no proof
  judges_transfer: boolean;
  cautions: Caution[];
  selections: Selection[];
  verdicts: Verdict[];
  aggregate_curves: Aggregate[];
  profiles: Aggregate[];
  raw_returns: RawReturn[];
  families: Family[];
  envs: Env[];
  methods: Method[];
  curves: Curve[];
  main: {columns: string[]; rows: Row[]; improvement: Improvement[]};
  gains: Gain[];
  controls: {rows: Row[]};
  ablations: {rows: Row[]};
  pretraining: {rows: PretrainingRow[]; objective: string} | null;
  branches: Branch[];
  diagnostics: {rows: DiagnosticRow[]} | null;
  predictor: Predictor[];
  clips: Clip[];
  matrices: Matrices[];
  library: Library[];
  obstruction: Obstruction[];
  fairness: Fairness[];
  cost: Cost[];
}

function list<T>(value: unknown): T[] {
  return Array.isArray(value) ? (value as T[]) : [];
}

function rows(value: unknown): {rows: Row[]} {
  return {rows: list<Row>((value as {rows?: unknown} | null | undefined)?.rows)};
}

export function read(text: string): Report {
  const data = JSON.parse(text) as Partial<Report> & {format?: string};
  if (data === null || typeof data !== 'object' || data.format !== 'msrl-report') {
    throw new Error('this is the empty template; msrl report --html FILE fills it');
  }
  const header = (data.header ?? {}) as Partial<Header>;
  const methods = list<Method>(data.methods).map((method) => ({
    ...method,
    title: method.title || method.name,
    role: method.role || '',
    component: method.component || '',
    paper: method.paper || '',
  }));
  const main = data.main as Partial<Report['main']> | undefined;
  return {
    format_version: data.format_version ?? 1,
    header: {
      title: header.title || 'msrl report',
      created: header.created || '',
      msrl_version: header.msrl_version || '',
      commit: header.commit || '',
      host: header.host || '',
      commands: list<string>(header.commands),
      runs: header.runs ?? {},
      problems: list<Problem>(header.problems),
    },
    min_verdict_pairs: data.min_verdict_pairs ?? 1,
    judges_transfer: data.judges_transfer ?? true,
    cautions: list(data.cautions),
    selections: list<Selection>(data.selections).map((selection) => ({
      ...selection,
      settings: list(selection.settings),
      seeds: list(selection.seeds),
    })),
    verdicts: list(data.verdicts),
    aggregate_curves: list(data.aggregate_curves),
    profiles: list(data.profiles),
    raw_returns: list(data.raw_returns),
    families: list(data.families),
    envs: list(data.envs),
    methods,
    curves: list<Curve>(data.curves).map((curve) => ({...curve, seeds: list(curve.seeds)})),
    main: {
      columns: list(main?.columns),
      rows: list(main?.rows),
      improvement: list(main?.improvement),
    },
    gains: list(data.gains),
    controls: rows(data.controls),
    ablations: rows(data.ablations),
    pretraining: data.pretraining
      ? {
          rows: list(data.pretraining.rows),
          objective: data.pretraining.objective || '',
        }
      : null,
    branches: list(data.branches),
    diagnostics: data.diagnostics ? {rows: list(data.diagnostics.rows)} : null,
    predictor: list(data.predictor),
    clips: list(data.clips),
    matrices: list(data.matrices),
    library: list(data.library),
    obstruction: list(data.obstruction),
    fairness: list(data.fairness),
    cost: list(data.cost),
  };
}
