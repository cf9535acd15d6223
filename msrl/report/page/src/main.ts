// The page of `msrl report`: reads the data that is in the file and draws one panel after another.

import 'uplot/dist/uPlot.min.css';
import './style.css';

import {AggregatesPanel, aggregatesPanel} from './aggregates';
import {clipsPanel} from './clips';
import {CurvesPanel, curvesPanel} from './curves';
import {read, Report} from './data';
import {h} from './dom';
import {libraryPanel} from './library';
import {matrixPanel} from './matrix';
import {obstructionPanel} from './obstruction';
import {panel, Panel} from './panel';
import {
  costPanel,
  diagnosticsPanel,
  fairnessPanel,
  pageHeader,
  predictorPanel,
  pretrainingPanel,
  reproducePanel,
  themeSwitch,
  verdictPanel,
} from './panels';
import {ablationsPanel, controlsPanel, gainsPanel, mainPanel, rawPanel, selectionsPanel} from './results';
import {assignLooks, startTheme} from './theme';

interface Status {
  ready: boolean;
  parseMilliseconds: number; // reading the data
  curvesMilliseconds: number; // drawing the learning curves
  drawMilliseconds: number; // from the start of the script until the curves are on the screen
  pageMilliseconds: number; // … and all other panels
  redrawMilliseconds: number; // drawing the curves after the last switch
}

declare global {
  interface Window {
    msrlReport: Status;
  }
}

const status: Status = {
  ready: false,
  parseMilliseconds: 0,
  curvesMilliseconds: 0,
  drawMilliseconds: 0,
  pageMilliseconds: 0,
  redrawMilliseconds: 0,
};
window.msrlReport = status;

const kNames: Record<string, string> = {
  verdict: 'Verdict',
  curves: 'Learning curves',
  aggregates: 'All tasks together',
  main: 'Results',
  raw: 'Raw returns',
  selections: 'Best of the variants',
  gains: 'Gains',
  controls: 'Negative controls',
  ablations: 'Ablations',
  pretraining: 'Source pretraining',
  diagnostics: 'Source diagnostics',
  clips: 'Clips',
  matrix: 'Matrix viewer',
  library: 'Segment library',
  obstruction: 'Obstruction filter',
  predictor: 'Transfer predictor',
  cost: 'Cost',
  fairness: 'Fairness checklist',
  reproduce: 'How to reproduce',
};

// One panel that fails must not take the others with it.
function guarded(id: string, make: () => Panel | null): Panel | null {
  try {
    return make();
  } catch (error) {
    console.error(id, error);
    return panel(
      id,
      kNames[id] ?? id,
      kNames[id] ?? id,
      null,
      h('p', {class: 'problems'}, `This panel could not be drawn: ${String(error)}`),
    );
  }
}

// Resolves when what has been changed until now is on the screen: in the frame after next.
function painted(): Promise<void> {
  return new Promise((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(() => resolve()));
  });
}

// The curves first: laying out all the tables takes longer than drawing them.
async function build(report: Report, begin: number): Promise<void> {
  document.title = `${report.header.title} – msrl report`;
  assignLooks(report.methods);
  const links = h('div', {class: 'links'});
  const content = h('main', {id: 'content'});
  const absent: string[] = [];
  const add = (id: string, make: () => Panel | null) => {
    const made = guarded(id, make);
    if (made) {
      links.append(h('a', {href: `#${made.id}`}, made.nav));
      content.append(made.element);
    } else {
      absent.push(kNames[id]);
    }
  };
  const page = h('div', {class: 'page'}, pageHeader(report), content);
  document.body.append(
    h('a', {class: 'skip', href: '#content'}, 'Skip to the results'),
    h('nav', {class: 'bar', 'aria-label': 'Panels'}, links, themeSwitch()),
    page,
  );

  let curves: CurvesPanel | null = null;
  add('verdict', () => verdictPanel(report));
  add(
    'curves',
    () =>
      (curves = curvesPanel(report, (ms) => {
        status.redrawMilliseconds = ms;
      })),
  );
  status.curvesMilliseconds = (await (curves as CurvesPanel | null)?.draw()) ?? 0;
  await painted();
  status.drawMilliseconds = performance.now() - begin;

  let aggregates: AggregatesPanel | null = null;
  add('aggregates', () => (aggregates = aggregatesPanel(report)));
  (aggregates as AggregatesPanel | null)?.draw();
  add('main', () => mainPanel(report));
  add('raw', () => rawPanel(report));
  add('selections', () => selectionsPanel(report));
  add('gains', () => gainsPanel(report));
  add('controls', () => controlsPanel(report));
  add('ablations', () => ablationsPanel(report));
  add('pretraining', () => pretrainingPanel(report));
  add('diagnostics', () => diagnosticsPanel(report));
  add('clips', () => clipsPanel(report));
  add('matrix', () => matrixPanel(report));
  add('library', () => libraryPanel(report));
  add('obstruction', () => obstructionPanel(report));
  add('predictor', () => predictorPanel(report));
  add('cost', () => costPanel(report));
  add('fairness', () => fairnessPanel(report));
  add('reproduce', () => reproducePanel(report));
  page.append(
    h(
      'footer',
      {class: 'muted'},
      absent.length > 0
        ? h('p', {}, `Not in this report, for want of records: ` + `${absent.join(', ')}.`)
        : null,
      report.format_version > 1 ? h('p', {}, 'Made by a newer msrl than this page.') : null,
      h('p', {}, 'Definitions: docs/report.md. One file, no network. Charts: uPlot.'),
    ),
  );
  // a link into the page could not be followed before its panel was there
  const wanted = location.hash.slice(1);
  if (wanted in kNames) document.getElementById(wanted)?.scrollIntoView();
}

async function start(): Promise<void> {
  const begin = performance.now();
  startTheme();
  try {
    const report = read(document.getElementById('msrl-data')?.textContent ?? '');
    status.parseMilliseconds = performance.now() - begin;
    await build(report, begin);
  } catch (error) {
    document.body.append(
      h(
        'div',
        {class: 'page'},
        h('h1', {}, 'msrl report'),
        h('p', {class: 'problems', role: 'alert'}, `Nothing to show: ${String(error)}`),
      ),
    );
  }
  await painted();
  status.pageMilliseconds = performance.now() - begin;
  status.ready = true;
}

void start();
