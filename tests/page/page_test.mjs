// The report page in a real browser. Run by ctest (report_page), or by hand:
//   node page_test.mjs --page report_page.html --source msrl/report/page --page-modules DIR
//                      --test-modules DIR --chromium PROGRAM --out DIR
// The modules are folders with node_modules; --out gets screenshots.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join, resolve} from 'node:path';
import {after, before, test} from 'node:test';
import {pathToFileURL} from 'node:url';

import {kHostile, makeData} from './make-data.mjs';

function option(name) {
  const at = process.argv.indexOf(`--${name}`);
  if (at < 0 || !process.argv[at + 1]) throw new Error(`--${name} is missing`);
  return resolve(process.argv[at + 1]);
}

const source = option('source');
const out = option('out');
const load = createRequire(join(option('test-modules'), 'package.json'));
const {chromium} = load('playwright-core');
const axe = readFileSync(load.resolve('axe-core/axe.min.js'), 'utf8');
const {fill} = await import(pathToFileURL(join(source, 'build.mjs')));
const template = readFileSync(option('page'), 'utf8');
const chromiumPath = option('chromium');

mkdirSync(out, {recursive: true});
let browser;
before(async () => {
  browser = await chromium.launch({
    executablePath: chromiumPath,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
});
after(() => browser?.close());

// Opens the page with the data; `seen` collects everything that a quiet page does not do.
async function open(
  data,
  {width = 1280, scheme = 'light', motion = 'no-preference', html, timeout = 30000} = {},
) {
  const file = join(out, `page-${Math.random().toString(36).slice(2)}.html`);
  writeFileSync(file, html ?? fill(template, data));
  const context = await browser.newContext({
    viewport: {width, height: 900},
    colorScheme: scheme,
    reducedMotion: motion,
  });
  const page = await context.newPage();
  const seen = [];
  page.on('console', (message) => seen.push(`console ${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => seen.push(`error: ${error.message}`));
  page.on('request', (request) => {
    if (request.url() !== pathToFileURL(file).href && !request.url().startsWith('data:')) {
      seen.push(`request: ${request.url()}`);
    }
  });
  await page.goto(pathToFileURL(file).href);
  await page.waitForFunction(() => window.msrlReport?.ready, null, {timeout});
  return {page, seen, close: () => context.close().then(() => rmSync(file))};
}

const settle = (page) =>
  page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );

// Pixels of a canvas: how many have this colour, how many colours there are, and a hash.
const pixels = (page, selector, colour = null) =>
  page
    .locator(selector)
    .first()
    .evaluate((canvas, wanted) => {
      // from a copy: reading the original often makes the browser complain
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', {
        willReadFrequently: true,
      });
      copy.drawImage(canvas, 0, 0);
      const {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
      const rgb = wanted && [1, 3, 5].map((i) => parseInt(wanted.slice(i, i + 2), 16));
      const colours = new Set();
      let count = 0;
      let hash = 0;
      for (let i = 0; i < data.length; i += 4) {
        const value = (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
        if (data[i + 3] > 0) colours.add(value);
        hash = (Math.imul(hash, 31) + value + data[i + 3]) | 0;
        if (rgb && data[i + 3] === 255 && rgb.every((v, k) => Math.abs(v - data[i + k]) <= 2))
          count += 1;
      }
      return {count, colours: colours.size, hash};
    }, colour);

const kChart = '.chart canvas:not(.swatch)';
const kBlue = '#0067a5'; // the method that the report is about, in the light theme

test('the sources have right types', () => {
  const config = join(out, 'tsconfig.json');
  writeFileSync(
    config,
    JSON.stringify({
      extends: join(source, 'tsconfig.json'),
      compilerOptions: {
        paths: {
          uplot: [join(option('page-modules'), 'node_modules/uplot/dist/uPlot.d.ts')],
        },
      },
      include: [join(source, 'src/**/*.ts')],
    }),
  );
  try {
    execFileSync(process.execPath, [
      join(option('test-modules'), 'node_modules/typescript/bin/tsc'),
      '-p',
      config,
    ]);
  } catch (error) {
    assert.fail(String(error.stdout || error));
  }
});

test('the template is one file with one place for data, a policy and the licence', () => {
  assert.equal(template.split('"__MSRL_DATA__"').length, 2);
  assert.match(
    template,
    /Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:/,
  );
  assert.match(template, /Copyright \(c\) 2022 Leon Sorokin/);
  assert.match(template, /The above copyright notice and this permission notice/);
  assert.doesNotMatch(
    template,
    /<(script|img|iframe)[^>]+src=|<link[^>]+href="(?!data:)|@import|url\((?!data:)/,
  );
});

test('the empty template says what it is', async () => {
  const {page, seen, close} = await open(null, {html: template});
  assert.match(await page.textContent('[role=alert]'), /empty template/);
  assert.deepEqual(seen, []);
  await close();
});

for (const [kind, ...schemes] of [
  ['small', 'light', 'dark'],
  ['hostile', 'light'],
  ['bare', 'dark'],
  ['empty', 'light'],
]) {
  for (const scheme of schemes) {
    test(`${kind}, ${scheme}: draws in silence, passes axe, fits a phone`, async () => {
      const data = makeData(kind);
      for (const library of data.library) library.segments.length = 12; // axe is slow
      const {page, seen, close} = await open(data, {scheme});
      await page.screenshot({path: join(out, `${kind}-${scheme}.png`), fullPage: true});
      await page.evaluate(axe);
      const result = await page.evaluate(() => window.axe.run(document));
      const bad = result.violations
        .filter((v) => ['serious', 'critical'].includes(v.impact))
        .map(
          (v) =>
            `${v.id}: ${v.nodes
              .slice(0, 3)
              .map((n) => `${n.target} ${n.failureSummary}`)
              .join(' | ')}`,
        );
      assert.deepEqual(bad, []);
      await page.setViewportSize({width: 390, height: 844});
      await settle(page);
      await page.screenshot({path: join(out, `${kind}-${scheme}-phone.png`), fullPage: true});
      assert.ok(
        (await page.evaluate(() => document.documentElement.scrollWidth)) <= 390,
        'wider than a phone',
      );
      assert.deepEqual(seen, []);
      await close();
    });
  }
}

test('every panel is there, and only explained ones are missing', async () => {
  const panels = [
    'verdict',
    'curves',
    'aggregates',
    'main',
    'raw',
    'selections',
    'gains',
    'controls',
    'ablations',
    'pretraining',
    'diagnostics',
    'clips',
    'matrix',
    'library',
    'obstruction',
    'predictor',
    'cost',
    'fairness',
    'reproduce',
  ];
  const full = await open(makeData('small'));
  assert.deepEqual(await full.page.$$eval('main section', (all) => all.map((s) => s.id)), panels);
  assert.deepEqual(
    await full.page.$$eval('nav a', (all) => all.map((a) => a.getAttribute('href'))),
    panels.map((id) => `#${id}`),
  );
  assert.match(await full.page.textContent('.problems'), /2 problems.*critic loss is nan/s);
  assert.match(await full.page.textContent('.counts'), /1 failed.*2 missing/s);
  assert.match(await full.page.textContent('.top .commands'), /msrl sweep configs\/quick\.toml/);
  await full.close();
  const bare = await open(makeData('bare'));
  const shown = await bare.page.$$eval('main section', (all) => all.map((s) => s.id));
  assert.deepEqual(shown, ['curves', 'main', 'reproduce']);
  assert.match(await bare.page.textContent('footer'), /Not in this report.*Matrix viewer/s);
  assert.match(await bare.page.textContent('.chart figcaption'), /too few/);
  await bare.close();
});

test('curves: methods, families, scale, seeds and the readout', async () => {
  const {page, seen, close} = await open(makeData('small'));
  const first = await pixels(page, kChart, kBlue);
  assert.ok(first.colours > 60, `only ${first.colours} colours`);
  assert.ok(first.count > 150, `only ${first.count} pixels of the main method`);
  await page.locator('[data-method=msrl] input').uncheck();
  await settle(page);
  assert.equal((await pixels(page, kChart, kBlue)).count, 0);
  await page.locator('[data-method=msrl] input').check();
  await settle(page);
  assert.equal((await pixels(page, kChart)).hash, first.hash);

  await page.getByRole('button', {name: 'None', exact: true}).click();
  await settle(page);
  assert.match(await page.textContent('.chart'), /switched off/);
  await page.getByRole('button', {name: 'All methods'}).click();
  await settle(page);
  assert.equal((await pixels(page, kChart)).hash, first.hash);

  assert.equal(await page.locator('#curves .chart:visible').count(), 3);
  await page.locator('[data-family=Hopper] input').uncheck();
  assert.equal(await page.locator('#curves .chart:visible').count(), 2);
  assert.equal(await page.locator('.chart[data-env=hopper]').isVisible(), false);
  await page.locator('[data-family=Hopper] input').check();

  const chart = page.locator('.chart[data-env=reacher] .chart-canvas');
  assert.match(
    await chart.getAttribute('aria-label'),
    /reacher, normalised.*MSRL \+ pretrained F init 0\.\d\d/,
  );
  await page.locator('#curves').getByLabel('Return', {exact: true}).check();
  await settle(page);
  assert.match(
    await chart.getAttribute('aria-label'),
    /reacher, raw.*MSRL \+ pretrained F init −\d\d/,
  );
  await page.locator('#curves').getByLabel('Success').check();
  await settle(page);
  assert.match(await page.textContent('.chart[data-env=reacher]'), /defines no success/);
  assert.match(
    await page.locator('.chart[data-env=antmaze-u] .chart-canvas').getAttribute('aria-label'),
    /SAC 0\.\d\d/,
  );
  await page.locator('#curves').getByLabel('Normalised').check();
  await page.locator('#curves').getByLabel('Seeds').check();
  await settle(page);
  assert.notEqual((await pixels(page, kChart)).hash, first.hash);
  await page.locator('#curves').getByLabel('Seeds').uncheck();
  await page.locator('#curves').getByLabel('Bands').uncheck();
  await settle(page);
  assert.ok((await pixels(page, kChart)).colours < first.colours);
  await page.locator('#curves').getByLabel('Bands').check();

  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2);
  await settle(page);
  assert.match(await chart.locator('.tip').textContent(), /step \d.*MSRL from scratch0\.\d{3}/);
  assert.equal((await chart.locator('.tip .swatch').first().boundingBox()).width, 20);
  assert.ok((await chart.locator('.tip').boundingBox()).height < 200);
  await page.mouse.move(0, 0);
  await chart.focus();
  await page.keyboard.press('End');
  await settle(page);
  assert.match(await chart.locator('.tip').textContent(), /step 8k/);
  await page.keyboard.press('Escape');
  await settle(page);
  assert.equal(await chart.locator('.tip').isVisible(), false);

  const narrow = (await chart.boundingBox()).width;
  await page.locator('.chart[data-env=reacher]').getByRole('button', {name: 'Enlarge'}).click();
  await settle(page);
  assert.ok((await chart.boundingBox()).width > 1.8 * narrow);
  assert.deepEqual(seen, []);
  await close();
});

test('all tasks together: a line per method, which follows the theme', async () => {
  const {page, seen, close} = await open(makeData('small'));
  const canvas = '#aggregates .chart canvas:not(.swatch)';
  assert.equal(await page.locator('#aggregates .chart').count(), 2);
  const light = await pixels(page, canvas, kBlue);
  assert.ok(light.count > 100, `only ${light.count} pixels of the main method`);
  assert.equal(await page.locator('#aggregates .legend-item').count(), 5);
  await page.locator('#theme').getByLabel('Dark').check();
  await settle(page);
  assert.equal((await pixels(page, canvas, kBlue)).count, 0);
  assert.deepEqual(seen, []);
  await close();
  // of one task they would be its own curves
  const one = makeData('small');
  one.envs = one.envs.slice(0, 1);
  const other = await open(one);
  assert.equal(await other.page.locator('#aggregates').count(), 0);
  await other.close();
});

test('what a newcomer must know comes first', async () => {
  const data = makeData('small');
  const {page, close} = await open(data);
  assert.match(await page.textContent('.top .intro'), /one matrix.*F init/s);
  assert.match(await page.textContent('.cautions'), /Standing still” is above every method/);
  assert.match(await page.textContent('#verdict h2'), /transferred start/);
  const raw = await page.textContent('#raw');
  assert.match(raw, /12\.5 ± 1\.25/);
  assert.doesNotMatch(raw, /13\.5 ±/); // one run has no deviation
  await close();
  data.judges_transfer = false;
  for (const method of data.methods) method.agent = 'sac';
  const plain = await open(data);
  assert.match(await plain.page.textContent('#verdict h2'), /learns faster/);
  assert.equal(await plain.page.locator('.top .intro').count(), 0);
  await plain.close();
});

test('the best of the variants comes with a warning', async () => {
  const {page, seen, close} = await open(makeData('small'));
  const text = await page.textContent('#selections');
  assert.match(text, /selected on 3 seeds .* run the chosen settings on other seeds/s);
  assert.match(text, /hidden_width=128 batch_size=256/);
  assert.match(text, /0\.512.*0\.482.*0\.100.*11 of 12/s);
  assert.deepEqual(seen, []);
  await close();
});

test('clips play and stop', async () => {
  const {page, seen, close} = await open(makeData('small'));
  assert.match(await page.textContent('#clips'), /best last evaluation, of up to 12: not a typical/);
  const clip = page.locator('#clips figure').first();
  assert.match(await clip.textContent(), /seed 100: return −4\.25 in 50 steps/);
  assert.match(await page.locator('#clips figure').nth(1).textContent(), /the first 51 steps/);
  const image = clip.locator('img');
  const shown = () => image.evaluate((img) => [img.src.slice(0, 15), img.complete, img.naturalWidth]);
  await image.evaluate((img) => img.decode());
  assert.deepEqual(await shown(), ['data:image/gif;', true, 8]);
  await clip.getByRole('button', {name: /^Stop/}).click();
  await image.evaluate((img) => img.decode());
  assert.deepEqual(await shown(), ['data:image/png;', true, 8]);
  await clip.getByRole('button', {name: /^Play/}).click();
  assert.equal((await shown())[0], 'data:image/gif;');
  assert.deepEqual(seen, []);
  await close();
  // who wants less motion gets none unasked
  const calm = await open(makeData('small'), {motion: 'reduce'});
  const src = await calm.page.locator('#clips img').first().getAttribute('src');
  assert.ok(src.startsWith('data:image/png;'));
  await calm.close();
});

test('dark mode changes the page and redraws the charts', async () => {
  const {page, seen, close} = await open(makeData('small'));
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const [light, chart, heat] = [
    await ground(),
    await pixels(page, kChart),
    await pixels(page, '#matrix-heat'),
  ];
  await page.locator('#theme').getByLabel('Dark').check();
  await settle(page);
  assert.notEqual(await ground(), light);
  assert.notEqual((await pixels(page, kChart)).hash, chart.hash);
  assert.notEqual((await pixels(page, '#matrix-heat')).hash, heat.hash);
  assert.equal((await pixels(page, kChart, kBlue)).count, 0);
  await page.locator('#theme').getByLabel('Light').check();
  await settle(page);
  assert.equal(await ground(), light);
  assert.equal((await pixels(page, kChart)).hash, chart.hash);
  await page.locator('#theme').getByLabel('Auto').check();
  await page.emulateMedia({colorScheme: 'dark'});
  await settle(page);
  assert.notEqual(await ground(), light);
  await page.emulateMedia({media: 'print', colorScheme: 'light'});
  assert.equal(await page.locator('nav').isVisible(), false);
  assert.ok((await page.pdf()).length > 50000);
  assert.deepEqual(seen, []);
  await close();
});

test('main table: figures, order, CSV', async () => {
  const data = makeData('small');
  const {page, close} = await open(data);
  const table = page.locator('#main table');
  const column = () =>
    table
      .locator('tbody tr')
      .evaluateAll((rows) =>
        rows.map((row) =>
          Number(
            row.querySelector('td .value, td .muted').firstChild.textContent.replace('−', '-'),
          ),
        ),
      );
  const names = () =>
    table
      .locator('tbody tr')
      .evaluateAll((rows) => rows.map((row) => row.querySelector('.method').textContent));
  const given = await names();
  assert.deepEqual(
    given,
    data.methods.map((method) => method.title),
  );
  const head = table.locator('thead').getByRole('button', {name: data.main.columns[0]});
  await head.click();
  const down = await column();
  assert.deepEqual(
    down,
    [...down].sort((a, b) => b - a),
  );
  assert.equal(await table.locator('th[aria-sort=descending]').count(), 1);
  assert.notDeepEqual(await names(), given);
  await head.click();
  const up = await column();
  assert.deepEqual(
    up,
    [...up].sort((a, b) => a - b),
  );
  await head.click();
  assert.deepEqual(await names(), given);

  const cell = data.main.rows[2].cells[0];
  const text = () => table.locator('tbody tr').nth(2).locator('td').first().textContent();
  assert.equal(await text(), `${cell.mean.toFixed(2)} ±${cell.std.toFixed(2)}0.70 ±0.04`);
  await page.locator('#main').getByLabel('Paper’s figures').uncheck();
  assert.equal(await text(), `${cell.mean.toFixed(2)} ±${cell.std.toFixed(2)}`);
  await page.locator('#main').getByLabel('IQM').check();
  assert.equal(
    await text(),
    `${cell.iqm.toFixed(2)}[${cell.low.toFixed(2)}, ${cell.high.toFixed(2)}]`,
  );
  await page.locator('#main').getByLabel('Steps to 80%').check();
  assert.match(await table.textContent(), /never0 of 5/);
  assert.match(await table.textContent(), /\dk4 of 5/);
  await page.locator('#main').getByLabel('Success').check();
  assert.match(await page.textContent('#main .note'), /defines no success/);
  await page.locator('#main').getByLabel('AUC', {exact: true}).check();

  await page.evaluate(() => {
    Object.defineProperty(navigator, 'clipboard', {
      value: {
        writeText: async (copied) => {
          window.copied = copied;
        },
      },
    });
  });
  await page.locator('[data-method=sac] input').uncheck();
  await page.locator('#curves').getByRole('button', {name: 'Copy as CSV'}).click();
  const curves = data.curves.filter((curve) => curve.method !== 'sac');
  const points = (await page.evaluate(() => window.copied)).trim().split('\n');
  assert.equal(points.length, 1 + curves.reduce((sum, curve) => sum + curve.steps.length, 0));
  assert.ok(
    points[2].startsWith(
      `${curves[0].env},${curves[0].method},${curves[0].steps[1]},${curves[0].mean[1]},`,
    ),
  );
  await page.locator('#main').getByRole('button', {name: 'Copy as CSV'}).click();
  const lines = (await page.evaluate(() => window.copied)).trim().split('\n');
  assert.equal(lines.length, 1 + data.methods.length);
  assert.match(lines[0], /^method,component,Reacher\/Pusher mean,Reacher\/Pusher std/);
  assert.ok(lines[3].startsWith(`msrl,matrix-value branch,${cell.mean},`));
  await close();
});

test('a figure is bold only if its interval lies above all others', async () => {
  const data = makeData('small');
  const spread = (mean, half) => ({
    mean,
    std: half,
    n: 5,
    iqm: mean,
    low: mean - half,
    high: mean + half,
    paper: null,
  });
  data.main.rows.forEach((row, m) => {
    row.cells = row.cells.map((_, c) =>
      spread(m === 2 ? 0.6 : 0.5 - m / 100, c === 0 ? 0.01 : 0.3),
    );
  });
  const {page, close} = await open(data);
  const bold = await page
    .locator('#main tbody tr')
    .evaluateAll((rows) =>
      rows.map((row) =>
        [...row.querySelectorAll('td')].map((cell) => cell.querySelector('.best') !== null),
      ),
    );
  assert.deepEqual(bold[2].slice(0, 4), [true, false, false, false]);
  assert.equal(bold.flat().filter(Boolean).length, 1);
  await close();
});

test('gains: colour by what the interval shows, sorted within a comparison', async () => {
  const data = makeData('small');
  const gain = (env, mean, low, high, b = 'scratch') => ({
    env,
    a: 'msrl',
    b,
    mean,
    low,
    high,
    n: 5,
    wins: 3,
    paper: 0.08,
  });
  data.gains = [
    gain('reacher', 0.05, 0.01, 0.09),
    gain('hopper', -0.05, -0.09, -0.01),
    gain('antmaze-u', 0.01, -0.02, 0.04),
    gain('all', 0.0, -0.02, 0.02),
    gain('reacher', 0.9, 0.8, 1, 'sac'),
    {...gain('hopper', 0.9, 0.8, 1, 'sac'), n: 4},
  ];
  const {page, close} = await open(data);
  const table = page.locator('#gains table').first();
  const dots = await table
    .locator('tbody tr:not(.heading) svg')
    .evaluateAll((all) =>
      all.map((svg) =>
        ['up', 'down', 'unclear'].find((kind) =>
          svg.querySelector('.dot').classList.contains(kind),
        ),
      ),
    );
  assert.deepEqual(dots, ['up', 'down', 'unclear', 'unclear', 'up', 'unclear']);
  assert.equal(await table.locator('tbody svg .rule.paper').count(), 6);
  assert.match(await table.textContent(), /All targets.*\[−0\.020, 0\.020\]/s);
  const rows = () =>
    table
      .locator('tbody tr')
      .evaluateAll((all) => all.map((row) => row.querySelector('th').textContent));
  await table.getByRole('button', {name: 'Gain', exact: true}).click();
  assert.deepEqual(await rows(), [
    'MSRL + pretrained F init − MSRL from scratch',
    'reacher',
    'antmaze-u',
    'All targets',
    'hopper',
    'MSRL + pretrained F init − SAC',
    'reacher',
    'hopper',
  ]);
  await close();
});

test('matrix viewer: prefix, play, cells, episodes', async () => {
  const data = makeData('small');
  const {page, seen, close} = await open(data);
  const heat = () => pixels(page, '#matrix-heat');
  const end = await heat();
  assert.ok(end.colours > 50, `only ${end.colours} colours`);
  const slider = page.locator('#matrix-slider');
  await slider.fill('3');
  const early = await heat();
  assert.notEqual(early.hash, end.hash);
  assert.match(await page.textContent('.player output'), /step 6 of 80/);
  await page.getByRole('button', {name: 'Play'}).click();
  await page.waitForFunction(() => Number(document.getElementById('matrix-slider').value) >= 6);
  await page.getByRole('button', {name: 'Pause'}).click();
  await slider.fill('40');
  assert.equal((await heat()).hash, end.hash);

  // the cell of the constant with itself counts the steps
  const canvas = page.locator('#matrix-heat');
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width - 5, box.y + box.height - 5);
  assert.equal(await page.textContent('#matrix-readout'), '1 × 1 = 80.00');
  await canvas.focus();
  await page.keyboard.press('ArrowUp');
  assert.match(await page.textContent('#matrix-readout'), /^r × 1 = −\d/);
  await page.locator('#matrix').getByLabel('Z / t').check();
  await page.keyboard.press('Tab');
  await page.locator('#matrix').getByLabel('Lift small values').uncheck();
  assert.notEqual((await heat()).hash, end.hash);

  // the eigenvalues sum to the trace, and the rank is no larger than the matrix
  const facts = await page.textContent('#matrix .facts');
  const last = data.matrices[0].prefixes.at(-1).packed;
  let trace = 0;
  for (let i = 0, k = 0; i < 28; k += 28 - i, i++) trace += last[k];
  assert.ok(facts.includes(`Trace${trace.toFixed(1)}`), `${facts} should hold ${trace}`);
  assert.match(facts, /Rank\d+ of 28/);
  await page.locator('#matrix select').nth(1).selectOption('1');
  assert.equal(await page.locator('#matrix-second').isVisible(), true);
  assert.match(await page.textContent('#matrix-readout'), /^r × 1 = .*and .*difference/);
  await page.locator('#matrix select').nth(1).selectOption('2');
  assert.notEqual((await pixels(page, '#matrix-second')).hash, (await heat()).hash);
  assert.ok((await pixels(page, '#matrix-difference')).colours > 20);
  await page.locator('#matrix select').nth(1).selectOption('1');
  // an episode beside itself: no difference, only ground, lines and letters
  assert.ok((await pixels(page, '#matrix-difference', '#fafaf8')).count > 40000);
  await page.locator('#matrix select').nth(1).selectOption('0');
  assert.equal(await page.locator('#matrix-second').isVisible(), false);
  await page.locator('#matrix select').first().selectOption('1');
  assert.notEqual((await heat()).hash, end.hash);
  assert.match(await canvas.getAttribute('aria-label'), /hopper/);
  assert.deepEqual(seen, []);
  await close();
});

test('library: filter, order, choice and neighbours', async () => {
  const data = makeData('small');
  const {page, close} = await open(data);
  const library = page.locator('#library');
  const rows = library.locator('.segments-table tbody tr');
  assert.equal(await rows.count(), 200);
  await library.getByLabel('Filter segments').fill('terminated');
  assert.equal(await rows.count(), data.library[0].segments.filter((g) => g.terminated).length);
  await library.getByLabel('Filter segments').fill('');
  await library.getByLabel('Least uses').fill('30');
  assert.equal(await rows.count(), data.library[0].segments.filter((g) => g.uses >= 30).length);
  await rows.nth(1).getByRole('button').click();
  const own = data.library[0].segments[1];
  assert.match(await library.locator('.segment h3').textContent(), new RegExp(`#${own.id}$`));
  const nearest = data.library[0].segments
    .filter((g) => g !== own)
    .map((g) => ({
      id: g.id,
      d: Math.hypot(...g.entry.map((v, i) => v - own.entry[i])),
    }))
    .sort((a, b) => a.d - b.d)[0];
  const near = library.getByRole('region', {name: 'Nearest segments'}).locator('tbody tr').first();
  assert.match(await near.textContent(), new RegExp(`#${nearest.id}${nearest.d.toFixed(3)}`));
  await near.getByRole('button').click();
  assert.match(await library.locator('.segment h3').textContent(), new RegExp(`#${nearest.id}$`));
  await close();
});

test('verdicts say in words what is clear', async () => {
  const data = makeData('small');
  const verdict = (env, low, high, n, text) => ({
    env,
    comparison: 'msrl − scratch',
    gain: (low + high) / 2,
    low,
    high,
    n,
    text,
  });
  data.verdicts = [
    verdict('reacher', 0.01, 0.05, 5, 'clear gain'),
    verdict('hopper', 0.01, 0.05, 4, 'too few seeds'),
    verdict('antmaze-u', -0.2, -0.1, 5, 'clear loss'),
    verdict('all', -0.1, 0.1, 5, 'not clear'),
  ];
  const {page, close} = await open(data);
  assert.equal(
    await page.textContent('#verdict h3'),
    'MSRL + pretrained F init − MSRL from scratch ' +
      'clearly better on 1, clearly worse on 1, too few seeds on 1 of 3 targets',
  );
  assert.deepEqual(
    await page.$$eval('#verdict li', (all) => all.map((li) => li.className.split(' ')[0])),
    ['up', 'unclear', 'down', 'unclear'],
  );
  assert.match(
    await page.textContent('#verdict ul'),
    /hopper\+0\.030.*too few seeds\[0\.010, 0\.050\], n = 4/,
  );
  await close();
});

test('hostile names are shown as they are written', async () => {
  const {page, seen, close} = await open(makeData('hostile'));
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator('script').count(), 2);
  assert.equal(await page.locator('img:not(#clips img), iframe, object, embed').count(), 0);
  // a film that is none of base64 has no address at all
  const sources = () => page.$$eval('#clips img', (all) => all.map((img) => img.getAttribute('src')));
  for (const src of await sources()) assert.match(src, /^data:image\/gif;base64,/);
  await page.locator('#clips button').nth(1).click();
  assert.equal((await sources())[1], '');
  assert.equal(await page.textContent('h1'), kHostile[0]);
  const text = await page.textContent('body');
  for (const name of kHostile) assert.ok(text.includes(name), name);
  await page.getByRole('button', {name: 'None', exact: true}).click();
  assert.deepEqual(seen, []);
  await close();
});

test('a panel with senseless data does not take the others with it', async () => {
  const data = makeData('small');
  data.matrices[0].prefixes = [{t: 1, packed: null}];
  const {page, close} = await open(data);
  assert.match(await page.textContent('#matrix'), /could not be drawn/);
  assert.ok((await page.locator('#library table').count()) > 0);
  await close();
});

test('curves with other steps, gaps and no scale', async () => {
  const data = makeData('small');
  data.curves[0].steps = data.curves[0].steps.map((step) => step + 37);
  data.curves[1].mean[3] = null;
  data.curves[2].low = data.curves[2].high = null;
  for (const curve of data.curves.filter((c) => c.env === 'hopper')) {
    Object.assign(curve, {mean: null, low: null, high: null});
    for (const seed of curve.seeds) seed.values = null;
  }
  Object.assign(data.envs[1], {random_return: null, reference_return: null, few_shot_steps: null});
  const {page, seen, close} = await open(data);
  assert.ok((await pixels(page, kChart, kBlue)).count > 150);
  assert.match(await page.textContent('.chart[data-env=hopper]'), /Switch to return/);
  await page.locator('#curves').getByLabel('Return', {exact: true}).check();
  await settle(page);
  assert.ok((await pixels(page, `.chart[data-env=hopper] canvas`, kBlue)).count > 150);
  assert.deepEqual(seen, []);
  await close();
});

test('500 runs are drawn within a second', async () => {
  const data = makeData('large');
  assert.ok(data.curves.reduce((sum, curve) => sum + curve.seeds.length, 0) >= 500);
  const {page, seen, close} = await open(data);
  const redraw = async (name) => {
    await page.evaluate(() => {
      window.msrlReport.redrawMilliseconds = 0;
    });
    await page.locator('#curves').getByText(name, {exact: true}).click();
    await page.waitForFunction(() => window.msrlReport.redrawMilliseconds > 0);
    return page.evaluate(() => window.msrlReport.redrawMilliseconds);
  };
  const first = await page.evaluate(() => ({...window.msrlReport}));
  const all = await redraw('All methods');
  const seeds = await redraw('Seeds');
  await page.screenshot({path: join(out, 'large.png'), fullPage: true});
  const show = (v) => v.toFixed(0);
  console.log(
    `500 runs: curves on the screen after ${show(first.drawMilliseconds)} ms (promised: 1000), ` +
      `whole page ${show(first.pageMilliseconds)} ms; again with all methods ${show(all)} ms, ` +
      `with a line per run ${show(seeds)} ms; file ${(fill(template, data).length / 1e6).toFixed(1)} MB`,
  );
  // three times the promise: other work on the machine must not fail the test
  assert.ok(first.drawMilliseconds > 0 && first.drawMilliseconds < 3000);
  assert.ok(seeds < 6000);
  assert.deepEqual(seen, []);
  await close();
});
