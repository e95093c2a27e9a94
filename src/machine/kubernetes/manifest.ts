/** What all manifests of an installation have in common. */

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

/** The three Deployments, each with a service account of its own. */
export const pieces = ['api', 'worker', 'proxy'] as const;
export type Piece = (typeof pieces)[number];

export const nameOf = (piece: Piece) => `catnap-${piece}`;
export const labelsOf = (piece: Piece) => ({
  'app.kubernetes.io/name': 'catnap',
  'app.kubernetes.io/component': piece,
});

/** Of the containers; a process that is not root may not listen below 1024. */
export const ports = { http: 7070, databases: 5432 } as const;

/** What Kubernetes puts on every namespace. */
export const namespaceLabel = 'kubernetes.io/metadata.name';
