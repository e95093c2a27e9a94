/** Gauges whose values are asked for together, of the system database, at each scrape. */
import { Gauge, type Registry } from 'prom-client';

export type AskedGauge<T> = readonly [name: string, help: string, value: (answer: T) => number];

/** The gauges of one scrape are collected within this time, and need one answer. */
const togetherMs = 100;

export function addAskedGauges<T>(
  registry: Registry,
  gauges: readonly AskedGauge<T>[],
  askAnew: () => Promise<T>,
): void {
  let asked: { readonly at: number; readonly answer: Promise<T> } | null = null;
  const ask = () => {
    if (asked === null || performance.now() - asked.at > togetherMs) {
      asked = { at: performance.now(), answer: askAnew() };
    }
    return asked.answer;
  };
  for (const [name, help, value] of gauges) {
    const gauge = new Gauge({
      name,
      help,
      registers: [registry],
      collect: async () => {
        // Without the system database the other numbers are still worth having.
        const answer = await ask().catch(() => null);
        if (answer === null) gauge.reset();
        else gauge.set(value(answer));
      },
    });
  }
}
