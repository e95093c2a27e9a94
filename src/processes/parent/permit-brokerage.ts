/**
 * The broker of the permits that several proxies share (`proxy/permits`). It is in the parent, which notices at once
 * when a proxy ends. With one proxy there is nothing to share, and the broker is never asked.
 */
import type { ChildProcess } from 'node:child_process';
import { defaultLimits, divideLimits } from '../../proxy/kit/limits.ts';
import { PermitBroker } from '../../proxy/permits/broker.ts';
import { isPermitRequest, type PermitAnswer, type PermitKind } from '../../proxy/permits/messages.ts';
import type { ParentEnd } from '../channel/messages.ts';

export interface PermitBrokerage {
  /** Serves a new proxy process until it ends. */
  serve(child: ChildProcess, channel: ParentEnd): void;
}

export function createPermitBrokerage(replicas: number): PermitBrokerage {
  const { poolShare } = divideLimits(defaultLimits, 1, replicas);
  const brokers: Readonly<Record<PermitKind, PermitBroker>> = {
    servers: new PermitBroker({ permit: 'servers', poolShare, ahead: 4 }),
    clients: new PermitBroker({ permit: 'clients', poolShare: 1, ahead: 64 }),
  };
  return {
    serve(child, channel) {
      const holder = {
        send(answer: PermitAnswer) {
          channel.send('permits', answer);
        },
      };
      channel.on('permits', (message) => {
        if (isPermitRequest(message)) brokers[message.permit].handle(holder, message);
      });
      child.once('exit', () => {
        for (const broker of Object.values(brokers)) broker.remove(holder);
      });
    },
  };
}
