/** New settings for a running server. What needs a restart is held back, or the operator would restart the server. */
import type { ComputeRef } from '../../interface/driver.ts';
import type { Session } from '../../server/admin-session.ts';
import type { KubernetesClient } from '../client/client.ts';
import { settingsAnnotation } from '../manifests/labels.ts';
import { postgresqlOf } from '../manifests/settings.ts';
import { type Cluster, clusters } from '../objects/kinds.ts';
import type { ComputeServers, FoundServer } from './compute-servers.ts';
import { until } from './patience.ts';
import { givenSettings, namesOfGiven } from './serving.ts';

interface Parts {
  readonly client: KubernetesClient;
  readonly servers: ComputeServers;
}

type Parameters = Readonly<Record<string, string>>;

/** `isWhole`: settings that are not named go. Returns the names of those that wait for a restart. */
export async function reloadSettings(
  { client, servers }: Parts,
  ref: ComputeRef,
  { cluster, generation }: FoundServer,
  settings: Readonly<Record<string, string>>,
  isWhole: boolean,
): Promise<readonly string[]> {
  const wanted = postgresqlOf(settings).parameters ?? {};
  const current = parametersOf(cluster);
  const gone = isWhole ? givenSettings(cluster).filter((name) => name in current && !(name in wanted)) : [];
  const changed = [...Object.keys(wanted).filter((name) => wanted[name] !== current[name]), ...gone];
  if (changed.length === 0) return [];
  const { fixed, loadedAt } = await servers.enter(ref, (sql) => readFacts(sql, changed));
  const now = changed.filter((name) => !fixed.includes(name));
  if (now.length === 0) return [...fixed].sort();
  let before: Parameters = {};
  const written = await client.change(clusters, cluster.metadata.name, (latest) => {
    before = parametersOf(latest);
    const parameters = Object.fromEntries(now.map((name) => [name, wanted[name] ?? null]));
    const left = givenSettings(latest).filter((name) => parameters[name] !== null);
    const names = namesOfGiven(new Set([...left, ...now.filter((name) => name in wanted)]));
    return { metadata: { annotations: { [settingsAnnotation]: names } }, spec: { postgresql: { parameters } } };
  });
  if (written === null) throw new Error(`compute ${ref.endpointId} is not running`);
  const after = parametersOf(written);
  // The server is told to read its files again only if something in them changes, and else a wait would never end: the
  // operator puts its default in place of a setting that is taken away, which may be the same, and another call may
  // have written the same since the look above. The load time was read before all that.
  const arriving = now.filter((name) => before[name] !== after[name]);
  if (arriving.length > 0) {
    await until(`new settings: ${cluster.metadata.name}`, async () => {
      const found = await servers.find(ref);
      if (found?.generation !== generation) throw new Error(`compute ${ref.endpointId} is not running`);
      return servers.enterFound(ref, found, (sql) => haveArrived(sql, loadedAt, arriving, after));
    });
  }
  return [...fixed].sort();
}

const parametersOf = ({ spec }: Cluster): Parameters => spec.postgresql?.parameters ?? {};

async function readFacts(sql: Session, names: readonly string[]) {
  const [read] = await sql<{ at: string }[]>`SELECT pg_conf_load_time()::text AS at`;
  const rows = await sql<{ name: string }[]>`SELECT name FROM pg_settings WHERE context = 'postmaster'`;
  const fixed = new Set(rows.map(({ name }) => name.toLowerCase()));
  return { loadedAt: read?.at ?? '', fixed: names.filter((name) => fixed.has(name.toLowerCase())) };
}

/** The instance manager writes its files and then tells the server, which reads them in its own time. */
async function haveArrived(sql: Session, before: string, names: readonly string[], wanted: Parameters) {
  const [read] = await sql<{ at: string }[]>`SELECT pg_conf_load_time()::text AS at`;
  const lines = await sql<
    { name: string; setting: string }[]
  >`SELECT lower(name) AS name, setting FROM pg_file_settings`;
  const inFiles = new Map(lines.map(({ name, setting }) => [name, setting]));
  const isThere = (name: string) => wanted[name] === undefined || inFiles.get(name.toLowerCase()) === wanted[name];
  return read?.at !== before && names.every(isThere);
}
