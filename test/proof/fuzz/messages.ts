/**
 * Messages of the Postgres protocol in any order, right and wrong ones, as a client sends them after its login. A
 * script is what one client sends; its end leaves every state (COPY, a failed batch, a transaction) and asks for a
 * mark.
 */
import { encodeMessage, int32 } from '../../../src/proxy/protocol/wire.ts';
import type { Random } from '../random.ts';

export interface Script {
  readonly messages: readonly Buffer[];
  /** Whether a message was spoilt, and how much a server may object: to the message, or to the whole connection. */
  readonly damage: 'none' | 'body' | 'frame';
  /** What the last row says, if the connection gets that far. */
  readonly mark: string;
}

const int16 = (value: number) => {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value & 0xffff);
  return bytes;
};
/** Unlike that of the product, this one takes text with a zero in it. */
const cstring = (text: string) => Buffer.from(`${text}\0`);
const query = (sql: string) => encodeMessage('Q', cstring(sql));

const statementNames = ['', '', 's1', 's2', 'long-'.repeat(20), 'ä \u{1F431}'];
const portalNames = ['', '', 'p1', 'p2'];

/** Statements without an effect on other sessions. `%` stands for the client's own mark. */
const statements: readonly string[] = [
  "select '%'",
  "select '%'",
  "select '%' as a, $1::text as b",
  "select '%', $1::int + $2::int",
  "select '%', generate_series(1, 300)",
  "select '%', repeat('x', 20000)",
  "select '%', 1/0",
  "selec '%'",
  '',
  ';',
  '-- %',
  "select '%'; select '%'",
  "select '%'; select 1/0; select '%'",
  'begin',
  'begin',
  'commit',
  'rollback',
  'commit and chain',
  'start transaction read only',
  "begin; select '%'; commit",
  "begin; select '%'",
  'savepoint a',
  'rollback to a',
  'release a',
  'set transaction isolation level serializable',
  "insert into fuzz_rows values ('%')",
  "insert into fuzz_rows values ($1) returning '%'",
  "update fuzz_rows set a = a where a = 'none'",
  'copy fuzz_rows from stdin',
  'copy fuzz_rows from stdin',
  'copy fuzz_rows from stdin (format binary)',
  "copy (select '%', generate_series(1, 50)) to stdout",
  "declare c cursor for select '%', generate_series(1, 100)",
  'fetch 3 from c',
  'close c',
  "do $$ begin raise notice '%'; end $$",
  'explain (costs off) select 1',
  'deallocate all',
  'discard all',
  'deallocate s1',
  "notify fuzz, '%'",
  'create temp table kept (a int) on commit drop',
  'table kept',
  "select pg_sleep(0.001), '%'",
  "select '%', current_setting('transaction_isolation')",
  "set local work_mem = '1MB'",
  "select count(*) from pg_prepared_statements where name = '%'",
];

/** These last until another client gets the connection, so only sessions that are alone can be compared. */
const lasting: readonly string[] = [
  "set work_mem = '2MB'",
  'show work_mem',
  "set application_name = '%'",
  'show application_name',
  "set timezone = 'Asia/Tokyo'",
  'show timezone',
  "set client_encoding = 'latin1'",
  "set client_encoding = 'utf8'",
  'reset all',
  "set statement_timeout = '9s'",
  'show statement_timeout',
];

/** How many messages the end of a script has. */
export const endMessages = 4;

export interface ScriptOptions {
  readonly mark: string;
  readonly isAlone: boolean;
  /** How likely a script has a spoilt message. */
  readonly damage: number;
}

export function makeScript(random: Random, { mark, isAlone, damage }: ScriptOptions): Script {
  const texts = isAlone ? [...statements, ...lasting] : statements;
  const makeSql = () => random.pick(texts).replaceAll('%', mark);
  const made = Array.from({ length: random.between(1, 14) }, () => makeMessage(random, makeSql)).flat();
  const messages = withoutCrash(made);
  const end = [
    encodeMessage('f', cstring('the end')),
    encodeMessage('S'),
    query('rollback'),
    query(`select '${mark} end'`),
  ];
  if (!random.chance(damage)) return { messages: [...messages, ...end], damage: 'none', mark: `${mark} end` };
  const at = random.below(messages.length);
  const kind = random.chance(0.6) ? 'body' : 'frame';
  const spoilt =
    kind === 'body' ? spoilBody(messages[at] ?? query(''), random) : spoilFrame(messages[at] ?? query(''), random);
  return { messages: [...messages.with(at, spoilt), ...end], damage: kind, mark: `${mark} end` };
}

/**
 * A server of Postgres 17 crashes when the unnamed portal that has begun a transaction is executed again after an
 * error, and takes all other sessions along. It is the same without Catnap, so no script executes that portal without a
 * Bind.
 */
function withoutCrash(messages: readonly Buffer[]): Buffer[] {
  let hasBegun = false;
  let isBound = false;
  return messages.filter((message) => {
    const type = String.fromCharCode(message[0] ?? 0);
    if ('QS'.includes(type)) isBound = false;
    if (type === 'B') isBound = true;
    hasBegun ||= message.includes('start transaction') || message.includes('begin');
    const isOfUnnamed = type === 'E' && message[5] === 0;
    return !(isOfUnnamed && hasBegun && !isBound);
  });
}

function makeMessage(random: Random, makeSql: () => string): Buffer[] {
  const statement = random.pick(statementNames);
  const portal = random.pick(portalNames);
  switch (random.below(20)) {
    case 0:
    case 1:
    case 2:
      return [query(makeSql())];
    case 3:
    case 4:
      return [parse(statement, makeSql(), random)];
    case 5:
    case 6:
      return [bind(portal, statement, random)];
    case 7:
      return [encodeMessage('D', Buffer.from(random.chance(0.5) ? 'S' : 'P'), cstring(statement))];
    case 8:
    case 9:
      return [encodeMessage('E', cstring(portal), int32(random.pick([0, 0, 1, 5, -1])))];
    case 10:
      return [encodeMessage('C', Buffer.from(random.chance(0.5) ? 'S' : 'P'), cstring(statement))];
    case 11:
    case 12:
      return [encodeMessage('S')];
    case 13:
      return [encodeMessage('H')];
    case 14:
      return [encodeMessage('d', Buffer.from(random.pick(['a\n', 'b\tc\n', '\\.\n', 'half', '', '\0'])))];
    case 15:
      return [encodeMessage(random.pick(['c', 'c', 'f']), random.chance(0.5) ? cstring('no') : Buffer.alloc(0))];
    case 16:
      return [functionCall(random)];
    default: {
      // What drivers send, in one go.
      const sql = makeSql();
      const count = new Set(sql.match(/\$\d/g)).size;
      const batch = [parse(statement, sql, random, 0), bind('', statement, random, count)];
      if (random.chance(0.7)) batch.push(encodeMessage('D', Buffer.from('P'), cstring('')));
      batch.push(encodeMessage('E', cstring(''), int32(0)));
      if (random.chance(0.8)) batch.push(encodeMessage('S'));
      return batch;
    }
  }
}

function parse(name: string, sql: string, random: Random, types = random.pick([0, 0, 0, 1, 3])): Buffer {
  const oids = Array.from({ length: types }, () => int32(random.pick([0, 23, 25, 999_999])));
  return encodeMessage('P', cstring(name), cstring(sql), int16(types), ...oids);
}

function bind(portal: string, statement: string, random: Random, count = random.below(4)): Buffer {
  const formats = random.pick([[], [0], [1], [0, 1], [7]]);
  const values = Array.from({ length: count }, () => {
    if (random.chance(0.1)) return int32(-1);
    const value = Buffer.from(random.pick(['1', '7', '-1', '', 'text', '\0\0\0\x01']));
    return Buffer.concat([int32(value.length), value]);
  });
  const chosen = count === 0 || random.chance(0.7) ? [] : formats;
  const results = random.pick([[], [], [0], [1], [0, 1]]);
  return encodeMessage(
    'B',
    cstring(portal),
    cstring(statement),
    int16(chosen.length),
    ...chosen.map(int16),
    int16(count),
    ...values,
    int16(results.length),
    ...results.map(int16),
  );
}

/** 1598 is `random()`, 1397 is `abs(int4)`. */
function functionCall(random: Random): Buffer {
  const value = Buffer.concat([int32(1), Buffer.from('5')]);
  const given = random.chance(0.7) ? [value] : [];
  return encodeMessage(
    'F',
    int32(random.pick([1397, 1397, 0, 999_999])),
    int16(0),
    int16(given.length),
    ...given,
    int16(0),
  );
}

/** The frame is right, what is in it is not. */
function spoilBody(message: Buffer, random: Random): Buffer {
  const type = String.fromCharCode(message[0] ?? 0x51);
  const body = Buffer.from(message.subarray(5));
  switch (random.below(4)) {
    case 0:
      return encodeMessage(type, body.subarray(0, random.below(body.length + 1)));
    case 1:
      return encodeMessage(type, body, Buffer.from([0, 1, 2, 3].slice(0, random.between(1, 4))));
    case 2:
      return encodeMessage(type, Buffer.alloc(random.below(20), random.below(256)));
    default:
      for (let flips = random.between(1, 3); flips > 0 && body.length > 0; flips--) {
        body[random.below(body.length)] = random.below(256);
      }
      return encodeMessage(type, body);
  }
}

/** The length or the type is wrong, so that everything behind it is read as something else. */
function spoilFrame(message: Buffer, random: Random): Buffer {
  const spoilt = Buffer.from(message);
  switch (random.below(4)) {
    case 0:
      spoilt.writeInt32BE(random.pick([0, 3, -1, 2 ** 31 - 1, 2 ** 30, 1_000_000, 5]), 1);
      return spoilt;
    case 1:
      spoilt[0] = random.below(256);
      return spoilt;
    case 2:
      return spoilt.subarray(0, random.below(spoilt.length));
    default:
      spoilt.writeInt32BE(Math.max(4, spoilt.readInt32BE(1) + random.between(-3, 3)), 1);
      return spoilt;
  }
}

/** The bytes of a script in pieces of any size. */
export function cut(messages: readonly Buffer[], random: Random): Buffer[] {
  const whole = Buffer.concat(messages);
  if (random.chance(0.3)) return [whole];
  const pieces: Buffer[] = [];
  const most = random.pick([3, 40, 700]);
  for (let at = 0; at < whole.length; ) {
    const size = pieces.length > 60 ? whole.length : random.between(1, most);
    pieces.push(whole.subarray(at, at + size));
    at += size;
  }
  return pieces;
}
