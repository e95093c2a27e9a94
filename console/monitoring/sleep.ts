/** When a compute was suspended, as its measurements tell. */
import type { Endpoint, GetProjectEndpointMetricsReply } from '../api/generated.ts';

type Measured = Pick<GetProjectEndpointMetricsReply, 'step_seconds' | 'from' | 'to'> & {
  readonly samples: readonly { readonly at: string }[];
};
type Compute = Pick<Endpoint, 'created_at' | 'current_state'>;
type Span = readonly [from: number, to: number];

const toSeconds = (time: string) => Date.parse(time) / 1000;
/** The first sample comes a moment after a start. */
const stepsToFirst = 3;

/** The times without samples since the compute was created, in seconds. */
export function sleepSpans({ samples, step_seconds: step, from, to }: Measured, compute: Compute): readonly Span[] {
  const times = samples.map(({ at: time }) => toSeconds(time));
  const half = step / 2;
  const between = times.flatMap((time, index) => {
    const next = times[index + 1];
    return next === undefined || next - time <= 1.5 * step ? [] : [[time + half, next - half] as const];
  });
  const [first, last] = [times[0], times.at(-1)];
  if (first === undefined || last === undefined) return [];
  const start = Math.max(toSeconds(from), toSeconds(compute.created_at));
  const end = toSeconds(to);
  return [
    ...(first - start > stepsToFirst * step ? [[start, first - half] as const] : []),
    ...between,
    ...(compute.current_state === 'idle' && end > last + half ? [[last + half, end] as const] : []),
  ];
}
