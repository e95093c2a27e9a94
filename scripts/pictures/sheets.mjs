/** Pictures side by side, several to a sheet, with their names: to look through all of them. */
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const sheetWidth = 1_560;

/** `files` are of one size; each sheet has `columns` times `rows` of them. */
export async function makeSheets(browser, files, { folder, name, columns, rows }) {
  const page = await browser.newPage({ viewport: { width: sheetWidth, height: 800 } });
  for (let from = 0; from < files.length; from += columns * rows) {
    const figures = files.slice(from, from + columns * rows).map((file) => {
      const picture = `data:image/png;base64,${readFileSync(file).toString('base64')}`;
      return `<figure><figcaption>${basename(file, '.png')}</figcaption><img src="${picture}"></figure>`;
    });
    await page.setContent(`<style>
      body { display: grid; grid-template-columns: repeat(${columns}, 1fr); gap: 8px; margin: 8px; background: #888 }
      figure { margin: 0 } img { width: 100% } figcaption { font: 12px sans-serif }
    </style>${figures.join('')}`);
    const number = String(from / (columns * rows) + 1).padStart(2, '0');
    await page.screenshot({ path: join(folder, `sheet-${name}-${number}.png`), fullPage: true });
  }
  await page.close();
}
