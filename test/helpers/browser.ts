/**
 * A browser for the tests of the console: the system's Chromium where there is one, else, or with
 * CATNAP_TEST_BROWSER=npm, the one from npm.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium } from 'playwright-core';

const systemBrowsers = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export interface TestBrowser {
  /** A fresh visitor. */
  visit(options: VisitOptions): Promise<BrowserContext>;
  close(): Promise<void>;
}

export interface VisitOptions {
  readonly baseURL: string;
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: 'light' | 'dark';
}

export async function startBrowser(): Promise<TestBrowser> {
  const folder = await mkdtemp(join(tmpdir(), 'cn-browser-'));
  const browser = await launch(folder);
  return {
    visit: ({ baseURL, width = 1440, height = 900, scheme = 'light' }) =>
      browser.newContext({
        baseURL,
        viewport: { width, height },
        colorScheme: scheme,
        // Without a locale the browser here says `en-US@posix`, which is none.
        locale: 'en-US',
        reducedMotion: 'reduce',
        permissions: ['clipboard-read', 'clipboard-write'],
      }),
    close: async () => {
      await browser.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function launch(folder: string): Promise<Browser> {
  // As root, and in containers, its own sandbox cannot be set up.
  const args = ['--no-sandbox', '--disable-dev-shm-usage'];
  const isWanted = process.env.CATNAP_TEST_BROWSER !== 'npm';
  const executablePath = systemBrowsers.find((path) => isWanted && existsSync(path));
  if (executablePath !== undefined)
    return chromium.launch({ executablePath, args, env: { ...process.env, HOME: folder } });
  // It unpacks itself under a fixed name and takes whatever lies there, so it gets a folder of its own.
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  try {
    const { default: bundled } = await import('@sparticuz/chromium');
    return await chromium.launch({ executablePath: await bundled.executablePath(), args: [...bundled.args, ...args] });
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}
