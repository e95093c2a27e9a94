/** The size of a compute and when it is suspended: sliders that rest on valid values only. */
import { useQuery } from '@tanstack/react-query';
import type { Endpoint } from '../api/generated.ts';
import { sessionQuery, userQuery } from '../api/queries.ts';
import { CheckField, SelectField, SliderField } from '../ui/field.tsx';
import { duration } from '../ui/format.ts';
import { autoscalingMax, delays, neverDelay, sizesUpTo, sizeText, usualDelay, usualDelaySeconds } from '../ui/sizes.ts';

export interface Sizing {
  readonly isAutoscaling: boolean;
  readonly min: number;
  readonly max: number;
  readonly delay: number;
}

export const initialSizing: Sizing = { isAutoscaling: false, min: 0.25, max: 0.25, delay: usualDelay };

export function sizingOf(endpoint: Endpoint): Sizing {
  const { autoscaling_limit_min_cu: min, autoscaling_limit_max_cu: max } = endpoint;
  return { isAutoscaling: min !== max, min, max, delay: endpoint.suspend_timeout_seconds };
}

export function sizingBody({ isAutoscaling, min, max, delay }: Sizing) {
  return {
    autoscaling_limit_min_cu: min,
    autoscaling_limit_max_cu: isAutoscaling ? Math.max(min, max) : min,
    suspend_timeout_seconds: delay,
  };
}

interface SizingFieldsProps {
  readonly sizing: Sizing;
  readonly onChange: (sizing: Sizing) => void;
}

export function SizingFields({ sizing, onChange }: SizingFieldsProps) {
  const session = useQuery(sessionQuery).data;
  const user = useQuery(userQuery(session)).data;
  const all = sizesUpTo(user?.max_autoscaling_limit);
  const ranged = all.filter((size) => size <= autoscalingMax);
  const setMin = (min: number) => onChange({ ...sizing, min, max: Math.max(min, sizing.max) });
  const setMax = (max: number) => onChange({ ...sizing, max, min: Math.min(max, sizing.min) });
  const setAutoscaling = (isAutoscaling: boolean) => {
    const min = isAutoscaling ? Math.min(sizing.min, autoscalingMax) : sizing.min;
    onChange({ ...sizing, isAutoscaling, min, max: Math.max(min, Math.min(sizing.max, autoscalingMax)) });
  };
  return (
    <>
      <CheckField
        label="Autoscaling"
        hint={`Grows and shrinks with the load, without a restart, up to ${autoscalingMax} CU.`}
        checked={sizing.isAutoscaling}
        onChange={setAutoscaling}
      />
      {sizing.isAutoscaling ? (
        <>
          <SliderField label="Smallest size" values={ranged} value={sizing.min} text={sizeText} onChange={setMin} />
          <SliderField label="Largest size" values={ranged} value={sizing.max} text={sizeText} onChange={setMax} />
        </>
      ) : (
        <SliderField
          label="Size"
          hint="1 CU is 1 vCPU and 4 GB of memory."
          values={all}
          value={sizing.min}
          text={sizeText}
          onChange={(size) => onChange({ ...sizing, min: size, max: size })}
        />
      )}
      <SleepField delay={sizing.delay} onChange={(delay) => onChange({ ...sizing, delay })} />
    </>
  );
}

function SleepField({ delay, onChange }: { readonly delay: number; readonly onChange: (delay: number) => void }) {
  const known = [usualDelay, neverDelay, ...delays.filter((seconds) => seconds !== usualDelaySeconds)];
  const values = known.includes(delay) ? known : [...known, delay];
  const text = (seconds: number) => {
    if (seconds === usualDelay) return `After ${duration(usualDelaySeconds)} without use (default)`;
    if (seconds === neverDelay) return 'Never: always on';
    return `After ${duration(seconds)} without use`;
  };
  return (
    <SelectField
      label="Sleeps"
      hint={delay === neverDelay ? 'It answers at once, and gets new releases only when it is restarted.' : undefined}
      value={String(delay)}
      choices={values.map((value) => ({ value: String(value), text: text(value) }))}
      onChange={(value) => onChange(Number(value))}
    />
  );
}
