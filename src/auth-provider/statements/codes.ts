/** Rows of `stack_codes`: single-use codes that were sent to people. Only their hashes are stored. */
import { first, type Sql, type Tx } from '../../db/client.ts';

export type CodeKind = 'password_reset' | 'email_verification' | 'project_transfer';

export interface CodeRow {
  readonly id: string;
  readonly projectId: string;
  readonly kind: CodeKind;
  readonly codeHash: Uint8Array;
  readonly userId: string | null;
  readonly email: string | null;
  readonly expiresAt: Date;
  readonly usedAt: Date | null;
}

export async function insertCode(sql: Sql, code: Omit<CodeRow, 'usedAt'>): Promise<void> {
  await sql`insert into stack_codes ${sql({ ...code })}`;
}

export async function selectCode(sql: Sql, kind: CodeKind, codeHash: Uint8Array): Promise<CodeRow | undefined> {
  return first(await sql<CodeRow[]>`select * from stack_codes where kind = ${kind} and code_hash = ${codeHash}`);
}

/** True for the request that used it first. */
export async function useCode(tx: Tx, id: string, at: Date): Promise<boolean> {
  return (await tx`update stack_codes set used_at = ${at} where id = ${id} and used_at is null`).count > 0;
}

/** A new code voids earlier ones of its kind. */
export async function deleteCodesOfUser(sql: Sql, kind: CodeKind, userId: string): Promise<void> {
  await sql`delete from stack_codes where kind = ${kind} and user_id = ${userId} and used_at is null`;
}

export async function deleteOldCodes(sql: Sql, expiredBefore: Date): Promise<void> {
  await sql`delete from stack_codes where expires_at < ${expiredBefore}`;
}
