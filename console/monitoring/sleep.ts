/** When a compute was suspended, as its measurements tell. */
import type { GetProjectEndpointMetricsReply } from '../api/generated.ts';

type Measured = Pick<GetProjectEndpointMetricsReply, 'step_seconds'> & {
  readonly samples: readonly { readonly at: string }[];
};

/** The times without samples between others, in seconds. */
export function sleepSpans({ samples, step_seconds: step }: Measured): readonly (readonly [number, number])[] {
  const times = samples.map(({ at: time }) => Date.parse(time) / 1000);
  return times.flatMap((time, index) => {
    const next = times[index + 1];
    return next === undefined || next - time <= 1.5 * step ? [] : [[time + step / 2, next - step / 2] as const];
  });
}
