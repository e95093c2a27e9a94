/** What the page about a compute can show, and how the address holds it. */

export const views = [
  { id: 'graphs', text: 'Graphs' },
  { id: 'sessions', text: 'Sessions' },
  { id: 'queries', text: 'Top queries' },
  { id: 'locks', text: 'Locks' },
  { id: 'log', text: 'Log' },
  { id: 'extensions', text: 'Extensions' },
] as const;

export type MonitoringView = (typeof views)[number]['id'];

export interface MonitoringSearch {
  readonly endpoint?: string | undefined;
  /** Without an endpoint: its primary. */
  readonly branch?: string | undefined;
  readonly view?: MonitoringView | undefined;
  readonly range?: string | undefined;
  readonly database?: string | undefined;
}
