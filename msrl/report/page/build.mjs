// Bundles the page into one HTML file that needs nothing else:
//   node build.mjs --modules DIR --out report_page.html [--data data.json]
// DIR holds node_modules. --data fills the page as `msrl report --html` does (for tests).
import {createRequire} from 'node:module';
import {readFileSync, renameSync, writeFileSync} from 'node:fs';
import {dirname, join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const marker = '"__MSRL_DATA__"';

export function fill(template, data) {
  const text = JSON.stringify(data).replaceAll('<', '\\u003c');
  return template.replace(marker, () => text);
}

export async function bundle(modules) {
  const load = createRequire(join(resolve(modules), 'package.json'));
  const esbuild = load('esbuild');
  const result = await esbuild.build({
    entryPoints: [join(here, 'src/main.ts')],
    bundle: true,
    write: false,
    outdir: 'out',
    format: 'iife',
    target: 'es2020',
    charset: 'utf8',
    minify: true,
    legalComments: 'none',
    nodePaths: [join(resolve(modules), 'node_modules')],
    tsconfig: join(here, 'tsconfig.json'),
    logLevel: 'warning',
  });
  const text = (ending) =>
    result.outputFiles.find((file) => file.path.endsWith(ending)).text.trim();
  const folder = dirname(load.resolve('uplot/package.json'));
  const version = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version;
  const notice =
    `/*! Charts: uPlot ${version}, https://github.com/leeoniya/uPlot\n\n` +
    `${readFileSync(join(folder, 'LICENSE'), 'utf8').trim()}\n*/\n`;
  const parts = {'/*STYLE*/': text('.css'), '/*SCRIPT*/': notice + text('.js')};
  let page = readFileSync(join(here, 'index.html'), 'utf8');
  for (const [place, content] of Object.entries(parts)) {
    if (page.split(place).length !== 2) throw new Error(`index.html: ${place} must occur once`);
    if (/<\/(script|style)|<!--/i.test(content)) throw new Error(`${place}: would end its element`);
    page = page.replace(place, () => content);
  }
  if (page.split(marker).length !== 2) throw new Error(`the page must hold ${marker} once`);
  return page;
}

function option(name) {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? undefined : process.argv[at + 1];
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const modules = option('modules');
  const out = option('out');
  if (!modules || !out) {
    console.error('usage: node build.mjs --modules DIR --out FILE [--data FILE]');
    process.exit(2);
  }
  let page = await bundle(modules);
  const data = option('data');
  if (data) page = fill(page, JSON.parse(readFileSync(data, 'utf8')));
  writeFileSync(`${out}.part`, page);
  renameSync(`${out}.part`, out);
}
