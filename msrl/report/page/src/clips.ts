// Films of trained agents.

import {Clip, Report} from './data';
import {h} from './dom';
import {count, general} from './format';
import {Panel, panel} from './panel';

// base64 and nothing else: no other text can get into an address
const kBase64 = /^[A-Za-z0-9+/]+={0,2}$/;

function source(kind: 'gif' | 'png', data: string): string {
  return kBase64.test(data) ? `data:image/${kind};base64,${data}` : '';
}

function figure(clip: Clip, title: string): HTMLElement {
  const still = source('png', clip.first_frame);
  const film = source('gif', clip.gif);
  const image = h('img', {
    src: still,
    width: clip.width,
    height: clip.height,
    alt: `${title} plays ${clip.env}`,
  });
  const button = h('button', {type: 'button', class: 'quiet no-print'});
  let plays = false;
  const show = (play: boolean) => {
    plays = play;
    image.src = play ? film : still;
    button.textContent = play ? 'Stop' : 'Play';
    button.setAttribute('aria-label', `${play ? 'Stop' : 'Play'} ${clip.env}`);
  };
  button.addEventListener('click', () => show(!plays));
  show(!matchMedia('(prefers-reduced-motion: reduce)').matches);
  const length = clip.ended ? `${count(clip.steps)} steps` : `the first ${count(clip.steps)} steps`;
  return h(
    'figure',
    {class: 'clip'},
    image,
    h(
      'figcaption',
      {},
      h('strong', {}, clip.env),
      h('span', {}, `${title}, seed ${clip.seed}: return ${general(clip.return)} in ${length}`),
      button,
    ),
  );
}

export function clipsPanel(report: Report): Panel | null {
  if (report.clips.length === 0) return null;
  const titles = new Map(report.methods.map((method) => [method.name, method.title]));
  const most = Math.max(...report.clips.map((clip) => clip.runs));
  return panel(
    'clips',
    'Trained agents at work',
    'Clips',
    'Of each task the finished run with the best last evaluation' +
      (most > 1 ? `, of up to ${count(most)}` : '') +
      ': not a typical one. Actions are those of an evaluation, without exploration.',
    h(
      'div',
      {class: 'clips'},
      ...report.clips.map((clip) => figure(clip, titles.get(clip.method) ?? clip.method)),
    ),
  );
}
