/** Shapes that several rooms speak of, so that none of them keeps a copy or imports another room for a type. */

/** Where a server takes connections. */
export type ComputeAddress =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number };

/** The smallest and the largest size that a compute may have, in CU. */
export interface SizeRange {
  readonly minCu: number;
  readonly maxCu: number;
}

/** A size as the driver enforces it, where it can. */
export interface ComputeLimits {
  /** Cores, in parts of one. The start itself is not held back by it. */
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly processes: number;
  /** It can still be made larger: out of memory, it waits for that instead of losing a process. */
  readonly mayGrow: boolean;
  /** Settings that follow the size while the server runs; they count for less than the driver's own. */
  readonly settings: Readonly<Record<string, string>>;
}

/** What a server holds, Catnap's own roles and databases left out. */
export interface ServerCatalog {
  readonly roles: readonly { readonly name: string; readonly verifier: string | null }[];
  readonly databases: readonly { readonly name: string; readonly ownerName: string }[];
}
