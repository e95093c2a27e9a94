/** What the proxy tells about itself while it works; whoever starts it decides where the numbers go. */
export interface ProxyMetrics {
  connectionOpened(): void;
  connectionClosed(): void;
  /** A client was sent away with an error. */
  connectionRefused(sqlState: string): void;
  /** A client reached its compute; `connectMs` holds the wake, if there was one. */
  sessionStarted(times: { readonly authenticationMs: number; readonly connectMs: number }): void;
  /** All numbers as JSON, for whoever asks at the proxy's socket. */
  scrape(): Promise<string>;
}

export const noMetrics: ProxyMetrics = {
  connectionOpened() {},
  connectionClosed() {},
  connectionRefused() {},
  sessionStarted() {},
  scrape: async () => '[]',
};
