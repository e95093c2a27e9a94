/** A branch of a database for a test file. See docs/testing.md. */
export interface FreshBranchOptions {
  /** Id or name of the project; that of the folder's link, or the only one, when left out. */
  readonly project?: string;
  /** Id or name of the branch that is copied; that of the folder's link, or the default branch, when left out. */
  readonly parent?: string;
  /** Database that the connection string is for; the oldest when left out. */
  readonly database?: string;
  /** Role that the connection string is for; the owner of the database when left out. */
  readonly role?: string;
  /** Name of the branch; `test-` and random letters when left out. */
  readonly name?: string;
  /** Copies the schema, and no rows. */
  readonly schemaOnly?: boolean;
  /** The connection string goes through the pooler. */
  readonly pooled?: boolean;
  /** When the branch removes itself, should nothing else do it; 60 when left out. */
  readonly expiresInMinutes?: number;
  /** Where Catnap is; on this machine when left out. */
  readonly apiUrl?: string;
  /** `CATNAP_API_KEY`, or the first key of the Catnap on this machine, when left out. */
  readonly apiKey?: string;
}

export interface FreshBranch {
  readonly id: string;
  readonly name: string;
  readonly projectId: string;
  /** Connection string, with its password. */
  readonly uri: string;
  /** Ends its sessions and removes it with its data. Calling it again does nothing. */
  remove(): Promise<void>;
  /** As `remove`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Makes a branch with a compute of its own, which is awake when this resolves. */
export function freshBranch(options?: FreshBranchOptions): Promise<FreshBranch>;

export interface StockOptions extends Omit<FreshBranchOptions, 'name'> {
  /** How many branches are ready at a time; 2 when left out. */
  readonly count?: number;
}

export interface BranchStock {
  /** Removes the branches of the stock that are left, those that test files have taken too. */
  close(): Promise<void>;
  /** As `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Makes branches ahead of time, for the `freshBranch` of test files in processes that this one starts from now on. Each
 * has the data that its parent had when it was made.
 */
export function stockBranches(options?: StockOptions): Promise<BranchStock>;
