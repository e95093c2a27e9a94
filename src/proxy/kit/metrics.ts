/** The events that the proxy counts; the process that starts the proxy decides where the numbers go. */
export interface ProxyMetrics {
  connectionOpened(): void;
  connectionClosed(): void;
  /** A client was refused with an error. */
  connectionRefused(sqlState: string): void;
  /** A client reached its compute; `connectMs` includes the wake, if there was one. */
  sessionStarted(times: { readonly authenticationMs: number; readonly connectMs: number }): void;
  /** All numbers as JSON; served on the proxy's own socket. */
  scrape(): Promise<string>;
}

export const noMetrics: ProxyMetrics = {
  connectionOpened() {},
  connectionClosed() {},
  connectionRefused() {},
  sessionStarted() {},
  scrape: async () => '[]',
};
