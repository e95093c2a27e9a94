/** What the Kubernetes driver does not do, in the sentences that people read. `docs/kubernetes.md` lists them. */
import type { Inabilities } from '../../interface/abilities.ts';

export const inabilities = {
  history: 'computes on Kubernetes keep no history yet: a branch can be made of the present alone',
  frozen: 'computes on Kubernetes give no look into the past yet',
  empty_copies: 'computes on Kubernetes make no schema-only branches yet: old values would stay in the files of a copy',
  logs: 'logs of computes on Kubernetes are in the logs of their pods, and not in Catnap yet',
  room: 'on Kubernetes each branch has a volume of its own',
  last_state: 'on Kubernetes nobody can tell what was written between the last look and the end of a server',
} as const satisfies Inabilities;
