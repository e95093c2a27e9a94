/** A plan as a tree: what each step takes itself, and where Postgres has expected other numbers of rows. */
import { Badge } from '../ui/bits.tsx';
import { count } from '../ui/format.ts';
import type { Plan, Step } from './plan.ts';

export function PlanView({ plan }: { readonly plan: Plan }) {
  const { planningMs, executionMs, isMeasured, root } = plan;
  return (
    <div className="plan">
      <p className="hint">
        {isMeasured
          ? `Planned in ${precise(planningMs ?? 0)}, executed in ${precise(executionMs ?? 0)} and rolled back. `
          : 'Estimates only, nothing was executed; Analyze measures. '}
        Bars show what a step takes itself, without the steps below it.
      </p>
      <ul aria-label="Plan">
        <StepView step={root} />
      </ul>
    </div>
  );
}

const precise = (ms: number) => (ms >= 1_000 ? `${(ms / 1_000).toFixed(2)} s` : `${ms.toFixed(ms < 10 ? 2 : 0)} ms`);

function StepView({ step }: { readonly step: Step }) {
  const percent = Math.round(step.share * 100);
  return (
    <li>
      <div className="plan-step">
        <span className="plan-name">
          <strong>{step.title}</strong> {step.on}
        </span>
        <span className="plan-bar" aria-hidden="true">
          <span className={percent >= 50 ? 'hot' : undefined} style={{ width: `${percent}%` }} />
        </span>
        <span className="plan-self">
          {step.selfMs === null ? `cost ${step.selfCost.toFixed(0)}` : precise(step.selfMs)}, {percent} %
        </span>
        <span className="plan-rows">
          {step.rows === null
            ? `${count(step.expectedRows, 'row')} expected`
            : `${count(step.rows, 'row')}${step.loops > 1 ? ` in ${step.loops} loops` : ''}`}
        </span>
        {step.misestimate !== null && <Badge tone="warn">{misestimateText(step)}</Badge>}
        {step.conditions.map((condition) => (
          <code key={condition}>{condition}</code>
        ))}
      </div>
      {step.steps.length > 0 && (
        <ul>
          {step.steps.map((child, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the steps of a plan have no names and do not move.
            <StepView key={index} step={child} />
          ))}
        </ul>
      )}
    </li>
  );
}

function misestimateText({ misestimate, expectedRows }: Step): string {
  const factor = misestimate ?? 1;
  const times = Math.round(factor >= 1 ? factor : 1 / factor).toLocaleString('en');
  return `${times} × ${factor >= 1 ? 'more' : 'fewer'} than the ${count(expectedRows, 'row')} expected`;
}
