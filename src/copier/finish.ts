/** The last transaction of a copy: sequences, owners, and the end of its record. */
import { ownerOf } from './entries.ts';
import { CopyFailure, isDenied, isLinked, wordsOf } from './failure.ts';
import {
  dropRecord,
  type FinishedCopy,
  readSteps,
  readTotals,
  recordSchema,
  type StepRecord,
  writeReport,
} from './record.ts';
import { type Place, reserve, type Session, type Sql } from './session.ts';

export interface FinishRequest {
  readonly source: Sql;
  readonly target: Sql;
  readonly place: Place;
  /** Notes of the earlier steps. */
  readonly notes: readonly string[];
  readonly keepsRecord: boolean;
}

export async function finish({ source, target, place, notes, keepsRecord }: FinishRequest): Promise<FinishedCopy> {
  const session = await reserve(target, place);
  try {
    await session.unsafe('BEGIN');
    await setSequences(source, session);
    const last = await giveToOwners(session);
    const report = { ...(await readTotals(session)), notes: [...notes, ...last] };
    if (keepsRecord) await writeReport(session, report);
    else await dropRecord(session);
    await session.unsafe('COMMIT');
    return report;
  } catch (error) {
    await session.unsafe('ROLLBACK').catch(() => undefined);
    throw error instanceof CopyFailure ? error : new CopyFailure(`the copy cannot be finished: ${wordsOf(error)}`);
  } finally {
    session.release();
  }
}

/** Sequences belong to no snapshot: at the end they are at least as far as the rows. */
async function setSequences(source: Sql, target: Session): Promise<void> {
  const sequences = await source<{ name: string }[]>`
    SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS name
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind = 'S' AND c.relpersistence <> 't' AND n.nspname <> ${recordSchema}
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                        WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
     ORDER BY c.oid`;
  for (const { name } of sequences) {
    const [is] = await source.unsafe(`SELECT last_value::text AS at, is_called AS "isCalled" FROM ${name}`);
    // One that was made since then is not in the target.
    await target`SELECT setval(to_regclass(${name}), ${String(is?.at)}::bigint, ${is?.isCalled === true})
                  WHERE to_regclass(${name}) IS NOT NULL`;
  }
}

/** Whoever owns something in a schema must have been able to make it there, for this moment at least. */
async function giveToOwners(session: Session): Promise<string[]> {
  const steps = await readSteps(session, 'owners');
  const [me] = await session`SELECT quote_ident(current_user) AS name`;
  const others = steps.filter((step) => ownerOf(step) !== me?.name);
  const lent = await lendSchemas(session, [...new Set(others.map(ownerOf))]);
  const isSchema = ({ kind }: StepRecord) => kind === 'SCHEMA';
  const notes: string[] = [];
  for (const step of others.filter((step) => !isSchema(step))) notes.push(...(await giveOne(session, step)));
  for (const { schema, role } of lent) await session.unsafe(`REVOKE CREATE ON SCHEMA ${schema} FROM ${role}`);
  for (const step of others.filter(isSchema)) notes.push(...(await giveOne(session, step)));
  return notes;
}

async function lendSchemas(session: Session, roles: readonly string[]) {
  const schemas = await session<{ schema: string }[]>`
    SELECT quote_ident(nspname) AS schema FROM pg_catalog.pg_namespace
     WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', ${recordSchema})
       AND pg_catalog.pg_has_role(nspowner, 'USAGE')`;
  const lent: { schema: string; role: string }[] = [];
  for (const role of roles) {
    for (const { schema } of schemas) {
      const [has] = await session.unsafe(
        `SELECT pg_catalog.has_schema_privilege(r.oid, n.oid, 'CREATE') AS it
           FROM pg_catalog.pg_roles r, pg_catalog.pg_namespace n
          WHERE quote_ident(r.rolname) = $1 AND quote_ident(n.nspname) = $2`,
        [role, schema],
      );
      if (has === undefined || has.it === true) continue;
      await session.unsafe(`GRANT CREATE ON SCHEMA ${schema} TO ${role}`);
      lent.push({ schema, role });
    }
  }
  return lent;
}

async function giveOne(session: Session, { kind, name, text }: StepRecord): Promise<string[]> {
  await session.unsafe('SAVEPOINT owner');
  try {
    await session.unsafe(text);
    return [];
  } catch (error) {
    if (!isDenied(error) && !isLinked(error)) throw error;
    await session.unsafe('ROLLBACK TO SAVEPOINT owner');
    if (isLinked(error)) return [];
    return [`${kind.toLowerCase()} ${name} belongs to the role that copied it: ${wordsOf(error)}`];
  }
}
