/** Values and texts that are known to break programs, and changes of one place in something that was right. */
import type { Random } from '../random.ts';

export const nastyTexts: readonly string[] = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  'a\udfffb',
  '\ufeff',
  '\u202eabc',
  '\u{1F431}'.repeat(64),
  'x'.repeat(64),
  'x'.repeat(257),
  'x'.repeat(100_000),
  "'; drop table projects; --",
  '$1',
  '%s%n%x',
  '{{7*7}}',
  '<script>alert(1)</script>',
  '../../../etc/passwd',
  '..\\..',
  '__proto__',
  'constructor',
  'toString',
  'null',
  'undefined',
  'NaN',
  'true',
  '-1',
  '1e400',
  '0x10',
  '9'.repeat(40),
  '9223372036854775808',
  '2026-02-30T00:00:00Z',
  '275760-09-13T00:00:00.001Z',
  '+999999-01-01T00:00:00Z',
  '0000-00-00T00:00:00Z',
  '-000001-01-01T00:00:00Z',
  '9999-12-31T23:59:60Z',
  '2026-01-01T00:00:00+99:99',
  '2026-01-01',
  'FFFFFFFFF/0',
  'br-',
  'ep-nowhere-1',
  'BR-UPPER-1',
  'postgres',
  'template0',
  'cloud_admin',
  'pg_monitor',
  'ÄÖÜ',
  'a/b',
  'a%2Fb',
  '\r\nx-injected: 1',
  'http://127.0.0.1:1/',
  'file:///etc/passwd',
];

const nastyNumbers: readonly number[] = [
  0,
  -0,
  -1,
  1,
  0.5,
  0.1 + 0.2,
  1e-320,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 32,
  2 ** 53,
  -(2 ** 53),
  2 ** 63,
  1e21,
  1e308,
];

export function nastyValue(random: Random): unknown {
  switch (random.below(8)) {
    case 0:
    case 1:
      return random.pick(nastyNumbers);
    case 2:
      return random.pick<unknown>([null, true, false]);
    case 3:
      return random.pick<unknown>([[], {}, [[]], [null], { a: 1 }, ['a', 'a']]);
    case 4:
      return Array.from({ length: 1_000 }, (_, index) => index);
    default:
      return random.pick(nastyTexts);
  }
}

type Container = Record<string, unknown> | unknown[];
interface Place {
  readonly container: Container;
  readonly key: string | number;
  /** As a person would name it: `project.settings.quota`. */
  readonly path: string;
}

/** A copy in which one place is wrong, and the path of that place. */
export function mutateValue(value: unknown, random: Random): { readonly value: unknown; readonly path: string } {
  const copy = structuredClone({ root: value });
  const places = placesOf(copy, '');
  const { container, key, path } = random.pick(places);
  const set = (to: unknown) => {
    if (Array.isArray(container)) container[Number(key)] = to;
    else container[key] = to;
  };
  const inside = Array.isArray(container) ? container[Number(key)] : container[key];
  switch (random.below(5)) {
    case 0:
      if (!Array.isArray(container)) delete container[key];
      else container.splice(Number(key), 1);
      break;
    case 1:
      if (typeof inside === 'object' && inside !== null && !Array.isArray(inside)) {
        Object.assign(inside, { [random.pick(nastyTexts) || 'extra']: nastyValue(random) });
      } else set([inside]);
      break;
    default:
      set(nastyValue(random));
  }
  return { value: copy.root, path };
}

function placesOf(container: Container, path: string): Place[] {
  return Object.entries(container).flatMap(([key, value]) => {
    const own = path === '' ? key : `${path}.${key}`;
    const isContainer = typeof value === 'object' && value !== null;
    return [{ container, key, path: own }, ...(isContainer ? placesOf(value as Container, own) : [])];
  });
}

/** Bytes in place of a body that was right: cut, doubled, nested, not UTF-8, not JSON. */
export function mutateText(text: string, random: Random): Buffer {
  const cut = random.below(text.length + 1);
  switch (random.below(10)) {
    case 0:
      return Buffer.from(text.slice(0, cut));
    case 1:
      return Buffer.from(`${text}${text}`);
    case 2:
      return Buffer.from(`\ufeff${text}`);
    case 3:
      return Buffer.from('['.repeat(random.pick([10, 1_000, 100_000])));
    case 4:
      return Buffer.from(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`);
    case 5:
      return Buffer.concat([Buffer.from(text.slice(0, cut)), Buffer.from([0xff, 0xfe, 0xc0, 0x80]), Buffer.from(text)]);
    case 6:
      return Buffer.from(
        text.replace(/"[^"]*"/, random.pick(['"\\ud800"', '"\\u0000"', '"\\x"', 'NaN', '1e999', "'a'"])),
      );
    case 7:
      return Buffer.from(text.replace('{', '{"__proto__":{"a":1},'));
    case 8:
      return Buffer.from(text.replace(/\{("\w+":)/, '{$1null,$1'));
    default: {
      const bytes = Buffer.from(text);
      for (let flips = 1 + random.below(4); flips > 0 && bytes.length > 0; flips--) {
        bytes[random.below(bytes.length)] = random.below(256);
      }
      return bytes;
    }
  }
}
