/** Writes: send, then ask again for everything that the write may have changed, and say what happened. */
import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query';
import { notify } from '../ui/notices.ts';

export interface ActionOptions<Result> {
  /** What is asked for again; everything under each key. */
  readonly refresh: readonly QueryKey[];
  /** Said when it worked. */
  readonly done?: string;
  readonly onDone?: (result: Result) => void;
  /** The form shows the failure itself; otherwise it is a notice. */
  readonly showsFailure?: boolean;
}

export function useAction<Input, Result>(run: (input: Input) => Promise<Result>, options: ActionOptions<Result>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: run,
    onSuccess: (result) => {
      if (options.done !== undefined) notify('good', options.done);
      options.onDone?.(result);
    },
    onError: (error) => {
      if (options.showsFailure !== true) notify('bad', error.message);
    },
    onSettled: () => Promise.all(options.refresh.map((queryKey) => client.invalidateQueries({ queryKey }))),
  });
}
