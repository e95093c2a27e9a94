/** Plays its share of a campaign in a process of its own, and reports to the one that has started it. */
import { runCampaign } from './campaign.ts';
import type { ProcessOptions, Report } from './processes.ts';

const report = (message: Report) =>
  new Promise<void>((resolve) => {
    process.send?.(message, () => resolve());
  });

// Nobody is left to report to.
process.on('disconnect', () => process.exit(1));

const { campaign }: ProcessOptions = JSON.parse(process.argv[2] ?? '');
try {
  const played = await runCampaign({ ...campaign, say: (text) => void report({ kind: 'said', text }) });
  await report({ kind: 'played', played });
} catch (error) {
  const { message, stack, cause } = error as Error;
  await report({
    kind: 'failed',
    text: `${stack ?? message}\n${cause instanceof Error ? cause.stack : (cause ?? '')}`,
  });
}
process.disconnect();
