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

async function showChecks(session: Session): Promise<number> {
  return printChecks(session, await session.parts.doctor(), {
    good: 'Catnap can run here.',
    bad: (failed) => `Catnap cannot run here yet: ${failed} of these must be put right.`,
  });
}

/** Prints each check, then what to do, then a verdict; returns the exit code. */
export function printChecks(
  { writer }: Session,
  checks: readonly Check[],
  verdict: { readonly good: string; readonly bad: (failed: number) => string },
): number {
  writer.list(checks, { status: 'status', name: 'check', detail: 'found' }, 'There is nothing to check.');
  const advised = checks.filter((check) => check.status !== 'ok' && check.advice !== undefined);
  if (advised.length > 0) writer.remark(['', ...advised.map(adviceLine)].join('\n'));
  const failed = checks.filter((check) => check.status === 'fail').length;
  writer.remark(`\n${failed === 0 ? verdict.good : verdict.bad(failed)}`);
  return failed === 0 ? 0 : 1;
}

const adviceLine = (check: Check) => `${check.status}: ${check.name}: ${check.advice}`;
