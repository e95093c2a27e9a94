/** What is different in the tables of two branches, as lines that came and went. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { api, at, withQuery } from '../api/client.ts';
import type { Branch, GetProjectBranchSchemaComparisonReply } from '../api/generated.ts';
import { databasesQuery } from '../api/queries.ts';
import { Card } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { SelectField } from '../ui/field.tsx';
import { Empty, Loaded } from '../ui/states.tsx';
import { diffLines } from './diff-lines.ts';

/** What is compared, as the address holds it. */
export interface DiffSearch {
  readonly against?: string | undefined;
  readonly database?: string | undefined;
  /** Somebody has asked for the difference, which is then shown. */
  readonly compared?: true | undefined;
}

interface SchemaDiffProps {
  readonly branch: Branch;
  readonly branches: readonly Branch[];
}

export function SchemaDiff({ branch, branches }: SchemaDiffProps) {
  const search = useSearch({ from: '/projects/$projectId/branches/$branchId' });
  const navigate = useNavigate({ from: '/projects/$projectId/branches/$branchId' });
  const choose = (choice: DiffSearch) =>
    navigate({ search: { ...search, ...choice }, replace: true, resetScroll: false });
  const others = branches.filter(({ id }) => id !== branch.id);
  const databases = useQuery(databasesQuery(branch.project_id, branch.id)).data ?? [];
  const idOf = (wanted: string | undefined) => others.find(({ id }) => id === wanted)?.id;
  const base = idOf(search.against) ?? idOf(branch.parent_id) ?? others[0]?.id;
  const name = (databases.find((one) => one.name === search.database) ?? databases[0])?.name;
  if (base === undefined) return null;
  return (
    <Card title="Schema diff">
      <div className="toolbar">
        <SelectField
          label="Against"
          value={base}
          choices={others.map((other) => ({ value: other.id, text: other.name }))}
          onChange={(against) => choose({ against })}
        />
        {databases.length > 1 && (
          <SelectField
            label="Database"
            value={name ?? ''}
            choices={databases.map((one) => ({ value: one.name, text: one.name }))}
            onChange={(database) => choose({ database })}
          />
        )}
        {search.compared !== true && (
          <Button disabled={name === undefined} onClick={() => choose({ against: base, compared: true })}>
            Compare
          </Button>
        )}
      </div>
      {search.compared === true && name !== undefined ? (
        <Diff branch={branch} baseId={base} database={name} />
      ) : (
        <p className="hint">Comparing wakes both computes.</p>
      )}
    </Card>
  );
}

interface DiffProps {
  readonly branch: Branch;
  readonly baseId: string;
  readonly database: string;
}

function Diff({ branch, baseId, database }: DiffProps) {
  const path = at`/projects/${branch.project_id}/branches/${branch.id}/compare_schema`;
  const diff = useQuery({
    queryKey: ['diff', branch.id, baseId, database],
    queryFn: () =>
      api<GetProjectBranchSchemaComparisonReply>('GET', withQuery(path, { base_branch_id: baseId, db_name: database })),
    gcTime: 0,
    refetchOnWindowFocus: false,
    retry: false,
  });
  return (
    <>
      <Loaded query={diff} lines={6}>
        {({ diff: text }) => (text === '' ? <Empty title="Both have the same schema." /> : <DiffLines text={text} />)}
      </Loaded>
      <p className="hint">
        <Button small busy={diff.isFetching} onClick={() => diff.refetch()}>
          Compare again
        </Button>
      </p>
    </>
  );
}

const kinds: Readonly<Record<string, string>> = { '+': 'added', '-': 'removed', '@': 'place' };

function DiffLines({ text }: { readonly text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach it.
    <pre className="code-block diff" tabIndex={0}>
      {diffLines(text).map((line, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name.
        <span key={index} className={kinds[line[0] ?? '']}>
          {line}
          {'\n'}
        </span>
      ))}
    </pre>
  );
}
