/** What a page shows while it waits, when there is nothing, and when something went wrong. */
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ApiError, OfflineError } from '../api/client.ts';
import { Button } from './button.tsx';

export function Loading({ lines = 4 }: { readonly lines?: number }) {
  const widths = Array.from({ length: lines }, (_, index) => `w${index % 4}`);
  return (
    <div className="loading" role="status">
      <span className="visually-hidden">Loading</span>
      {widths.map((width, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all alike and never change places.
        <span key={index} className={`skeleton ${width}`} />
      ))}
    </div>
  );
}

interface EmptyProps {
  readonly title: string;
  readonly children?: ReactNode;
}

export function Empty({ title, children }: EmptyProps) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children}
    </div>
  );
}

interface FailureProps {
  readonly error: Error;
  readonly onRetry?: () => void;
}

export function Failure({ error, onRetry }: FailureProps) {
  return (
    <div className="failure" role="alert">
      <p className="failure-title">{titleOf(error)}</p>
      <p>{error.message}</p>
      {error instanceof ApiError && error.status >= 500 && error.requestId !== '' && (
        <p className="hint">
          The log has the cause under the request id <code>{error.requestId}</code>.
        </p>
      )}
      {onRetry !== undefined && (
        <Button small onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

function titleOf(error: Error): string {
  if (error instanceof OfflineError) return 'Not reachable';
  if (error instanceof ApiError && error.status === 404) return 'Not found';
  if (error instanceof ApiError && error.status === 403) return 'This key may not do that';
  return 'Something went wrong';
}

interface LoadedProps<T> {
  readonly query: UseQueryResult<T>;
  readonly children: (data: T) => ReactNode;
  readonly lines?: number;
}

/**
 * Goes on showing the last good reply when a later request fails, because the banner reports that. What was deleted
 * meanwhile, or is no longer permitted, is not shown.
 */
export function Loaded<T>({ query, children, lines = 4 }: LoadedProps<T>) {
  if (query.data !== undefined && !isGone(query.error)) return children(query.data);
  if (query.error !== null) return <Failure error={query.error} onRetry={() => query.refetch()} />;
  return <Loading lines={lines} />;
}

const isGone = (error: Error | null) => error instanceof ApiError && (error.status === 404 || error.status === 403);
