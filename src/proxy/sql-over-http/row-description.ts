/** What a server says of the columns of a result before the first row. */
import { FieldReader } from '../protocol/wire.ts';

export interface ColumnFacts {
  readonly name: string;
  readonly typeId: number;
  /** 0 for a computed column. */
  readonly tableId: number;
  readonly columnId: number;
  readonly size: number;
  readonly modifier: number;
}

export function readColumns(rowDescription: Buffer): ColumnFacts[] {
  const reader = new FieldReader(rowDescription);
  const columns: ColumnFacts[] = [];
  for (let left = reader.bytes(2).readUInt16BE(0); left > 0; left--) {
    const name = reader.cstringBytes().toString('utf8');
    const facts = reader.bytes(18);
    columns.push({
      name,
      typeId: facts.readUInt32BE(6),
      tableId: facts.readUInt32BE(0),
      columnId: facts.readUInt16BE(4),
      size: facts.readInt16BE(10),
      modifier: facts.readInt32BE(12),
    });
  }
  return columns;
}
