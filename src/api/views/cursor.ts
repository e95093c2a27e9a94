/**
 * Cursors as they travel. They come back from the caller, so nothing in them is trusted: one that was not made here is
 * a 400, never a failing statement.
 */
import type { BranchPage } from '../../core/branch.ts';
import { invalid } from '../../lib/errors.ts';
import { idPattern } from '../../lib/ids.ts';
import { unstorable } from '../plugins/validation.ts';

type BranchCursor = NonNullable<BranchPage['cursor']>;
type Order = Pick<BranchPage, 'sortBy' | 'descending'>;

export function encodeBranchCursor(order: Order, cursor: BranchCursor): string {
  const parts = {
    branch_id: cursor.id,
    sort_by: order.sortBy,
    sort_by_value: cursor.value,
    sort_order: order.descending ? 'DESC' : 'ASC',
  };
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

export function decodeBranchCursor(order: Order, text: string): BranchCursor {
  const parts = parseObject(Buffer.from(text, 'base64url').toString());
  const { branch_id: id, sort_by_value: value } = parts;
  const isOfThisOrder = parts.sort_by === order.sortBy && parts.sort_order === (order.descending ? 'DESC' : 'ASC');
  if (typeof id !== 'string' || typeof value !== 'string' || !isOfThisOrder) throw badCursor();
  const isSortValue = order.sortBy === 'name' ? !unstorable.test(value) : isTime(value);
  if (!new RegExp(idPattern).test(id) || !isSortValue) throw badCursor();
  return { id, value };
}

export function requireTimeCursor(text: string): string {
  if (!isTime(text)) throw badCursor();
  return text;
}

const timePattern =
  /^([12]\d{3}-\d\d-\d\d)[ T]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-](0\d|1[0-4])(:[0-5]\d)?)$/;

/** Whether Postgres can parse it; both of its spellings. */
function isTime(text: string): boolean {
  const day = timePattern.exec(text)?.[1];
  if (day === undefined) return false;
  const parsed = new Date(`${day}T00:00:00Z`);
  // February 30 is read as March 2, so the day must come back as it went in.
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(day);
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // Answered below, like any other text that is no cursor.
  }
  throw badCursor();
}

function badCursor() {
  return invalid('invalid request: query.cursor must be one that a reply to this list has given');
}
