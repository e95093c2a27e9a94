/** What runs here: version, driver, Postgres versions, addresses, what is enforced, counts, and a first request. */
import { useQuery } from '@tanstack/react-query';
import type { Installation } from '../api/generated.ts';
import { installationQuery } from '../api/queries.ts';
import { Card, CopyableId, CopyButton, PageHead } from '../ui/bits.tsx';
import { Loaded } from '../ui/states.tsx';
import { BackupCard } from './backup-card.tsx';
import { createProjectRequest } from './snippets.ts';

/** Counts change without anybody's doing. */
const refetchMs = 3_000;

const branchText = {
  reflink: 'share blocks with their source',
  copy: 'are full copies',
  unknown: 'whether they share blocks is not known',
};

export function AboutPage() {
  const installation = useQuery({ ...installationQuery, refetchInterval: refetchMs });
  return (
    <>
      <title>About · Catnap</title>
      <PageHead title="About" lead="This installation of Catnap." />
      <div className="stack narrow">
        <Loaded query={installation}>
          {(found) => (
            <>
              <Facts installation={found} />
              {found.counts !== undefined && <Counts counts={found.counts} />}
              <BackupCard />
              {found.api_url !== undefined && <FirstRequest apiUrl={found.api_url} />}
            </>
          )}
        </Loaded>
        <p>
          <a href="/api/v2/docs">API reference</a> · <a href="/api/v2/openapi.json">OpenAPI document</a>
        </p>
      </div>
    </>
  );
}

function Facts({ installation }: { readonly installation: Installation }) {
  return (
    <Card>
      <dl className="facts">
        <dt>Version</dt>
        <dd>{installation.version}</dd>
        <dt>Driver</dt>
        <dd>{installation.driver}</dd>
        <dt>Postgres</dt>
        <dd>{installation.pg_versions?.join(', ')}</dd>
        <dt>Region</dt>
        <dd>{installation.region_id}</dd>
        <dt>API</dt>
        <dd>
          <CopyableId id={installation.api_url ?? ''} label="the URL of the API" />
        </dd>
        <dt>Database port</dt>
        <dd>{installation.database_port}</dd>
        <dt>Sizes</dt>
        <dd>
          {installation.limits_enforced === true
            ? 'computes are held to their sizes'
            : 'not enforced: control groups are not permitted here'}
        </dd>
        <dt>Branches</dt>
        <dd>{branchText[installation.storage_method ?? 'unknown']}</dd>
        <dt>Temporary files</dt>
        <dd>
          {installation.temporary_disk_enforcement === 'disk'
            ? 'a bounded disk for each compute'
            : 'bounded by Postgres, for each session'}
        </dd>
      </dl>
    </Card>
  );
}

function Counts({ counts }: { readonly counts: NonNullable<Installation['counts']> }) {
  return (
    <Card title="In use">
      <dl className="facts">
        <dt>Projects</dt>
        <dd>{counts.projects}</dd>
        <dt>Computes active</dt>
        <dd>{counts.endpoints.active}</dd>
        <dt>Computes suspended</dt>
        <dd>{counts.endpoints.idle}</dd>
        <dt>Computes not started yet</dt>
        <dd>{counts.endpoints.init}</dd>
      </dl>
    </Card>
  );
}

function FirstRequest({ apiUrl }: { readonly apiUrl: string }) {
  const request = createProjectRequest(apiUrl);
  return (
    <Card
      title="Create a project with the API"
      actions={
        <CopyButton text={request} label="Copy the request">
          Copy
        </CopyButton>
      }
    >
      <div className="stack">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach it. */}
        <pre className="code-block" tabIndex={0}>
          {request}
        </pre>
        <p className="hint">
          The reply has a connection string that works in any Postgres client. <code>catnap keys show</code> prints the
          first API key, which is in the file <code>api-key</code> of the data home.
        </p>
      </div>
    </Card>
  );
}
