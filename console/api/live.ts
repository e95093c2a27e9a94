/**
 * The stream of changes from `/api/v2/events`. An operation that begins or ends makes the pages of its project ask
 * again. A hidden tab closes its stream: browsers give a server six connections, and tabs must not use them up.
 */
import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { isPassingStatus, openStream } from './client.ts';
import type { Operation } from './generated.ts';
import { setLive } from './live-state.ts';
import { askAgain, endSession } from './query-client.ts';
import { offline } from './watched-flag.ts';

/** A server that is gone is looked for every second; one that refuses is asked less and less often. */
const reopenMs = { first: 1_000, most: 15_000 };

export function useLiveChanges(): void {
  const client = useQueryClient();
  useEffect(() => {
    let closing = new AbortController();
    const open = () => {
      closing = new AbortController();
      const onChange = (projectId: string | null) => {
        void client.invalidateQueries({ queryKey: projectId === null ? ['project'] : ['project', projectId] });
        void client.invalidateQueries({ queryKey: ['projects'] });
      };
      const onBack = () => {
        offline.set(false);
        askAgain();
      };
      void follow(closing.signal, { onChange, onSignedOut: endSession, onBack });
    };
    const change = () => {
      closing.abort();
      if (!document.hidden) open();
    };
    change();
    document.addEventListener('visibilitychange', change);
    return () => {
      document.removeEventListener('visibilitychange', change);
      closing.abort();
    };
  }, [client]);
}

interface Listeners {
  /** Null: anything may have changed. */
  readonly onChange: (projectId: string | null) => void;
  /** The key was revoked, or somebody signed out elsewhere. */
  readonly onSignedOut: () => void;
  /** The server answers again. */
  readonly onBack: () => void;
}

/** Opens the stream again whenever it ends, more slowly each time that the server refuses it. */
async function follow(signal: AbortSignal, { onChange, onSignedOut, onBack }: Listeners): Promise<void> {
  let waitMs = reopenMs.first;
  while (!signal.aborted) {
    try {
      const response = await openStream('/events', signal);
      if (response.status === 401) return onSignedOut();
      if (response.ok && response.body !== null) {
        setLive(true);
        onChange(null);
        onBack();
        await readEvents(response.body, onChange);
        // It ended, so the server may be gone: asking at once finds out.
        onChange(null);
      }
      const isRefused = !response.ok && !isPassingStatus(response.status);
      waitMs = isRefused ? Math.min(waitMs * 2, reopenMs.most) : reopenMs.first;
    } catch {
      // Whatever it was: pages ask by themselves meanwhile.
      waitMs = reopenMs.first;
    }
    setLive(false);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

async function readEvents(body: ReadableStream<Uint8Array>, onChange: (projectId: string) => void): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + decoder.decode(value, { stream: true })).split('\n\n');
    rest = parts.pop() ?? '';
    const projects = new Set(parts.flatMap((part) => projectOf(part) ?? []));
    for (const projectId of projects) onChange(projectId);
  }
}

function projectOf(event: string): string | undefined {
  const data = /^data: (.*)$/m.exec(event)?.[1];
  if (data === undefined) return undefined;
  const { operation } = JSON.parse(data) as { readonly operation?: Pick<Operation, 'project_id'> };
  return operation?.project_id;
}
