// The page of `msrl report`: reads the data that is in the file and draws one panel after another.

import 'uplot/dist/uPlot.min.css';
import './style.css';

import {CurvesPanel, curvesPanel} from './curves';
import {read, Report} from './data';
import {h} from './dom';
import {libraryPanel} from './library';
import {matrixPanel} from './matrix';
import {obstructionPanel} from './obstruction';
import {panel, Panel} from './panel';
import {
  costPanel, diagnosticsPanel, fairnessPanel, pageHeader, predictorPanel, pretrainingPanel,
  reproducePanel, themeSwitch, verdictPanel,
} from './panels';
import {ablationsPanel, controlsPanel, gainsPanel, mainPanel} from './results';
import {assignLooks, startTheme} from './theme';

interface Status {
  ready: boolean;
  parseMilliseconds: number;     // reading the data
  curvesMilliseconds: number;    // drawing all learning curves
  redrawMilliseconds: number;    // the same, after the last switch
  drawMilliseconds: number;      // from the start of the script until everything is on the screen
}

declare global {
  interface Window { msrlReport: Status }
}

const status: Status = {
  ready: false, parseMilliseconds: 0, curvesMilliseconds: 0, redrawMilliseconds: 0,
  drawMilliseconds: 0,
};
window.msrlReport = status;

const kNames: Record<string, string> = {
  verdict: 'Verdict', curves: 'Learning curves', main: 'Results', gains: 'Gains',
  controls: 'Negative controls', ablations: 'Ablations', pretraining: 'Source pretraining',
  diagnostics: 'Source diagnostics', matrix: 'Matrix viewer', library: 'Segment library',
  obstruction: 'Obstruction filter', predictor: 'Transfer predictor', cost: 'Cost',
  fairness: 'Fairness checklist', reproduce: 'How to reproduce',
};

// One panel that fails must not take the others with it.
function guarded(id: string, make: () => Panel | null): Panel | null {
  try {
    return make();
  } catch (error) {
    console.error(id, error);
    return panel(id, kNames[id] ?? id, kNames[id] ?? id, null,
                 h('p', {class: 'problems'}, `This panel could not be drawn: ${String(error)}`));
  }
}

function build(report: Report): CurvesPanel | null {
  document.title = `${report.header.title} – msrl report`;
  assignLooks(report.methods);
  let curves: CurvesPanel | null = null;
  const makers: [string, () => Panel | null][] = [
    ['verdict', () => verdictPanel(report)],
    ['curves', () => {
      curves = curvesPanel(report, (ms) => { status.redrawMilliseconds = ms; });
      return curves;
    }],
    ['main', () => mainPanel(report)],
    ['gains', () => gainsPanel(report)],
    ['controls', () => controlsPanel(report)],
    ['ablations', () => ablationsPanel(report)],
    ['pretraining', () => pretrainingPanel(report)],
    ['diagnostics', () => diagnosticsPanel(report)],
    ['matrix', () => matrixPanel(report)],
    ['library', () => libraryPanel(report)],
    ['obstruction', () => obstructionPanel(report)],
    ['predictor', () => predictorPanel(report)],
    ['cost', () => costPanel(report)],
    ['fairness', () => fairnessPanel(report)],
    ['reproduce', () => reproducePanel(report)],
  ];
  const made = makers.map(([id, make]) => ({id, panel: guarded(id, make)}));
  const panels = made.map((entry) => entry.panel).filter((p): p is Panel => p !== null);
  const empty = made.filter((entry) => entry.panel === null).map((entry) => kNames[entry.id]);
  const nav = h('nav', {class: 'bar', 'aria-label': 'Panels'},
                h('div', {class: 'links', tabindex: -1},
                  ...panels.map((p) => h('a', {href: `#${p.id}`}, p.nav))),
                themeSwitch());
  document.body.append(
      h('a', {class: 'skip', href: '#content'}, 'Skip to the results'), nav,
      h('div', {class: 'page'}, pageHeader(report),
        h('main', {id: 'content'}, ...panels.map((p) => p.element)),
        h('footer', {class: 'muted'},
          empty.length > 0 ? h('p', {}, `Not in this report, for want of records: ` +
                                        `${empty.join(', ')}.`) : null,
          report.format_version > 1 ? h('p', {}, 'Made by a newer msrl than this page.') : null,
          h('p', {}, 'Definitions: docs/report.md. One file, no network. Charts: uPlot.'))));
  return curves;
}

function start(): void {
  const begin = performance.now();
  startTheme();
  try {
    const report = read(document.getElementById('msrl-data')?.textContent ?? '');
    status.parseMilliseconds = performance.now() - begin;
    const curves = build(report);
    void curves?.draw().then((ms) => { status.curvesMilliseconds = ms; });
  } catch (error) {
    document.body.append(h('div', {class: 'page'}, h('h1', {}, 'msrl report'),
        h('p', {class: 'problems', role: 'alert'}, `Nothing to show: ${String(error)}`)));
  }
  // the frame after next: by then this one is on the screen
  requestAnimationFrame(() => requestAnimationFrame(() => {
    status.drawMilliseconds = performance.now() - begin;
    status.ready = true;
  }));
}

start();
