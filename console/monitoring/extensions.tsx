/** The extensions that a database has, and those that it could have; installing and removing shows its SQL first. */
import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, at } from '../api/client.ts';
import type { ListProjectExtensionsReply } from '../api/generated.ts';
import { runSql } from '../api/sql.ts';
import { useConfirm } from '../forms/use-form.ts';
import { quoteName } from '../grid/formats.ts';
import { Badge, Card } from '../ui/bits.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { TextField } from '../ui/field.tsx';
import { count } from '../ui/format.ts';
import { Empty, Loaded } from '../ui/states.tsx';
import { RowAction, RowActions, Table } from '../ui/table.tsx';
import { askedOnce, type DatabaseTarget } from './on-database.tsx';

interface Extension {
  readonly name: string;
  readonly available: string;
  readonly installed: string | null;
  readonly schema: string | null;
  readonly comment: string;
}

const query = `
  select x.name, x.default_version, x.installed_version, n.nspname, x.comment
  from pg_catalog.pg_available_extensions x
  left join pg_catalog.pg_extension e on e.extname = x.name
  left join pg_catalog.pg_namespace n on n.oid = e.extnamespace
  order by x.installed_version is null, x.name`;

async function readExtensions(uri: string): Promise<readonly Extension[]> {
  const { rows } = await runSql(uri, query, { readOnly: true });
  return rows.map(([name, available, installed, schema, comment]) => ({
    name: name ?? '',
    available: available ?? '',
    installed: installed ?? null,
    schema: schema ?? null,
    comment: comment ?? '',
  }));
}

const extensionsQuery = (uri: string) =>
  queryOptions({ queryKey: ['extensions', uri], queryFn: () => readExtensions(uri), ...askedOnce });

/** What the machine has and does not offer, with the reason. */
const withheldQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['withheld-extensions', projectId],
    queryFn: async () => {
      const { extensions } = await api<ListProjectExtensionsReply>('GET', at`/projects/${projectId}/extensions`);
      return extensions.filter(({ offered }) => !offered);
    },
    ...askedOnce,
  });

type Withheld = ListProjectExtensionsReply['extensions'][number];

type Change = { readonly verb: 'install' | 'update' | 'remove'; readonly extension: Extension };

export function Extensions({ endpoint, uri, database, choice }: DatabaseTarget) {
  const extensions = useQuery(extensionsQuery(uri));
  const { data: withheld = [] } = useQuery(withheldQuery(endpoint.project_id));
  const isWithheld = (name: string) => withheld.some((one) => one.name === name);
  const [words, setWords] = useState('');
  const [change, setChange] = useState<Change | null>(null);
  return (
    <>
      <div className="view-bar">
        {choice}
        <TextField label="Search" type="search" value={words} onChange={setWords} />
        {extensions.data !== undefined && (
          <p className="hint">
            {extensions.data.filter(({ installed }) => installed !== null).length} of{' '}
            {count(extensions.data.length, 'extension')} installed
          </p>
        )}
      </div>
      <Loaded query={extensions} lines={8}>
        {(found) => {
          const wanted = words.trim().toLowerCase();
          const fits = ({ name, comment }: { name: string; comment: string }) =>
            `${name} ${comment}`.toLowerCase().includes(wanted);
          // One that is installed can be removed, whether it is offered or not.
          const shown = found.filter((one) => fits(one) && (one.installed !== null || !isWithheld(one.name)));
          const others = withheld.filter(fits);
          if (shown.length + others.length === 0) {
            return <Empty title={`No extension has “${words}” in its name or purpose.`} />;
          }
          return (
            <>
              {shown.length > 0 && <ExtensionTable extensions={shown} onChange={setChange} />}
              {others.length > 0 && <WithheldTable extensions={others} />}
            </>
          );
        }}
      </Loaded>
      {change !== null && (
        <ChangeDialog uri={uri} database={database} change={change} onClose={() => setChange(null)} />
      )}
    </>
  );
}

interface ExtensionTableProps {
  readonly extensions: readonly Extension[];
  readonly onChange: (change: Change) => void;
}

function ExtensionTable({ extensions, onChange }: ExtensionTableProps) {
  return (
    <div className="card dense">
      <Table label="Extensions" columns={['Name', 'Version', 'Schema', 'Purpose']} numbers={['Version']} hasActions>
        {extensions.map((extension) => {
          const { name, installed, available, schema, comment } = extension;
          const isOld = installed !== null && installed !== available;
          return (
            <tr key={name}>
              <td>
                <code>{name}</code> {installed !== null && <Badge tone="good">installed</Badge>}
              </td>
              <td className="number">
                {installed ?? available}
                {isOld && <span className="hint"> ({available} is there)</span>}
              </td>
              <td>{schema}</td>
              <td className="hint">{comment}</td>
              <RowActions>
                {isOld && (
                  <RowAction aria-label={`Update ${name}`} onClick={() => onChange({ verb: 'update', extension })}>
                    Update
                  </RowAction>
                )}
                {installed === null ? (
                  <RowAction aria-label={`Install ${name}`} onClick={() => onChange({ verb: 'install', extension })}>
                    Install
                  </RowAction>
                ) : (
                  // PL/pgSQL is part of every database, and its owner is not the database's.
                  name !== 'plpgsql' && (
                    <RowAction aria-label={`Remove ${name}`} onClick={() => onChange({ verb: 'remove', extension })}>
                      Remove
                    </RowAction>
                  )
                )}
              </RowActions>
            </tr>
          );
        })}
      </Table>
    </div>
  );
}

function WithheldTable({ extensions }: { readonly extensions: readonly Withheld[] }) {
  return (
    <Card title="Not offered">
      <Table label="Extensions that are not offered" columns={['Name', 'Version', 'Why']} numbers={['Version']}>
        {extensions.map(({ name, version, reason }) => (
          <tr key={name}>
            <td>
              <code>{name}</code>
            </td>
            <td className="number">{version}</td>
            <td className="hint">{reason}</td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

/** What an extension needs is installed along with it; what needs it keeps it from being removed. */
function sqlOf({ verb, extension: { name } }: Change): string {
  if (verb === 'install') return `create extension ${quoteName(name)} cascade`;
  return verb === 'update' ? `alter extension ${quoteName(name)} update` : `drop extension ${quoteName(name)}`;
}

const words = {
  install: { title: 'Install', done: 'is installed' },
  update: { title: 'Update', done: 'is updated' },
  remove: { title: 'Remove', done: 'is removed' },
} as const;

interface ChangeDialogProps {
  readonly uri: string;
  readonly database: string;
  readonly change: Change;
  readonly onClose: () => void;
}

function ChangeDialog({ uri, database, change, onClose }: ChangeDialogProps) {
  const client = useQueryClient();
  const { title, done } = words[change.verb];
  const { name } = change.extension;
  const form = useConfirm({
    send: () => runSql(uri, sqlOf(change)),
    refresh: [['extensions', uri]],
    done: `${name} ${done}.`,
    onDone: () => {
      // The next look at the statements finds out.
      client.removeQueries({ queryKey: ['top-queries', uri] });
      onClose();
    },
  });
  return (
    <FormDialog
      title={`${title} ${name}`}
      submit={title}
      tone={change.verb === 'remove' ? 'danger' : 'primary'}
      form={form}
      onClose={onClose}
    >
      <p>This runs in the database {database}, as its owner:</p>
      <pre className="code-block wrapped">{sqlOf(change)};</pre>
    </FormDialog>
  );
}
