// Elements from data. Text only ever becomes text nodes and attribute values, so a name like
// "</script><img onerror=…>" is shown as it is written.

export type Child = Node | string | number | null | undefined | false;
type Handler = (event: Event) => void;
export type Attributes = Record<string, string | number | boolean | null | undefined | Handler>;

function apply(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') {
      element.addEventListener(name.replace(/^on/, ''), value);
    } else if (value === true) {
      element.setAttribute(name, '');
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  apply(element, attributes, children);
  return element;
}

export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  apply(element, attributes, children);
  return element;
}

let counter = 0;
export function freshId(prefix: string): string {
  counter += 1;
  return `${prefix}-${counter}`;
}

// One of several: radio buttons that look like a segmented switch.
export function choice<T extends string>(
  label: string,
  options: {value: T; title: string; hint?: string}[],
  chosen: T,
  changed: (value: T) => void,
): HTMLElement {
  const name = freshId('choice');
  return h(
    'fieldset',
    {class: 'choice'},
    h('legend', {}, label),
    h(
      'div',
      {class: 'segments'},
      ...options.map((option) => {
        const input = h('input', {
          type: 'radio',
          name,
          value: option.value,
          checked: option.value === chosen,
          onchange: () => changed(option.value),
        });
        return h('label', {title: option.hint}, input, h('span', {}, option.title));
      }),
    ),
  );
}

export function toggle(
  label: Child,
  on: boolean,
  changed: (on: boolean) => void,
  attributes: Attributes = {},
): HTMLLabelElement {
  const input = h('input', {type: 'checkbox', checked: on});
  input.addEventListener('change', () => changed(input.checked));
  return h('label', {class: 'toggle', ...attributes}, input, h('span', {}, label));
}

export function select(
  label: string,
  options: string[],
  chosen: number,
  changed: (index: number) => void,
): HTMLLabelElement {
  const box = h(
    'select',
    {},
    ...options.map((title, i) => h('option', {value: i, selected: i === chosen}, title)),
  );
  box.addEventListener('change', () => changed(Number(box.value)));
  return h('label', {class: 'select'}, h('span', {}, label), box);
}

export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // no clipboard without a secure context: the old way
    const area = h('textarea', {'aria-hidden': 'true', style: 'position:fixed;top:-99em'});
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
}

export function copyButton(title: string, text: () => string): HTMLButtonElement {
  const button = h('button', {type: 'button', class: 'quiet no-print'}, title);
  button.addEventListener('click', () => {
    void copyText(text()).then(() => {
      button.textContent = 'Copied';
      setTimeout(() => {
        button.textContent = title;
      }, 1500);
    });
  });
  return button;
}
