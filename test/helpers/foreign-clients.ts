/** What `docs/compatibility/clients.json` says about the clients of others; tests hold it against what they ran. */
import { readFileSync } from 'node:fs';
import type { ForeignClient } from '../../scripts/render-compatibility.mjs';

const file = new URL('../../docs/compatibility/clients.json', import.meta.url);
const { clients }: { clients: readonly ForeignClient[] } = JSON.parse(readFileSync(file, 'utf8'));

export function foreignClient(name: string, version: string): ForeignClient {
  const found = clients.find((client) => client.name === name && client.version === version);
  if (found === undefined) throw new Error(`docs/compatibility/clients.json does not have ${name} ${version}`);
  return found;
}

/** Everything that the tests run, whatever becomes of it. */
export function runOf({ served, refused, failing }: ForeignClient): string[] {
  return [...served, ...refused, ...failing.flatMap(({ names }) => names)];
}

/** The command that a list of words calls: `branches list` of `branches list --output json`. */
export function commandOf(client: ForeignClient, words: string): string {
  const names = runOf(client).filter((name) => `${words} `.startsWith(`${name} `));
  const [longest] = names.sort((one, other) => other.length - one.length);
  if (longest === undefined) throw new Error(`docs/compatibility/clients.json does not list what this calls: ${words}`);
  return longest;
}

/** The same client; the dotted name of every method that is called is added to `called`. */
export function recordCalls<Client extends object>(client: Client, called: Set<string>, prefix = ''): Client {
  return new Proxy(client, {
    get: (target, key) => {
      // With the target as receiver: the client's classes have private fields, which a proxy does not.
      const value: unknown = Reflect.get(target, key, target);
      const name = `${prefix}${String(key)}`;
      if (typeof value === 'function') {
        return (...given: unknown[]) => {
          called.add(name);
          return value.apply(target, given);
        };
      }
      return typeof value === 'object' && value !== null ? recordCalls(value, called, `${name}.`) : value;
    },
  });
}

/** The dotted names of all methods of a client and of the parts that it consists of. */
export function methodsOf(client: object, prefix = ''): string[] {
  const type = Object.getPrototypeOf(client);
  const named = type === Object.prototype ? [] : Object.getOwnPropertyNames(type);
  const own = named.filter((name) => name !== 'constructor');
  const parts = Object.entries(client).filter(([, part]) => typeof part === 'object' && part !== null);
  return [
    ...own.filter((name) => typeof Reflect.get(client, name) === 'function').map((name) => `${prefix}${name}`),
    ...parts.flatMap(([name, part]) => methodsOf(part, `${prefix}${name}.`)),
  ];
}
