import {Child, h} from './dom';

export interface Panel {
  id: string;
  title: string;
  nav: string;
  element: HTMLElement;
}

// Panels have fixed ids, never names from the data.
export function panel(
  id: string,
  title: string,
  nav: string,
  intro: Child | Child[],
  ...content: Child[]
): Panel {
  const lines = Array.isArray(intro) ? intro : [intro];
  const element = h(
    'section',
    {id, class: 'panel', 'aria-labelledby': `${id}-title`},
    h('h2', {id: `${id}-title`}, title),
    lines.some(Boolean) ? h('p', {class: 'intro'}, ...lines) : null,
    ...content,
  );
  return {id, title, nav, element};
}
