/**
 * A browser for the tests of the console: the one from npm, which has no window to draw and so takes a quarter less
 * processor time, or the system's Chromium where that one does not run. CATNAP_TEST_BROWSER chooses: `npm`, `system`,
 * or the path of another Chromium.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium } from 'playwright-core';
import { usualDeadlineMs } from './eventually.ts';

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
    visit: async ({ baseURL, width = 1440, height = 900, scheme = 'light' }) => {
      const visitor = await browser.newContext({
        baseURL,
        viewport: { width, height },
        colorScheme: scheme,
        // Without a locale the browser here says `en-US@posix`, which is none.
        locale: 'en-US',
        reducedMotion: 'reduce',
        permissions: ['clipboard-read', 'clipboard-write'],
      });
      visitor.setDefaultTimeout(usualDeadlineMs);
      return visitor;
    },
    close: async () => {
      await browser.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

// As root, and in containers, its own sandbox cannot be set up.
const args = ['--no-sandbox', '--disable-dev-shm-usage'];

async function launch(folder: string): Promise<Browser> {
  const wanted = process.env.CATNAP_TEST_BROWSER;
  const own = wanted?.startsWith('/') ? wanted : undefined;
  const ofSystem = own ?? systemBrowsers.find((path) => wanted !== 'npm' && existsSync(path));
  if (ofSystem === undefined) return launchFromNpm(folder);
  if (own === undefined && wanted !== 'system') {
    try {
      return await launchFromNpm(folder);
    } catch {
      // It is made for few kinds of machines, and this may be none of them.
    }
  }
  return chromium.launch({ executablePath: ofSystem, args, env: { ...process.env, HOME: folder } });
}

/**
 * Not with the arguments that it proposes: one process for everything breaks with the second visitor, and a browser
 * that does not keep origins apart would not notice what the console must not do.
 */
async function launchFromNpm(folder: string): Promise<Browser> {
  // It unpacks itself under a fixed name and takes whatever lies there, so it gets a folder of its own.
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  try {
    const { default: bundled } = await import('@sparticuz/chromium');
    return await chromium.launch({ executablePath: await bundled.executablePath(), args });
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}
