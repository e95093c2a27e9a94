/**
 * Sessions under scripts of any messages. One that is alone is compared with a plain server, which gets the same bytes;
 * of many at once, each sees its own marks and nobody else's, and arrives at its end.
 */
import { Random } from '../random.ts';
import type { Findings } from './findings.ts';
import { cut, endMessages, makeScript, type Script } from './messages.ts';
import { type Received, type Target, WireClient } from './wire-client.ts';

interface Outcome {
  /** One word for each message that matters. */
  readonly words: readonly string[];
  readonly isAtEnd: boolean;
}

/** What every client asks for in its startup packet. */
export const applicationName = 'fuzz';

let lastClient = 0;
const newMark = () => `mark-${++lastClient}-`;

/** The same script at a plain server and through the proxy: the same answers. */
export async function compareSessions(
  random: Random,
  plain: Target,
  proxied: Target,
  findings: Findings,
  name: string,
): Promise<void> {
  const script = makeScript(random, { mark: newMark(), isAlone: true, damage: 0.3 });
  const seed = random.below(2 ** 32);
  const compare = async (tried: Script, into: Findings | null) => {
    const expected = await play(plain, tried, new Random(seed), into);
    const actual = await play(proxied, tried, new Random(seed), into);
    return { wrong: difference(expected, actual, tried), outcomes: [expected, actual] };
  };
  const { wrong } = await compare(script, findings);
  if (wrong === null) return;
  const small = await shrink(script, async (tried) => (await compare(tried, null)).wrong === wrong);
  findings.add(`${name}: ${wrong}`, showScript(small, ...(await compare(small, null)).outcomes));
}

/** Leaves messages out for as long as the fault stays. */
async function shrink(script: Script, isWrong: (tried: Script) => Promise<boolean>): Promise<Script> {
  let { messages } = script;
  for (let at = messages.length - endMessages - 1; at >= 0; at--) {
    const without = { ...script, messages: messages.toSpliced(at, 1) };
    if (await isWrong(without)) messages = without.messages;
  }
  return { ...script, messages };
}

/** Many clients of one target at once. */
export async function mixSessions(random: Random, target: Target, clients: number, findings: Findings): Promise<void> {
  const scripts = Array.from({ length: clients }, () => {
    const mark = newMark();
    return { mark, chance: random.fork(), script: makeScript(random, { mark, isAlone: false, damage: 0.2 }) };
  });
  await Promise.all(
    scripts.map(async ({ mark, script, chance }) => {
      const { words, isAtEnd } = await play(target, script, chance, findings);
      const foreign = words
        .join(' ')
        .match(/mark-\d+-/g)
        ?.find((found) => found !== mark);
      if (foreign !== undefined) findings.add(`a client saw ${foreign}, which is not its own`, showScript(script));
      // A plain server ends the connection too when something else comes in the middle of a COPY.
      const isCopyBroken = words.at(-1)?.startsWith('E:FATAL:08') && hasCopy(script);
      if (script.damage === 'none' && !isAtEnd && !isCopyBroken) {
        findings.add(
          'a session without a fault did not arrive at its end',
          `${showScript(script)}\n  ${words.join(' ')}`,
        );
      }
    }),
  );
}

/** A client that leaves in the middle of something, without a word or with Terminate. */
export async function leaveSession(random: Random, target: Target, findings: Findings): Promise<void> {
  const script = makeScript(random, { mark: newMark(), isAlone: false, damage: 0.2 });
  const pieces = cut(script.messages, random);
  try {
    const client = await WireClient.logIn(target);
    await client.send(pieces.slice(0, random.below(pieces.length + 1)));
    if (random.chance(0.5)) client.destroy();
    else await client.end();
  } catch (error) {
    findings.add(`a client that leaves: ${error}`, showScript(script));
  }
}

function hasCopy({ messages }: Script): boolean {
  return messages.some((message) => message.includes('from stdin'));
}

async function play(target: Target, script: Script, random: Random, findings: Findings | null): Promise<Outcome> {
  let client: WireClient | null = null;
  try {
    client = await WireClient.logIn(target);
    await client.send(cut(script.messages, random));
    // Nobody knows how a spoilt frame is read: perhaps as the beginning of something long.
    if (script.damage === 'frame') await client.end();
    else await arrive(client, script);
  } catch (error) {
    findings?.add(`a session: ${error}`, showScript(script));
  } finally {
    client?.destroy();
  }
  const received = client?.received ?? [];
  return { words: received.flatMap(wordOf), isAtEnd: isAtEnd(received, script.mark) };
}

/**
 * A pooled client whose server is lost gets an error for each of its requests, the last one too, and goes on. It may
 * lose the next server as well, with what it has sent since.
 */
async function arrive(client: WireClient, { messages, mark }: Script): Promise<void> {
  const { received } = client;
  for (let from = 0; ; from = received.length) {
    const isLost = () => received.at(-1)?.type === 'Z' && received.slice(from).some(isServerLoss);
    await client.until(() => isAtEnd(received, mark) || isLost());
    if (client.isClosed || isAtEnd(received, mark)) return;
    await client.send(messages.slice(-1));
  }
}

function isServerLoss({ type, body }: Received): boolean {
  return type === 'E' && /\0C08006\0|synchronization was lost/.test(body.toString('latin1'));
}

function isAtEnd(received: readonly Received[], mark: string): boolean {
  const at = received.findIndex(({ type, body }) => type === 'D' && body.includes(mark));
  return at >= 0 && received.slice(at).some(({ type }) => type === 'Z');
}

/** Nothing for what may come at any time: notices, settings, notifications. */
function wordOf({ type, body }: Received): string[] {
  switch (type) {
    case 'N':
    case 'S':
    case 'A':
      return [];
    case 'E': {
      const field = (name: string) =>
        body
          .toString('latin1')
          .split('\0')
          .find((one) => one.startsWith(name))
          ?.slice(1);
      return [`E:${field('V')}:${field('C')}`];
    }
    case 'Z':
      return [`Z:${body.toString('latin1')}`];
    case 'C':
    case 'D':
      return [`${type}:${body.toString('latin1').replaceAll('\0', '').slice(0, 60)}`];
    default:
      return [type];
  }
}

function difference(expected: Outcome, actual: Outcome, script: Script): string | null {
  // How far a server reads before it notices the end differs from run to run.
  if (script.damage === 'frame') return null;
  const isSame = (word: string, other: string | undefined) => word === other || isReset(word, other, script);
  const at = expected.words.findIndex((word, index) => !isSame(word, actual.words[index]));
  if (at < 0 && expected.words.length === actual.words.length) return null;
  const [wanted = 'nothing more', got = 'nothing more'] =
    at < 0 ? [undefined, actual.words[expected.words.length]] : [expected.words[at], actual.words[at]];
  // A plain server ends the connection when something else comes in the middle of a COPY. What it has sent until then
  // may be lost with the connection, and a pooled client that has lost only its server goes on.
  if (expected.words.some((word) => word.startsWith('E:FATAL'))) return null;
  if (!expected.isAtEnd && hasCopy(script)) return null;
  // A server that does not have the client's statement cannot prepare it in a transaction that has failed.
  if (got === 'E:ERROR:25P02' && ['t', 'T', 'n', '2'].includes(wanted) && isFailedAt(expected.words, at)) return null;
  // The name in a DEALLOCATE is only found in a simple query and in an unnamed statement.
  if (wanted === 'C:DEALLOCATE' && got === 'E:ERROR:26000') return null;
  return `a plain server answers ${wanted.replace(/mark-\d+-/, '')}, the proxy ${got.replace(/mark-\d+-/, '')}`;
}

const isFailedAt = (words: readonly string[], at: number) =>
  words.slice(0, Math.max(0, at)).findLast((word) => word.startsWith('Z:')) === 'Z:E';

/** RESET and DISCARD ALL bring back the server's value of a setting, not that of the startup packet. */
function isReset(wanted: string, got: string | undefined, { messages }: Script): boolean {
  if (wanted !== `D:\x01\x04${applicationName}` || got !== 'D:\x01') return false;
  return messages.some((message) => /reset all|discard all/.test(message.toString('latin1')));
}

function showScript(script: Script, ...outcomes: readonly Outcome[]): string {
  const messages = script.messages.map((message) => JSON.stringify(message.toString('latin1').slice(0, 70)));
  return [
    `[${script.damage}] ${messages.join(' ')}`,
    ...outcomes.map(({ words }) => words.join(' ').slice(0, 900)),
  ].join('\n  ');
}
