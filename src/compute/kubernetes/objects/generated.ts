/** Types of objects, from `schemas.json` beside it. Written by `npm run generate`; do not edit. */

export interface ClusterSpec {
  readonly instances: number;
  readonly imageName?: string;
  readonly inheritedMetadata?: {
    readonly annotations?: Readonly<Record<string, string>>;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly enablePDB?: boolean;
  readonly enableSuperuserAccess?: boolean;
  readonly smartShutdownTimeout?: number;
  readonly stopDelay?: number;
  readonly storage?: {
    readonly size?: string;
    readonly storageClass?: string;
  };
  readonly resources?: {
    readonly requests?: Readonly<Record<string, number | string>>;
    readonly limits?: Readonly<Record<string, number | string>>;
  };
  readonly probes?: {
    readonly startup?: {
      readonly periodSeconds?: number;
    };
    readonly liveness?: {
      readonly periodSeconds?: number;
    };
    readonly readiness?: {
      readonly periodSeconds?: number;
    };
  };
  readonly bootstrap?: {
    readonly initdb?: {
      readonly database?: string;
      readonly owner?: string;
      readonly secret?: {
        readonly name: string;
      };
      readonly encoding?: string;
      readonly localeCollate?: string;
      readonly localeCType?: string;
      readonly localeProvider?: string;
      readonly builtinLocale?: string;
      readonly dataChecksums?: boolean;
      readonly postInitSQL?: readonly string[];
    };
    readonly recovery?: {
      readonly database?: string;
      readonly owner?: string;
      readonly secret?: {
        readonly name: string;
      };
      readonly source?: string;
      readonly volumeSnapshots?: {
        readonly storage: {
          readonly apiGroup?: string;
          readonly kind: string;
          readonly name: string;
        };
      };
    };
  };
  readonly replica?: {
    readonly enabled?: boolean;
    readonly source: string;
  };
  readonly externalClusters?: readonly {
    readonly name: string;
    readonly connectionParameters?: Readonly<Record<string, string>>;
    readonly sslKey?: {
      readonly key: string;
      readonly name?: string;
      readonly optional?: boolean;
    };
    readonly sslCert?: {
      readonly key: string;
      readonly name?: string;
      readonly optional?: boolean;
    };
    readonly sslRootCert?: {
      readonly key: string;
      readonly name?: string;
      readonly optional?: boolean;
    };
  }[];
  readonly postgresql?: {
    readonly parameters?: Readonly<Record<string, string>>;
    readonly shared_preload_libraries?: readonly string[];
    readonly pg_hba?: readonly string[];
    readonly enableAlterSystem?: boolean;
  };
  readonly managed?: {
    readonly services?: {
      readonly disabledDefaultServices?: readonly ('rw' | 'r' | 'ro')[];
      readonly additional?: readonly {
        readonly selectorType: 'rw' | 'r' | 'ro';
        readonly serviceTemplate: {
          readonly metadata?: {
            readonly annotations?: Readonly<Record<string, string>>;
            readonly labels?: Readonly<Record<string, string>>;
            readonly name?: string;
          };
          readonly spec?: {
            readonly publishNotReadyAddresses?: boolean;
          };
        };
      }[];
    };
  };
}

export interface ClusterStatus {
  readonly conditions?: readonly {
    readonly lastTransitionTime: string;
    readonly message: string;
    readonly observedGeneration?: number;
    readonly reason: string;
    readonly status: 'True' | 'False' | 'Unknown';
    readonly type: string;
  }[];
  readonly phase?: string;
  readonly phaseReason?: string;
  readonly instances?: number;
  readonly readyInstances?: number;
  readonly instancesStatus?: Readonly<Record<string, readonly string[]>>;
  readonly instanceNames?: readonly string[];
  readonly currentPrimary?: string;
  readonly targetPrimary?: string;
  readonly timelineID?: number;
  readonly healthyPVC?: readonly string[];
  readonly image?: string;
}

export interface VolumeSnapshotSpec {
  readonly source: {
    readonly persistentVolumeClaimName?: string;
  };
  readonly volumeSnapshotClassName?: string;
}

export interface VolumeSnapshotStatus {
  readonly readyToUse?: boolean;
  readonly restoreSize?: number | string;
  readonly creationTime?: string;
  readonly boundVolumeSnapshotContentName?: string;
  readonly error?: {
    readonly message?: string;
    readonly time?: string;
  };
}
