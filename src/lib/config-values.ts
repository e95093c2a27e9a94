/** Reads single values out of an environment; a bad one is refused with the variable's name and what is allowed. */

export type Environment = Readonly<Record<string, string | undefined>>;

export class ConfigError extends Error {
  constructor(variable: string, value: string, allowed: string) {
    super(`${variable}=${JSON.stringify(value)} is not valid; allowed: ${allowed}`);
    this.name = 'ConfigError';
  }
}

export function isSet(env: Environment, name: string): boolean {
  return env[name] !== undefined && env[name] !== '';
}

export function text(env: Environment, name: string, fallback: string, pattern: RegExp, allowed: string): string {
  const value = isSet(env, name) ? (env[name] ?? fallback) : fallback;
  if (!pattern.test(value)) throw new ConfigError(name, value, allowed);
  return value;
}

export function integer(env: Environment, name: string, fallback: number, min: number, max: number): number {
  if (!isSet(env, name)) return fallback;
  const value = env[name] ?? '';
  const parsed = Number(value);
  if (!/^\d+$/.test(value) || parsed < min || parsed > max) {
    throw new ConfigError(name, value, `a whole number from ${min} to ${max}`);
  }
  return parsed;
}

export function choice<T extends string>(env: Environment, name: string, values: readonly T[], fallback: T): T {
  if (!isSet(env, name)) return fallback;
  const found = values.find((value) => value === env[name]);
  if (found === undefined) throw new ConfigError(name, env[name] ?? '', values.join(', '));
  return found;
}

export function readUrl(env: Environment, name: string, protocols: string[]): string | undefined {
  if (!isSet(env, name)) return undefined;
  const value = env[name] ?? '';
  const allowed = `a URL that starts with ${protocols.map((p) => `${p}//`).join(' or ')}`;
  if (!URL.canParse(value) || !protocols.includes(new URL(value).protocol)) {
    // The value may hold a password, so it is not repeated.
    throw new ConfigError(name, '…', allowed);
  }
  return value.replace(/\/+$/, '');
}
