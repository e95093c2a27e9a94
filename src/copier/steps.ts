/** What comes behind the rows: indexes and constraints, then foreign keys, triggers and policies, each by itself. */

import { mayBeLeftOut } from './entries.ts';
import { CopyFailure, isDenied, wordsOf } from './failure.ts';
import type { Report } from './progress.ts';
import { markStep, readSteps, type StepRecord } from './record.ts';
import { type Place, reserve, type Session, type Sql } from './session.ts';

/** Returns sentences about what was left out. */
export async function runSteps(
  target: Sql,
  place: Place,
  stage: 'indexes' | 'views' | 'rules',
  report: Report,
): Promise<readonly string[]> {
  const steps = await readSteps(target, stage);
  const notes: string[] = [];
  const session = await reserve(target, place);
  try {
    await session.unsafe(scriptSettings);
    for (const [at, step] of steps.entries()) {
      if (step.isDone) continue;
      report({ phase: stage, name: step.name, done: at, of: steps.length });
      const note = await runStep(session, step);
      if (note !== null) notes.push(note);
    }
  } finally {
    await session.unsafe('RESET ALL').catch(() => undefined);
    session.release();
  }
  return notes;
}

/** As a script of pg_dump sets them: names are whole there, and functions may come before what they use. */
export const scriptSettings = `SELECT pg_catalog.set_config('search_path', '', false);
  SET check_function_bodies = false; SET xmloption = content; SET client_min_messages = warning`;

async function runStep(session: Session, step: StepRecord): Promise<string | null> {
  await session.unsafe('BEGIN');
  try {
    const note = await runEntry(session, step);
    await markStep(session, step.id);
    await session.unsafe('COMMIT');
    return note;
  } catch (error) {
    await session.unsafe('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/** In a transaction. Returns a sentence if it was left out. */
export async function runEntry(tx: Session, { kind, name, text }: Omit<StepRecord, 'id'>): Promise<string | null> {
  await tx.unsafe('SAVEPOINT entry');
  try {
    await tx.unsafe(text);
    await tx.unsafe('RELEASE SAVEPOINT entry');
    return null;
  } catch (error) {
    if (!isDenied(error) || !mayBeLeftOut(kind)) {
      throw new CopyFailure(`${kind.toLowerCase()} ${name} cannot be made in the target: ${wordsOf(error)}`);
    }
    await tx.unsafe('ROLLBACK TO SAVEPOINT entry');
    return `${kind.toLowerCase()} ${name} was left out: ${wordsOf(error)}`;
  }
}
