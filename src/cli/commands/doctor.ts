/** `catnap doctor`: what the machine offers, and what to do about what is missing. Exit code 1 if a check fails. */
import type { Command } from 'commander';
import type { Check } from '../kit/parts.ts';
import type { RunCommand, Session } from '../kit/session.ts';

export function addDoctor(program: Command, run: RunCommand): void {
  program
    .command('doctor')
    .description('check this machine and say what to do; changes nothing')
    .action(() => run(showChecks));
}

async function showChecks({ parts, writer }: Session): Promise<number> {
  const checks = await parts.doctor();
  writer.list(checks, { status: 'status', name: 'check', detail: 'found' }, 'There is nothing to check.');
  const advised = checks.filter((check) => check.status !== 'ok' && check.advice !== undefined);
  if (advised.length > 0) writer.remark(['', ...advised.map(adviceLine)].join('\n'));
  const failed = checks.filter((check) => check.status === 'fail').length;
  writer.remark(
    failed === 0 ? '\nCatnap can run here.' : `\nCatnap cannot run here yet: ${failed} of these must be put right.`,
  );
  return failed === 0 ? 0 : 1;
}

const adviceLine = (check: Check) => `${check.status}: ${check.name}: ${check.advice}`;
