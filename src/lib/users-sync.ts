/** What is copied into a tenant's `users_sync`, and where that is: types that several rooms share. */

/** The table that an application's users are copied to. */
export interface UsersTable {
  readonly database: string;
  /** Role that may read it. */
  readonly readerName: string;
  /** The project at the auth provider; positions of different projects are unrelated. */
  readonly providerProjectId: string;
}

export interface UserChange {
  /** Rises with each change of the project. */
  readonly seq: number;
  readonly userId: string;
  readonly kind: 'created' | 'updated' | 'deleted';
  /** The provider's own object. */
  readonly user: object;
  readonly occurredAt: Date;
}

/** The next changes after a position, in order; empty when there are no more. */
export type ChangesAfter = (position: number) => Promise<readonly UserChange[]>;
