/** One graph. Colours follow the theme, the width follows the page, and all graphs of a page share one cursor. */
import 'uplot/dist/uPlot.min.css';
import { useEffect, useRef, useState } from 'react';
import UPlot from 'uplot';

export interface ChartSeries {
  readonly label: string;
  /** Null is a gap; undefined is passed over. */
  readonly values: readonly (number | null | undefined)[];
  readonly color: 'accent' | 'good' | 'warn' | 'soft';
  /** What the others may reach: said, not drawn, as it would flatten them. */
  readonly isLimit?: boolean;
}

export interface ChartProps {
  readonly title: string;
  /** Seconds, ascending. */
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly text: (value: number) => string;
  readonly from: number;
  readonly to: number;
  /** When the compute was suspended, in seconds. */
  readonly asleep: readonly (readonly [from: number, to: number])[];
  /** The top of the scale where it is known. */
  readonly max?: number;
  /** How far lines of the grid may be apart; decimal numbers otherwise. */
  readonly steps?: readonly number[];
}

const height = 170;
/** A line shows where more are measured; a point that stands alone would not be seen without its dot. */
const pointsShownMax = 100;

export function Chart(props: ChartProps) {
  const { title, times, series, text } = props;
  const host = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const theme = useThemeChanges();
  const isEmpty = lastOf(series) === null;

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new theme means new colours.
  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const plot = new UPlot(optionsOf(props, element.clientWidth, setAt), dataOf(props), element);
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [props.times, props.series, props.from, props.to, theme, isEmpty]);

  const shown = at ?? lastOf(series);
  return (
    <figure className="chart card">
      <figcaption>
        <h2>{title}</h2>
        {at !== null && times[at] !== undefined && <time className="hint">{timeText(times[at])}</time>}
        <span className="chart-values">
          {series.map(({ label, values, color }) => {
            const value = shown === null ? null : (values[shown] ?? null);
            return (
              <span key={label}>
                <i className={`swatch ${color}`} />
                {series.length > 1 && `${label} `}
                <strong>{value === null ? '–' : text(value)}</strong>
              </span>
            );
          })}
        </span>
      </figcaption>
      {isEmpty ? (
        <p className="chart-empty soft">Nothing was measured in this period.</p>
      ) : (
        <div ref={host} aria-hidden="true" />
      )}
    </figure>
  );
}

/** Index of the latest point at which anything was measured. */
function lastOf(series: readonly ChartSeries[]): number | null {
  const indexes = series.map(({ values }) => values.findLastIndex((value) => typeof value === 'number'));
  const latest = Math.max(-1, ...indexes);
  return latest === -1 ? null : latest;
}

const drawn = (series: readonly ChartSeries[]) => series.filter(({ isLimit }) => isLimit !== true);

const dataOf = ({ times, series }: ChartProps): UPlot.AlignedData => [
  [...times],
  ...drawn(series).map(({ values }) => [...values]),
];

/** As the browser's language writes them. */
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const timeText = (seconds: number) => whole.format(seconds * 1000);
const daySeconds = 86_400;

/** Midnight has the day, other times their hour. */
function axisText(seconds: number, step: number): string {
  const date = new Date(seconds * 1000);
  const isDay = step >= daySeconds || (date.getHours() === 0 && date.getMinutes() === 0);
  return (isDay ? day : clock).format(date);
}

/** Behind the lines, from top to bottom. */
function shadeSleep({ asleep }: ChartProps, color: string) {
  return (plot: UPlot) => {
    const { left, top, width, height: high } = plot.bbox;
    plot.ctx.fillStyle = color;
    for (const [from, to] of asleep) {
      const begin = Math.max(left, plot.valToPos(from, 'x', true));
      const end = Math.min(left + width, plot.valToPos(to, 'x', true));
      if (end > begin) plot.ctx.fillRect(begin, top, end - begin, high);
    }
  };
}

function optionsOf(props: ChartProps, width: number, onCursor: (index: number | null) => void): UPlot.Options {
  const { times, series, text, from, to, max, steps } = props;
  const grid = { stroke: colorOf('line'), width: 1 };
  const axis = {
    stroke: colorOf('soft'),
    grid,
    ticks: grid,
    font: `11px ${getComputedStyle(document.body).fontFamily}`,
  };
  return {
    width,
    height,
    legend: { show: false },
    cursor: { sync: { key: 'monitoring' }, y: false, points: { size: 6 } },
    scales: {
      x: { time: true, range: [from, to] },
      y: { range: (_plot, _low, high) => [0, max ?? (high > 0 ? high * 1.15 : (steps?.at(20) ?? 1))] },
    },
    axes: [
      { ...axis, values: (_plot, ticks, _axis, _space, step) => ticks.map((tick) => axisText(tick, step)) },
      {
        ...axis,
        size: 62,
        values: (_plot, ticks) => ticks.map(text),
        ...(steps === undefined ? {} : { incrs: [...steps] }),
      },
    ],
    series: [
      {},
      ...drawn(series).map(({ label, color }) => ({
        label,
        stroke: colorOf(color),
        fill: drawn(series).length === 1 ? colorOf(color, 0.12) : '',
        width: 1.8,
        points: { size: 4, show: times.length < pointsShownMax },
        spanGaps: false,
      })),
    ],
    hooks: {
      drawClear: [shadeSleep(props, colorOf('line', 0.45))],
      setCursor: [(plot) => onCursor(plot.cursor.idx ?? null)],
    },
  };
}

/** A canvas knows no CSS variables, so the browser is asked for what one comes to. */
function colorOf(name: string, alpha = 1): string {
  const probe = document.createElement('span');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return alpha === 1 ? color : color.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);
}

function useThemeChanges(): number {
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    const count = () => setChanges((before) => before + 1);
    const system = matchMedia('(prefers-color-scheme: dark)');
    const observer = new MutationObserver(count);
    system.addEventListener('change', count);
    observer.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      system.removeEventListener('change', count);
      observer.disconnect();
    };
  }, []);
  return changes;
}
