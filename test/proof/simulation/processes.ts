/**
 * A campaign in several processes, since a schedule keeps one busy half of the time and its servers the other half.
 * They run a bundle: nothing stands between the code and the processor that a campaign of half an hour does not need.
 */
import { fork } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { inject } from 'vitest';
import { addCampaign, type Campaign, type CampaignOptions, nothingPlayed } from './campaign.ts';

/** What can be handed over to another process. */
type PlainOptions = Omit<CampaignOptions, 'registry' | 'makeDriver' | 'say' | 'share'>;

export interface ProcessOptions {
  readonly campaign: PlainOptions & Pick<CampaignOptions, 'share'>;
  readonly given: Readonly<Record<string, unknown>>;
}

export type Report =
  | { readonly kind: 'said'; readonly text: string }
  | { readonly kind: 'played'; readonly played: Campaign }
  | { readonly kind: 'failed'; readonly text: string };

/** Most of what a statement leaves behind is dead at once: with more room, less of it has to be looked through. */
const memory = ['--max-semi-space-size=64'];

export async function runInProcesses(
  processes: number,
  options: PlainOptions,
  say: (text: string) => void,
): Promise<Campaign> {
  const folder = await mkdtemp(join(tmpdir(), 'catnap-simulation-'));
  const total = nothingPlayed();
  try {
    const program = await bundle(folder);
    const shares = Array.from({ length: processes }, (_, index) => ({ index, of: processes }));
    const played = shares.map((share) => {
      return play(program, { ...options, share }, (text) => say(`process ${share.index + 1}: ${text}`));
    });
    for (const campaign of await Promise.all(played)) addCampaign(total, campaign);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return total;
}

async function bundle(folder: string): Promise<string> {
  const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
  const made = await rolldown({
    input: here('campaign-process.ts'),
    platform: 'node',
    resolve: { alias: { vitest: here('handed-over.ts') } },
    plugins: [{ name: 'module-urls', transform: keepModuleUrl }],
    external: (id, _, isResolved) => !isResolved && !/^(\.|\/|vitest$)/.test(id),
  });
  const program = join(folder, 'campaign.mjs');
  await made.write({ file: program, format: 'esm' });
  await made.close();
  await symlink(here('../../../node_modules'), join(folder, 'node_modules'));
  return program;
}

/** Files that are read at run time are found as from the source. */
function keepModuleUrl(code: string, id: string): string | null {
  if (!code.includes('import.meta.url')) return null;
  return code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href));
}

function play(program: string, campaign: ProcessOptions['campaign'], say: (text: string) => void): Promise<Campaign> {
  const options: ProcessOptions = { campaign, given: { systemDatabase: inject('systemDatabase') } };
  const child = fork(program, [JSON.stringify(options)], {
    execArgv: memory,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  return new Promise((resolve, reject) => {
    child.on('message', (report: Report) => {
      if (report.kind === 'said') say(report.text);
      else if (report.kind === 'played') resolve(report.played);
      else reject(new Error(report.text));
    });
    child.on('error', reject);
    child.on('exit', (code, signal) => reject(new Error(`a process of the campaign has ended: ${code ?? signal}`)));
  });
}
