/** The time of a branch as a line: what is kept, what is lost, what happened; a handle picks a moment. */
import { count, duration, fullTime } from '../ui/format.ts';
import { type Mark, placeOf, secondMs, secondsOf } from './marks.ts';

interface TimeLineProps {
  /** Beginning and end of what is kept, in milliseconds. */
  readonly span: readonly [number, number];
  readonly gaps: readonly { readonly from: string; readonly until: string }[];
  readonly marks: readonly Mark[];
  readonly value: number;
  readonly onChange: (at: number) => void;
}

export function TimeLine({ span, gaps, marks, value, onChange }: TimeLineProps) {
  const [from, until] = span;
  const [first, last] = secondsOf(span);
  return (
    <div className="time-line">
      <div className="time-track">
        <span className="time-kept" style={{ width: `${placeOf(value, span)}%` }} />
        {gaps.map((gap) => {
          const left = placeOf(Date.parse(gap.from), span);
          const width = Math.max(0.5, placeOf(Date.parse(gap.until), span) - left);
          const title = `Lost: ${fullTime(gap.from)} to ${fullTime(gap.until)}`;
          return (
            <span key={gap.from} className="time-gap" style={{ left: `${left}%`, width: `${width}%` }} title={title} />
          );
        })}
        <input
          type="range"
          aria-label="Moment on the time line"
          min={first}
          max={last}
          step={secondMs}
          value={value}
          aria-valuetext={fullTime(new Date(value).toISOString())}
          onChange={(event) => onChange(Number(event.target.value))}
          onKeyDown={({ key }) => {
            // At the end already, the browser reports no change, and the end would go on with the clock.
            if (key === 'End') onChange(last);
          }}
        />
      </div>
      <div className="time-marks">
        {marks.map((mark) => (
          <button
            key={mark.id}
            type="button"
            className={`time-mark ${mark.kind}`}
            style={{ left: `${placeOf(mark.at, span)}%` }}
            aria-label={`${mark.text}, ${fullTime(new Date(mark.at).toISOString())}`}
            title={`${mark.text}, ${fullTime(new Date(mark.at).toISOString())}`}
            onClick={() => onChange(mark.at)}
          />
        ))}
      </div>
      <div className="time-ends">
        <time dateTime={new Date(from).toISOString()}>{fullTime(new Date(from).toISOString())}</time>
        <span className="time-key">
          {duration((until - from) / secondMs)} kept
          {marks.length > 0 && `, ${count(marks.length, 'event')}`}
          {gaps.length > 0 && `, ${count(gaps.length, 'gap')}`}
        </span>
        <time dateTime={new Date(until).toISOString()}>{fullTime(new Date(until).toISOString())}</time>
      </div>
    </div>
  );
}
