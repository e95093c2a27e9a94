/** Cuts from the schema of an object the part that Catnap uses. */

/** What says whether a value is valid. Descriptions are left out, and so are rules in a language of their own (CEL). */
const words = ['type', 'enum', 'pattern', 'format', 'required', 'anyOf', 'oneOf', 'additionalProperties', 'items'];
const bounds = ['minimum', 'maximum', 'minLength', 'maxLength'];

/**
 * The part of a schema that is below `paths`, as closed objects. An empty path is the whole; items of a list need no
 * word of their own. `resolve` returns what a `$ref` stands for.
 */
export function cutSchema(given, paths, place, resolve = (schema) => schema) {
  const schema = resolve(given);
  const cut = (below, inner, where) => cutSchema(below, inner, where, resolve);
  const isWhole = paths.includes('');
  const result = {};
  for (const word of [...words, ...bounds]) {
    if (schema[word] === undefined) continue;
    if (word === 'items') result.items = cut(schema.items, paths, `${place}[]`);
    else if (word === 'additionalProperties') result[word] = cut(schema[word], [''], `${place}.*`);
    else result[word] = schema[word];
  }
  if (schema['x-kubernetes-int-or-string']) result.anyOf = [{ type: 'integer' }, { type: 'string' }];
  if (schema.properties === undefined) return result;
  const names = isWhole ? Object.keys(schema.properties) : [...new Set(paths.map((path) => path.split('.')[0]))];
  result.properties = {};
  for (const name of names) {
    const below = schema.properties[name];
    if (below === undefined) throw new Error(`the definition has no ${place}.${name}`);
    const rest = paths.filter((path) => path === name || path.startsWith(`${name}.`));
    const inner = isWhole ? [''] : rest.map((path) => path.slice(name.length + 1));
    result.properties[name] = cut(below, inner, `${place}.${name}`);
  }
  // A required field that is not kept could never be given.
  const missing = (result.required ?? []).filter((name) => result.properties[name] === undefined);
  if (missing.length > 0) throw new Error(`${place} needs ${missing}`);
  result.additionalProperties = false;
  return result;
}
