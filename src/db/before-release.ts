/**
 * The migrations from before the first release, when numbers had gaps and one set served both products. They were
 * replaced by sets that make the same schema. A system database in which exactly these were applied is adopted: the
 * migrations that replace them are recorded as applied, and not run.
 */
interface AppliedMigration {
  readonly name: string;
  readonly checksum: string;
}

const beforeRelease: readonly (readonly [name: string, checksum: string])[] = [
  ['0001-foundation.sql', '34c7b2c5fb0c0e28f84a5be9bbff455b4e092b1cff606219afbe7e8cff4749da'],
  ['0002-work-seen.sql', 'e5d98630fcc64d622f8eb35c22e81524c8b6fb786b1d65c8560d1fa7fe12bf83'],
  ['0003-stack-provider.sql', '165c3d80fd298b5b3fe0b2da190622df9921a0fa8debcfce4cf284ebf81cfc61'],
  ['0005-auth-integrations.sql', '6b514df7dd9646c190ab62ffd6faad93f20ba44bf5ec0dd0f02d9239f1c2debe'],
  ['0009-branch-restore.sql', 'ba39717584892ae2af0fc5cb6b1d555d6e16239eb5d33455c01fc0ad606c1219'],
  ['0010-sizes-and-usage.sql', '3a0ae3a96c2f64a07b51ae73e2feb954a09e0884ea75a762ff8f42252c0b3bfe'],
  ['0011-console.sql', 'de83eae6f8762d94b28852489b97e106a1e023b0a39010e1a272116eff8b4e8c'],
  ['0012-catalog-kept.sql', '332f80c3960ba5aae6a1902a221cf48416c6ea85355f7aeb23d8224b260811fe'],
  ['0017-written-bytes.sql', 'e39df8e8a7f58ae67d0cf17b3ac1c17af388c3b87da3ee683edc513598a89ef8'],
];

/** The last migration of each set that makes what was there already; later ones are run as usual. */
export const lastVersionsAdopted: Readonly<Record<string, number>> = { platform: 4, 'auth-provider': 1 };

/** First steps of operations that have another name since: work that was queued before goes on under the new one. */
export const stepsRenamed = [
  { job: 'create_branch', before: 'read_parent', now: 'copy' },
  { job: 'apply_config', before: 'look', now: 'observe' },
  { job: 'create_auth_integration', before: 'look', now: 'resume' },
] as const;

export function isBeforeRelease(applied: readonly AppliedMigration[]): boolean {
  return (
    applied.length === beforeRelease.length &&
    beforeRelease.every(([name, checksum], at) => applied[at]?.name === name && applied[at].checksum === checksum)
  );
}
