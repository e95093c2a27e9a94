/** All projects that the key reaches, with search, and making a new one. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { Organization, ProjectListItem } from '../api/generated.ts';
import { organizationsQuery, projectsOfPage, projectsQuery, sessionQuery } from '../api/queries.ts';
import { Ago, PageHead } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { SelectField, TextField } from '../ui/field.tsx';
import { count } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/states.tsx';
import { CreateProject } from './create-project.tsx';

export function ProjectsPage() {
  const organizations = useQuery(organizationsQuery);
  return (
    <Loaded query={organizations}>
      {(found) =>
        found[0] === undefined ? <Empty title="This key reaches no organization." /> : <Projects of={found} />
      }
    </Loaded>
  );
}

function Projects({ of: organizations }: { readonly of: readonly Organization[] }) {
  const { q = '', org, create } = useSearch({ from: '/' });
  const navigate = useNavigate({ from: '/' });
  const setCreating = (isOpen: boolean) =>
    navigate({ search: (now) => ({ ...now, create: isOpen ? true : undefined }), replace: !isOpen });
  const orgId = organizations.find(({ id }) => id === org)?.id ?? organizations[0]?.id ?? '';
  const projects = useQuery(projectsQuery(orgId, q));
  const canCreate = useQuery(sessionQuery).data?.key?.kind !== 'project';
  return (
    <>
      <title>Projects · Catnap</title>
      <PageHead title="Projects" lead="Each has branches of its data, and computes that nap when nobody uses them.">
        {canCreate && (
          <Button tone="primary" onClick={() => setCreating(true)}>
            <Icon name="plus" /> New project
          </Button>
        )}
      </PageHead>
      <div className="toolbar">
        <TextField
          label="Search"
          type="search"
          placeholder="Name or id"
          value={q}
          onChange={(value) =>
            navigate({ search: (now) => ({ ...now, q: value === '' ? undefined : value }), replace: true })
          }
        />
        {organizations.length > 1 && (
          <SelectField
            label="Organization"
            value={orgId}
            choices={organizations.map(({ id, name }) => ({ value: id, text: name }))}
            onChange={(value) => navigate({ search: (now) => ({ ...now, org: value }) })}
          />
        )}
      </div>
      <Loaded query={projects}>{(found) => <ProjectList projects={found} search={q} canCreate={canCreate} />}</Loaded>
      {canCreate && create === true && <CreateProject orgId={orgId} onClose={() => setCreating(false)} />}
    </>
  );
}

interface ProjectListProps {
  readonly projects: readonly ProjectListItem[];
  readonly search: string;
  readonly canCreate: boolean;
}

function ProjectList({ projects, search, canCreate }: ProjectListProps) {
  if (projects.length === 0 && search !== '') return <Empty title={`No project has “${search}” in its name or id.`} />;
  if (projects.length === 0) {
    return (
      <Empty title="There is no project yet.">
        {canCreate && <p>Make the first one; its database is ready in about a second.</p>}
      </Empty>
    );
  }
  return (
    <>
      {projects.length === projectsOfPage && <p className="hint">The first {projectsOfPage}; search for others.</p>}
      <ProjectCards projects={projects} />
    </>
  );
}

function ProjectCards({ projects }: { readonly projects: readonly ProjectListItem[] }) {
  return (
    <ul className="project-list">
      {projects.map((project) => (
        <li key={project.id}>
          <Link className="project-card" to="/projects/$projectId" params={{ projectId: project.id }}>
            <strong>{project.name}</strong>
            <code className="soft">{project.id}</code>
            <ProjectState project={project} />
            <span className="meta">
              <span>Postgres {project.pg_version}</span>
              {project.compute_last_active_at === undefined ? (
                <span>not used yet</span>
              ) : (
                <span>
                  used <Ago at={project.compute_last_active_at} />
                </span>
              )}
            </span>
          </Link>
        </li>
      ))}
    </ul>
  );
}

/** How many branches it has, and whether somebody is at work in it. */
function ProjectState({ project }: { readonly project: ProjectListItem }) {
  const { branches_count: branches = 0, endpoints_count: computes = 0, active_endpoints_count: active = 0 } = project;
  return (
    <span className="meta">
      <span>{count(branches, 'branch', 'branches')}</span>
      <span className="state">
        <span className={`dot ${active > 0 ? 'active' : 'idle'}`} />
        {computes === 0 ? 'no compute' : `${active} of ${count(computes, 'compute')} awake`}
      </span>
    </span>
  );
}
