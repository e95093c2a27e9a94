/** What runs here: version, driver, Postgres versions, addresses, and what is enforced. */
import { useQuery } from '@tanstack/react-query';
import { installationQuery } from '../api/queries.ts';
import { Card, CopyableId, PageHead } from '../ui/bits.tsx';
import { Loaded } from '../ui/states.tsx';

export function AboutPage() {
  const installation = useQuery(installationQuery);
  return (
    <>
      <title>About · Catnap</title>
      <PageHead title="About" lead="This installation of Catnap." />
      <div className="stack narrow">
        <Card>
          <Loaded query={installation}>
            {(found) => (
              <dl className="facts">
                <dt>Version</dt>
                <dd>{found.version}</dd>
                <dt>Driver</dt>
                <dd>{found.driver}</dd>
                <dt>Postgres</dt>
                <dd>{found.pg_versions?.join(', ')}</dd>
                <dt>Region</dt>
                <dd>{found.region_id}</dd>
                <dt>API</dt>
                <dd>
                  <CopyableId id={found.api_url ?? ''} label="the URL of the API" />
                </dd>
                <dt>Database port</dt>
                <dd>{found.database_port}</dd>
                <dt>Sizes</dt>
                <dd>
                  {found.limits_enforced === true
                    ? 'computes are held to their sizes'
                    : 'not enforced: control groups are not permitted here'}
                </dd>
                <dt>Branches</dt>
                <dd>{found.storage_method === 'reflink' ? 'share blocks with their source' : 'are full copies'}</dd>
                <dt>Temporary files</dt>
                <dd>
                  {found.temporary_disk_enforcement === 'disk'
                    ? 'a bounded disk for each compute'
                    : 'bounded by Postgres, for each session'}
                </dd>
                <dt>Projects</dt>
                <dd>{found.counts?.projects}</dd>
                <dt>Computes awake</dt>
                <dd>{found.counts?.endpoints.active}</dd>
                <dt>Computes asleep</dt>
                <dd>{found.counts?.endpoints.idle}</dd>
              </dl>
            )}
          </Loaded>
        </Card>
        <p>
          <a href="/api/v2/docs">API reference</a> · <a href="/api/v2/openapi.json">OpenAPI document</a> ·{' '}
          <a href="/status">Status page</a>
        </p>
      </div>
    </>
  );
}
