// Tables: sortable by every column, copied as CSV, scrolling sideways on narrow screens.

import {Child, copyButton, h} from './dom';
import {csv, isNumber, kAbsent} from './format';

const kShort = 24; // characters that stay on one line

type Value = string | number | null | undefined;

export interface Column<R> {
  title: string;
  hint?: string;
  kind?: 'text' | 'number' | 'plot';
  value: (row: R) => Value; // for sorting and for CSV
  cell?: (row: R) => Child | Child[]; // default: the value
  export?: [string, (row: R) => Value][]; // CSV columns, default: title and value
  head?: () => Node; // a second line in the head, e.g. an axis
  sortable?: boolean;
}

export interface TableOptions<R> {
  label: string;
  columns: Column<R>[];
  rows: R[];
  group?: (row: R) => string; // a rule between groups while unsorted
  heading?: (row: R) => string; // a line above each group, which sorting then keeps
  rowClass?: (row: R) => string;
  select?: (row: R) => void; // rows become choosable by a button in the first cell
  selected?: (row: R) => boolean;
  height?: string;
}

export function tableCsv<R>(columns: Column<R>[], rows: R[]): string {
  const parts = columns
    .filter((c) => c.kind !== 'plot' || c.export)
    .flatMap((c) => c.export ?? [[c.title, c.value] as [string, (row: R) => Value]]);
  return csv([
    parts.map(([title]) => title),
    ...rows.map((row) => parts.map(([, value]) => value(row))),
  ]);
}

function compare(a: Value, b: Value): number {
  if (isNumber(a) && isNumber(b)) return a - b;
  return String(a).localeCompare(String(b), 'en', {numeric: true});
}

export interface TableView {
  element: HTMLElement;
  refresh: (rows?: unknown[]) => void;
}

export function makeTable<R>(options: TableOptions<R>): TableView {
  let rows = options.rows;
  let sorted: {column: number; descending: boolean} | null = null;
  const body = h('tbody');
  const heads = options.columns.map((column, i) => {
    const kind = column.kind ?? 'text';
    const sortable = column.sortable ?? kind !== 'plot';
    const inner = sortable
      ? h('button', {type: 'button', class: 'sort', onclick: () => sort(i)}, column.title)
      : h('span', {}, column.title);
    return h('th', {scope: 'col', class: kind, title: column.hint}, inner, column.head?.());
  });

  function sort(i: number): void {
    const down = options.columns[i].kind === 'number';
    if (sorted?.column !== i) {
      sorted = {column: i, descending: down};
    } else if (sorted.descending === down) {
      sorted = {column: i, descending: !down};
    } else {
      sorted = null;
    }
    heads.forEach((head, k) => {
      if (sorted?.column === k) {
        head.setAttribute('aria-sort', sorted.descending ? 'descending' : 'ascending');
      } else {
        head.removeAttribute('aria-sort');
      }
    });
    fill();
  }

  function fill(): void {
    let shown = rows;
    if (sorted) {
      const {column, descending} = sorted;
      const value = options.columns[column].value;
      const missing = (v: Value) => v === null || v === undefined || Number.isNaN(v);
      const places = new Map<string, number>();
      for (const row of rows) {
        const own = options.heading?.(row) ?? '';
        if (!places.has(own)) places.set(own, places.size);
      }
      const place = (row: R) => places.get(options.heading?.(row) ?? '') ?? 0;
      shown = rows.slice().sort((a, b) => {
        if (place(a) !== place(b)) return place(a) - place(b);
        const [va, vb] = [value(a), value(b)];
        // what does not exist is last in both directions
        if (missing(va) || missing(vb)) return Number(missing(va)) - Number(missing(vb));
        return descending ? compare(vb, va) : compare(va, vb);
      });
    }
    let group: string | null = null;
    body.replaceChildren(
      ...shown.flatMap((row) => {
        const own = options.heading?.(row) ?? options.group?.(row) ?? '';
        const fresh = own !== group;
        const rule = !options.heading && !sorted && group !== null && fresh;
        group = own;
        const chosen = options.selected?.(row) ?? false;
        const tr = h('tr', {
          class:
            [rule ? 'rule' : '', chosen ? 'chosen' : '', options.rowClass?.(row) ?? '']
              .filter(Boolean)
              .join(' ') || null,
        });
        options.columns.forEach((column, i) => {
          const content = column.cell ? column.cell(row) : column.value(row);
          const short = typeof content === 'string' && content.length <= kShort ? ' short' : '';
          const children = (Array.isArray(content) ? content : [content]).map((c) =>
            c === null || c === undefined ? kAbsent : c,
          );
          if (i === 0) {
            const inner = options.select
              ? [
                  h(
                    'button',
                    {
                      type: 'button',
                      class: 'pick',
                      'aria-pressed': String(chosen),
                      onclick: () => options.select?.(row),
                    },
                    ...children,
                  ),
                ]
              : children;
            tr.append(h('th', {scope: 'row', class: (column.kind ?? 'text') + short}, ...inner));
          } else {
            tr.append(h('td', {class: (column.kind ?? 'text') + short}, ...children));
          }
        });
        if (!options.heading || !fresh) return [tr];
        const title = h('th', {scope: 'rowgroup', colspan: options.columns.length}, own);
        return [h('tr', {class: 'heading'}, title), tr];
      }),
    );
  }

  fill();
  const table = h('table', {}, h('thead', {}, h('tr', {}, ...heads)), body);
  return {
    element: h(
      'div',
      {
        class: 'table-scroll',
        role: 'region',
        'aria-label': options.label,
        tabindex: 0,
        style: options.height ? `max-height:${options.height}` : null,
      },
      table,
    ),
    refresh: (next) => {
      if (next) rows = next as R[];
      fill();
    },
  };
}

// A table with its copy button.
export function tableBlock<R>(options: TableOptions<R>): HTMLElement {
  return h(
    'div',
    {class: 'table-block'},
    makeTable(options).element,
    h(
      'div',
      {class: 'under'},
      copyButton('Copy as CSV', () => tableCsv(options.columns, options.rows)),
    ),
  );
}
