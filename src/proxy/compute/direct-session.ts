/** A client of the direct host and its own session of the compute: the permit, the login there, and the copying. */
import type { LoggedIn } from '../client/log-in.ts';
import type { Activity } from '../kit/activity.ts';
import type { ProxyLimits } from '../kit/limits.ts';
import type { Sent } from '../kit/transfers.ts';
import { type Budgets, takePermit } from '../permits/budget.ts';
import type { MessageStream } from '../protocol/message-stream.ts';
import type { ErrorReport } from '../protocol/messages.ts';
import type { Splice } from '../sockets/splice.ts';
import type { CancelKeys } from './cancel.ts';
import type { BegunSession, HeadStart, HeadStarts } from './head-start.ts';
import { asksForReplication, ReplicationGuard } from './replication.ts';
import { connectDirectly, startSession } from './session.ts';
import type { Waker } from './wake.ts';

export interface DirectParts {
  readonly limits: ProxyLimits;
  readonly activity: Activity;
  readonly waker: Waker;
  readonly budgets: Budgets;
  readonly cancelKeys: CancelKeys;
  readonly headStarts: HeadStarts;
}

export interface DirectClient extends LoggedIn {
  readonly address: string;
  readonly messages: MessageStream;
  readonly headStart: HeadStart | null;
  readonly sent: Sent;
  readonly signal: AbortSignal;
  /** A client of the replication protocol has asked for what Catnap refuses. */
  readonly onRefusal: (report: ErrorReport, terminate: Splice['terminate']) => void;
}

type DirectSession = Pick<Splice, 'drain' | 'terminate'> & { readonly closed: Promise<void> };

export async function startDirectSession(client: DirectClient, parts: DirectParts): Promise<DirectSession> {
  const { identity, messages, parameters, isToldOk, sent, signal } = client;
  const { limits, activity, cancelKeys, headStarts } = parts;
  const { endpointId } = identity.route;
  const { compute, releasePermit } = (await takeHeadStart(client, parts)) ?? (await connect(client, parts));
  try {
    if (signal.aborted) compute.socket.destroy();
    signal.throwIfAborted();
    let end: Splice['terminate'] = () => {};
    const isReplication = asksForReplication(parameters);
    const guard = isReplication ? new ReplicationGuard((report) => client.onRefusal(report, end)) : null;
    const { done, drain, terminate } = startSession({
      messages,
      isToldOk,
      compute,
      cancelKeys,
      cancelMs: limits.dialMs,
      onClientBytes: () => activity.note(endpointId),
      sent,
      admit: guard === null ? undefined : (chunk) => guard.admit(chunk),
    });
    end = terminate;
    headStarts.earn({ ...identity, address: client.address }, identity, compute.address);
    return { drain, terminate, closed: done.then(releasePermit) };
  } catch (thrown) {
    releasePermit();
    throw thrown;
  }
}

async function connect(client: DirectClient, parts: DirectParts): Promise<BegunSession> {
  const { identity, parameters, signal } = client;
  const { limits, waker, budgets } = parts;
  const releasePermit = await takePermit(budgets.of(identity.route.endpointId), limits.permitMs, signal);
  try {
    return { releasePermit, compute: await connectDirectly({ identity, parameters, waker, limits, signal }) };
  } catch (thrown) {
    releasePermit();
    throw thrown;
  }
}

/**
 * The control plane is asked all the same: it notes that the compute is used, and knows if its route was closed since.
 * The session is good only if the server that it names is still the one with which the session was begun.
 */
async function takeHeadStart(client: DirectClient, { waker }: DirectParts): Promise<BegunSession | null> {
  const { headStart, identity, signal } = client;
  if (headStart === null) return null;
  try {
    // Then the usual way asks for the wake, and hears of the server before its route is open.
    if (headStart.hasFailed) return null;
    const { generation } = await waker.wake(identity.route.endpointId, signal);
    return await headStart.take(identity, generation);
  } finally {
    headStart.discard();
  }
}
