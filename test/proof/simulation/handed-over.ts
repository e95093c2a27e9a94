/** Stands in for vitest in a process of a campaign: what the run has started is handed over as an argument. */
export function inject(name: string): unknown {
  const given: Readonly<Record<string, unknown>> = JSON.parse(process.argv[2] ?? '{}').given;
  return given[name];
}
