// Light and dark, and the look of each method: colours that stay apart with the common kinds of
// colour blindness (after Okabe and Ito), then dashes, so that twenty methods can be told apart.

import {Method} from './data';

export type Scheme = 'auto' | 'light' | 'dark';

const kLight = ['#0067a5', '#c94f00', '#00805c', '#a8437f', '#8a6a00', '#2f93d1', '#5a5f66'];
const kDark = ['#5aaeed', '#ff8f4d', '#3fc79a', '#e291be', '#e0b93d', '#8fd3ff', '#a9b0b8'];
const kDashes: number[][] = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

const media = window.matchMedia('(prefers-color-scheme: dark)');
let scheme: Scheme = 'auto';
const listeners: (() => void)[] = [];
const colours = new Map<string, string>();

export function isDark(): boolean {
  return scheme === 'auto' ? media.matches : scheme === 'dark';
}

function applyScheme(): void {
  colours.clear();
  document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
  for (const listener of listeners) listener();
}

export function currentScheme(): Scheme {
  return scheme;
}

export function setScheme(next: Scheme): void {
  scheme = next;
  try {
    localStorage.setItem('msrl-theme', next);
  } catch {
    // a page from a file may have no storage
  }
  applyScheme();
}

// Called after the colours have changed.
export function onThemeChange(listener: () => void): void {
  listeners.push(listener);
}

export function startTheme(): void {
  try {
    const kept = localStorage.getItem('msrl-theme');
    if (kept === 'light' || kept === 'dark') scheme = kept;
  } catch {
    // see above
  }
  media.addEventListener('change', applyScheme);
  let before: Scheme = scheme;
  window.addEventListener('beforeprint', () => {
    before = scheme;
    scheme = 'light';
    document.documentElement.classList.add('printing');
    applyScheme();
  });
  window.addEventListener('afterprint', () => {
    scheme = before;
    document.documentElement.classList.remove('printing');
    applyScheme();
  });
  applyScheme();
}

// Kept until the theme changes: asking the browser makes it lay out the page.
export function cssColour(name: string): string {
  let colour = colours.get(name);
  if (colour === undefined) {
    colour = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    colours.set(name, colour);
  }
  return colour;
}

export interface Look {
  colour: string;
  dash: number[];
  width: number;
}

const order = new Map<string, {index: number; role: string}>();

// The methods that the report is about come first and so get plain lines in the first colours.
export function assignLooks(methods: Method[]): void {
  const rank = (role: string) => ['transfer', 'scratch', 'baseline'].indexOf(role) >>> 0;
  const sorted = methods
    .map((method, i) => ({method, i}))
    .sort((a, b) => rank(a.method.role) - rank(b.method.role) || a.i - b.i);
  order.clear();
  sorted.forEach(({method}, index) => order.set(method.name, {index, role: method.role}));
}

export function look(method: string): Look {
  const place = order.get(method) ?? {index: 6, role: ''};
  const palette = isDark() ? kDark : kLight;
  const round = Math.floor(place.index / palette.length);
  return {
    colour: palette[place.index % palette.length],
    dash: kDashes[Math.min(round, kDashes.length - 1)],
    width: place.role === 'transfer' ? 2.25 : 1.5,
  };
}

export function faded(colour: string, alpha: number): string {
  return (
    colour +
    Math.round(alpha * 255)
      .toString(16)
      .padStart(2, '0')
  );
}
