// Library browser: the segments that an agent keeps, their numbers and their neighbours.

import {Library, Report, Segment} from './data';
import {h, s, select} from './dom';
import {count, fixed, general, isNumber, plural} from './format';
import {Panel, panel} from './panel';
import {Column, makeTable, tableCsv} from './table';
import {copyButton} from './dom';

const kNeighbours = 8;

function distance(a: number[], b: number[]): number {
  let sum = 0;
  for (let i = 0; i < Math.min(a.length, b.length); i++) sum += (a[i] - b[i]) ** 2;
  return Math.sqrt(sum);
}

const moved = (segment: Segment) => distance(segment.entry, segment.tail);

// Names of the geometry slots: given, or taken from the first block of a matrix, or numbers.
function slotNames(report: Report, library: Library, wanted: number): string[] {
  if (library.slots && library.slots.length >= wanted) return library.slots;
  const matrix = report.matrices.find((m) => m.blocks[0]?.size === wanted);
  if (matrix) return matrix.labels.slice(0, wanted).map((label) => label.replace(/^x /, ''));
  return Array.from({length: wanted}, (_, i) => `slot ${i}`);
}

// A number and a bar around zero.
function bar(value: number, limit: number): SVGElement {
  const half = 50 * Math.min(1, Math.abs(value) / (limit || 1));
  return s(
    'svg',
    {class: 'cell-bar', 'aria-hidden': 'true', preserveAspectRatio: 'none', viewBox: '0 0 100 10'},
    s('line', {x1: 50, x2: 50, y1: 0, y2: 10, class: 'rule zero'}),
    s('rect', {
      x: value < 0 ? 50 - half : 50,
      width: half,
      y: 2,
      height: 6,
      class: value < 0 ? 'bar down' : 'bar',
    }),
  );
}

export function libraryPanel(report: Report): Panel | null {
  const all = report.library.filter((library) => library.segments?.length > 0);
  if (all.length === 0) return null;
  let current = 0;
  let chosen: Segment | null = null;
  let text = '';
  let least = 0;

  const library = () => all[current];
  const place = h('div', {class: 'segments-table'});
  const detail = h('div', {class: 'segment', 'aria-live': 'polite'});
  const status = h('span', {class: 'muted'});
  const filter = h('input', {
    type: 'search',
    placeholder: 'id, or terminated',
    'aria-label': 'Filter segments',
  });
  const uses = h('input', {type: 'number', min: 0, step: 1, value: 0, 'aria-label': 'Least uses'});

  const columns: Column<Segment>[] = [
    {title: 'Segment', kind: 'number', value: (g) => g.id, cell: (g) => `#${g.id}`},
    {
      title: 'Uses',
      kind: 'number',
      value: (g) => g.uses,
      cell: (g) => count(g.uses),
      hint: 'How often the planner executed it',
    },
    {title: 'Reward', kind: 'number', value: (g) => g.reward, cell: (g) => general(g.reward)},
    {title: 'Length', kind: 'number', value: (g) => g.length, cell: (g) => count(g.length)},
    {
      title: 'Moved',
      kind: 'number',
      value: moved,
      cell: (g) => fixed(moved(g), 3),
      hint: 'Distance between entry and tail in the aligned geometry',
    },
    {title: 'Ends', value: (g) => (g.terminated ? 'terminated' : 'goes on')},
  ];

  const shown = () =>
    library().segments.filter((g) => {
      if (g.uses < least) return false;
      const wanted = text.trim().replace(/^#/, '').toLowerCase();
      return (
        wanted === '' ||
        String(g.id).startsWith(wanted) ||
        (g.terminated ? 'terminated' : 'goes on').startsWith(wanted)
      );
    });
  let table: ReturnType<typeof makeTable<Segment>> | null = null;

  function tell(): void {
    const {size, capacity, segments} = library();
    const parts = [`${count(shown().length)} of ${plural(segments.length, 'segment')} shown`];
    if (isNumber(size)) {
      parts.push(
        `the library holds ${count(size)}` +
          (isNumber(capacity) ? ` of at most ${count(capacity)}` : '') +
          (size > segments.length ? '; these are the most used' : ''),
      );
    }
    status.textContent = parts.join('; ');
  }

  function showDetail(): void {
    if (!chosen) {
      detail.replaceChildren(
        h('p', {class: 'note'}, 'Choose a segment to see its contexts and its neighbours.'),
      );
      return;
    }
    const own = chosen;
    const names = slotNames(report, library(), own.entry.length);
    const limit = Math.max(...own.entry.map(Math.abs), ...own.tail.map(Math.abs), 1e-9);
    const near = library()
      .segments.filter((g) => g !== own)
      .map((g) => ({g, d: distance(own.entry, g.entry)}))
      .sort((a, b) => a.d - b.d)
      .slice(0, kNeighbours);
    const numbers = own.entry.map((entry, i) =>
      h(
        'tr',
        {},
        h('th', {scope: 'row'}, names[i] ?? `slot ${i}`),
        h('td', {class: 'number'}, general(entry)),
        h('td', {}, bar(entry, limit)),
        h('td', {class: 'number'}, general(own.tail[i])),
        h('td', {}, bar(own.tail[i] ?? 0, limit)),
      ),
    );
    detail.replaceChildren(
      h('h3', {}, `Segment #${own.id}`),
      h(
        'p',
        {class: 'note'},
        `Used ${count(own.uses)} times, reward ${general(own.reward)}, ` +
          `length ${count(own.length)}, ` +
          (own.terminated ? 'ends the episode. ' : 'goes on. ') +
          `Head action: ${own.head.map((v) => general(v)).join(', ')}`,
      ),
      h(
        'div',
        {
          class: 'table-scroll',
          tabindex: 0,
          role: 'region',
          'aria-label': 'Contexts of the segment',
        },
        h(
          'table',
          {class: 'small'},
          h(
            'thead',
            {},
            h(
              'tr',
              {},
              h('th', {scope: 'col'}, 'Slot'),
              h('th', {scope: 'col', class: 'middle', colspan: 2}, 'Entry'),
              h('th', {scope: 'col', class: 'middle', colspan: 2}, 'Tail'),
            ),
          ),
          h('tbody', {}, ...numbers),
        ),
      ),
      h('h4', {}, 'Nearest in entry context'),
      makeTable<{g: Segment; d: number}>({
        label: 'Nearest segments',
        rows: near,
        select: ({g}) => choose(g),
        columns: [
          {title: 'Segment', kind: 'number', value: ({g}) => g.id, cell: ({g}) => `#${g.id}`},
          {title: 'Distance', kind: 'number', value: ({d}) => d, cell: ({d}) => fixed(d, 3)},
          {
            title: 'Reward',
            kind: 'number',
            value: ({g}) => g.reward,
            cell: ({g}) => general(g.reward),
          },
          {title: 'Uses', kind: 'number', value: ({g}) => g.uses, cell: ({g}) => count(g.uses)},
        ],
      }).element,
    );
  }

  function choose(segment: Segment): void {
    chosen = segment;
    table?.refresh(shown());
    showDetail();
  }

  function load(): void {
    chosen = shown()[0] ?? null;
    table = makeTable<Segment>({
      label: 'Segments',
      columns,
      rows: shown(),
      height: '26rem',
      select: choose,
      selected: (g) => g === chosen,
    });
    place.replaceChildren(table.element);
    tell();
    showDetail();
  }
  const again = () => {
    table?.refresh(shown());
    tell();
  };
  filter.addEventListener('input', () => {
    text = filter.value;
    again();
  });
  uses.addEventListener('input', () => {
    least = Number(uses.value) || 0;
    again();
  });
  load();
  return panel(
    'library',
    'Segment library',
    'Library',
    'Pieces of experience that the planner composes: head action, entry context, tail and reward.',
    h(
      'div',
      {class: 'controls no-print'},
      select(
        'Run',
        all.map((l) => `${l.env} · ${l.method} · seed ${l.seed}`),
        0,
        (i) => {
          current = i;
          load();
        },
      ),
      h('label', {class: 'select'}, h('span', {}, 'Filter'), filter),
      h('label', {class: 'select'}, h('span', {}, 'Used at least'), uses),
      copyButton('Copy as CSV', () =>
        tableCsv(
          [
            ...columns,
            {title: 'head', value: (g) => g.head.join(' ')},
            {title: 'entry', value: (g) => g.entry.join(' ')},
            {title: 'tail', value: (g) => g.tail.join(' ')},
          ],
          shown(),
        ),
      ),
    ),
    status,
    h('div', {class: 'split'}, place, detail),
  );
}
