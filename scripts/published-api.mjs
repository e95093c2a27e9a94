/**
 * The contract: every operation of the published API. Two packages of its makers ship it. The newest OpenAPI file that
 * npm has is in `@neondatabase/api-client`, with schemas; `@neon/sdk` is generated from a newer one that no package
 * ships, and knows operations that the file lacks. Tests sweep over both, and the compatibility page is made from them.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import * as sdk from '@neon/sdk/raw';
import { parse } from 'yaml';

const require = createRequire(import.meta.url);
const methods = ['get', 'post', 'put', 'patch', 'delete'];

/** The OpenAPI file, parsed. */
export function readPublishedFile() {
  const entry = require.resolve('@neondatabase/api-client/package.json');
  return parse(readFileSync(new URL('public-v2-for-users.gen.yaml', `file://${entry}`), 'utf8'), { maxAliasCount: -1 });
}

/** Every operation of the file, then those that only the SDK has. */
export function publishedOperations(file = readPublishedFile()) {
  const inFile = Object.entries(file.paths).flatMap(([path, item]) =>
    methods
      .filter((method) => item[method] !== undefined)
      .map((method) => ({
        method: method.toUpperCase(),
        path,
        operationId: item[method].operationId,
        group: item[method].tags?.[0] ?? 'Other',
      })),
  );
  const groups = new Map(inFile.map(({ path, group }) => [familyOf(path), group]));
  const known = new Set(inFile.map(addressOf));
  const newer = sdkOperations()
    .filter((operation) => !known.has(addressOf(operation)))
    .map((operation) => {
      const family = familyOf(operation.path);
      return { ...operation, group: groups.get(family) ?? titleOf(family) };
    });
  return [...inFile, ...newer];
}

/** Method and path, with parameters nameless: what a route is found by. */
export const addressOf = ({ method, path }) => `${method} ${path.replace(/\{\w+\}|:\w+/g, '{}')}`;

/** The versions that this contract is taken from. */
export function contractPackages() {
  return [
    { name: '@neondatabase/api-client', version: versionOf('@neondatabase/api-client') },
    { name: '@neon/sdk', version: versionOf('@neon/sdk') },
  ];
}

function versionOf(name) {
  // The SDK does not export its package.json; its entry is two folders below it.
  const entry =
    name === '@neon/sdk' ? import.meta.resolve('@neon/sdk') : `file://${require.resolve(`${name}/package.json`)}`;
  const path = name === '@neon/sdk' ? '../package.json' : 'package.json';
  return JSON.parse(readFileSync(new URL(path, entry), 'utf8')).version;
}

/** Each function of the SDK is called with a client that sends nothing and only notes what it was asked for. */
function sdkOperations() {
  const found = [];
  let operationId = '';
  const note = (method) => (request) => {
    found.push({ method: method.toUpperCase(), path: request.url, operationId });
    return {};
  };
  const client = Object.fromEntries(methods.map((method) => [method, note(method)]));
  for (const [name, call] of Object.entries(sdk.raw ?? sdk)) {
    if (typeof call !== 'function' || !/^[a-z]/.test(name) || notOperations.includes(name)) continue;
    operationId = name;
    call({ client });
  }
  return found;
}

const notOperations = ['createClient', 'createConfig'];

/** The part of a path that tells what it is about: `members`, `logs`. */
function familyOf(path) {
  return /^(?:\/projects\/\{\w+\}(?:\/branches\/\{\w+\})?)?\/([^/{]+)/.exec(path)?.[1] ?? path;
}

function titleOf(family) {
  const words = family.replaceAll(/[-_]/g, ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
