/**
 * The first packets of a connection, as values: what the client asks for and with which parameters. Pure parsing;
 * `negotiate.ts` answers.
 */
import { type BackendKey, requestCodes } from './messages.ts';
import { FieldReader, NoStartupPacket, ProtocolError } from './wire.ts';

export interface StartupPacket {
  readonly kind: 'startup';
  /** The minor version that the client asked for; the proxy supports 0. */
  readonly minorVersion: number;
  /** Run-time parameters by name; of a repeated name the last counts, as in Postgres. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Names of `_pq_.` protocol extensions; the proxy supports none. */
  readonly extensions: readonly string[];
}

export type FirstPacket =
  | { readonly kind: 'ssl' }
  | { readonly kind: 'gssenc' }
  | { readonly kind: 'cancel'; readonly key: BackendKey }
  | StartupPacket;

/** `packet` is without its length word. */
export function parseFirstPacket(packet: Buffer): FirstPacket {
  const reader = new FieldReader(packet);
  const code = reader.int32();
  switch (code) {
    case requestCodes.ssl:
      return { kind: 'ssl' };
    case requestCodes.gssenc:
      return { kind: 'gssenc' };
    case requestCodes.cancel: {
      const key = { processId: reader.int32(), secret: reader.int32() };
      if (reader.remaining > 0) throw new NoStartupPacket('invalid length of cancel request packet');
      return { kind: 'cancel', key };
    }
    default:
      return parseStartup(code, reader);
  }
}

function parseStartup(code: number, reader: FieldReader): StartupPacket {
  const major = code >>> 16;
  const minorVersion = code & 0xffff;
  if (major !== 3) {
    throw new ProtocolError(`unsupported frontend protocol ${major}.${minorVersion}: server supports 3.0`);
  }
  const parameters = new Map<string, string>();
  const extensions: string[] = [];
  for (let name = reader.cstring(); name !== ''; name = reader.cstring()) {
    const value = reader.cstring();
    if (name.startsWith('_pq_.')) extensions.push(name);
    else parameters.set(name, value);
  }
  if (reader.remaining > 0) {
    throw new ProtocolError('invalid startup packet layout: expected terminator as last byte');
  }
  return { kind: 'startup', minorVersion, parameters, extensions };
}
