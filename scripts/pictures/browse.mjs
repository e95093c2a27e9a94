/** A browser that is signed in to the demo, and goes to one place after another. */
import { chromium } from 'playwright-core';

export async function openBrowser(path) {
  return chromium.launch({
    executablePath: path,
    args: ['--no-sandbox', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
}

export async function signedIn(browser, demo, { width, height, colorScheme = 'light' }) {
  const context = await browser.newContext({
    baseURL: demo.url,
    viewport: { width, height },
    colorScheme,
    locale: 'en-US',
    reducedMotion: 'reduce',
  });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  await page.goto(`/#open=${(await demo.consoleLink()).link}`);
  await page.getByRole('heading', { name: 'Projects' }).waitFor();
  return page;
}

/** What cannot be pressed in this shape, or on this machine, is said, and the picture is taken all the same. */
export async function go(page, [name, path, prepare]) {
  // An address that differs from the one before in what stands behind # alone would not load anything.
  await page.goto('about:blank');
  await page.goto(path);
  await page.locator('h1').first().waitFor();
  await calm(page);
  await prepare?.(page).catch((error) => console.log(`${name}: ${error.message.split('\n')[0]}`));
  await calm(page);
}

/** Until nothing has been a placeholder for a moment, and what came last is drawn. */
export async function calm(page) {
  await page.evaluate(`new Promise((resolve) => {
    let quietSince = performance.now();
    const look = () => {
      const now = performance.now();
      if (document.querySelector('.skeleton')) quietSince = now;
      if (now - quietSince > 250) resolve();
      else requestAnimationFrame(look);
    };
    look();
  })`);
}
