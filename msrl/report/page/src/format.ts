// Numbers as text. Absent numbers are a dash; minus is the real minus sign, as wide as plus.

export type Maybe = number | null | undefined;
export const kAbsent = '–';

export function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function minus(text: string): string {
  return text.replace('-', '−');
}

export function fixed(value: Maybe, digits = 2): string {
  if (!isNumber(value)) return kAbsent;
  const text = value.toFixed(digits);
  return minus(Number(text) === 0 ? text.replace('-', '') : text);
}

export function signed(value: Maybe, digits = 3): string {
  if (!isNumber(value)) return kAbsent;
  const text = fixed(value, digits);
  return Number(value.toFixed(digits)) > 0 ? `+${text}` : text;
}

// Few significant digits, for returns and matrix entries of any size.
export function general(value: Maybe, digits = 3): string {
  if (!isNumber(value)) return kAbsent;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return minus(value.toExponential(digits - 1));
  const decimals = size === 0 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return minus(value.toFixed(Math.min(decimals, 6)));
}

export function interval(low: Maybe, high: Maybe, digits = 3): string {
  if (!isNumber(low) || !isNumber(high)) return kAbsent;
  return `[${fixed(low, digits)}, ${fixed(high, digits)}]`;
}

export function count(value: Maybe): string {
  if (!isNumber(value)) return kAbsent;
  return minus(Math.round(value).toString()).replace(/\B(?=(\d{3})+(?!\d))/g, ' ');
}

// 12 500 steps as "12.5k", for axes and for narrow cells.
export function compact(value: Maybe): string {
  if (!isNumber(value)) return kAbsent;
  const size = Math.abs(value);
  if (size >= 1e6) return minus(`${Number((value / 1e6).toPrecision(3))}M`);
  if (size >= 1e3) return minus(`${Number((value / 1e3).toPrecision(3))}k`);
  return minus(String(Number(value.toPrecision(3))));
}

export function duration(seconds: Maybe): string {
  if (!isNumber(seconds)) return kAbsent;
  if (seconds < 100) return `${fixed(seconds, 1)} s`;
  if (seconds < 6000) return `${fixed(seconds / 60, 1)} min`;
  return `${fixed(seconds / 3600, 1)} h`;
}

export function plural(n: number, word: string): string {
  return `${count(n)} ${word}${n === 1 ? '' : 's'}`;
}

export function csv(rows: (string | number | null | undefined)[][]): string {
  const field = (value: string | number | null | undefined) => {
    if (value === null || value === undefined) return '';
    const text = String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(field).join(',')).join('\n') + '\n';
}
