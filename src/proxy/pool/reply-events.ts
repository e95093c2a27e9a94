/** What the scanner of a server's answers tells those around it. */

/** Told what became of a request: `undo` when it failed or was never looked at. */
export interface RequestNote {
  undo(): void;
}

export interface ReplyEvents {
  /** Bytes for the client: whole chunks as they came, wherever possible. They are only valid during the call. */
  onBytes(bytes: Buffer): void;
  onParameter(name: string, value: string): void;
  /** The end of a command, as far as it changes what the session holds. */
  onCommand(tag: string): void;
  /** An error that ends the connection; true keeps it from the client. */
  onFatal(body: Buffer): boolean;
  /** An error that the connection survives; hidden when a query of our own failed. */
  onError(body: Buffer, wasHidden: boolean): void;
}
