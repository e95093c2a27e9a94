/** The error for a client whose connection cannot go on, and the level at which it is logged. */
import { CatnapError } from '../../lib/errors.ts';
import { PeerGone } from '../protocol/message-stream.ts';
import { type ErrorReport, errorResponse } from '../protocol/messages.ts';
import { NoStartupPacket, ProtocolError } from '../protocol/wire.ts';
import { ComputeRefusal } from './session.ts';

/** The message of Postgres for a shutdown. */
export const administratorCommand: ErrorReport = {
  sqlState: '57P01',
  message: 'terminating connection due to administrator command',
};

/** The proxy is closing; nothing failed. */
export class ShuttingDown extends Error {
  constructor() {
    super('the proxy is closing');
    this.name = 'ShuttingDown';
  }
}

export interface Refusal {
  readonly level: 'debug' | 'info' | 'error';
  readonly sqlState: string;
  /** Null when the client is gone, or does not speak the protocol. */
  readonly response: Buffer | null;
}

export function describeRefusal(thrown: unknown): Refusal {
  if (thrown instanceof PeerGone) {
    return { level: 'debug', sqlState: '08006', response: null };
  }
  if (thrown instanceof ComputeRefusal) {
    return { level: 'info', sqlState: thrown.sqlState, response: thrown.response };
  }
  if (thrown instanceof ShuttingDown) return refuse('debug', administratorCommand);
  if (thrown instanceof NoStartupPacket) return { level: 'info', sqlState: '08P01', response: null };
  if (thrown instanceof ProtocolError) {
    return refuse('info', { sqlState: '08P01', message: thrown.message });
  }
  if (thrown instanceof CatnapError) {
    const level = thrown.kind === 'internal' ? 'error' : 'info';
    return refuse(level, { sqlState: thrown.facts.sqlState, message: thrown.message });
  }
  return refuse('error', { sqlState: 'XX000', message: 'internal error' });
}

function refuse(level: Refusal['level'], report: ErrorReport): Refusal {
  return { level, sqlState: report.sqlState, response: errorResponse(report) };
}
