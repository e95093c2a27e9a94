/** Where one is, on top of every page: organization, project and branch, each a way to another one. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { organizationsQuery, projectQuery, projectsQuery } from '../api/queries.ts';
import { Icon } from '../ui/icons.tsx';
import { Picker, type PickerItem } from '../ui/picker.tsx';
import { PopoverButton } from '../ui/popover.tsx';
import { type Place, usePlace, useWays } from './place.ts';

export function Breadcrumb({ onPalette }: { readonly onPalette: () => void }) {
  const place = usePlace();
  return (
    <div className="crumb-bar">
      <nav aria-label="Breadcrumb">
        <ol className="crumbs">
          <OrganizationCrumb place={place} />
          {place.projectId !== undefined && <ProjectCrumb projectId={place.projectId} place={place} />}
          {place.projectId !== undefined && <BranchCrumb place={place} />}
        </ol>
      </nav>
      <button type="button" className="palette-button" aria-keyshortcuts="Control+K Meta+K" onClick={onPalette}>
        <span className="palette-word">Go to</span> <kbd>{isMac ? '⌘' : 'Ctrl'} K</kbd>
      </button>
    </div>
  );
}

const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);

interface CrumbProps {
  /** What it is, for the button's name. */
  readonly kind: string;
  readonly text: string;
  readonly link?: ReactNode;
  readonly items: readonly PickerItem[];
}

/** The name leads to the thing itself, the button beside it to others of its kind. */
function Crumb({ kind, text, link, items }: CrumbProps) {
  const label = `Switch ${kind}`;
  const arrows = <Icon name="switch" />;
  const asButton = (
    <>
      <span className="crumb-text">{text}</span> {arrows}
    </>
  );
  return (
    <li className="crumb">
      {link}
      <PopoverButton
        label={link === undefined ? `${label}: ${text}` : label}
        className="crumb-button"
        text={link === undefined ? asButton : arrows}
      >
        {(close) => <Picker label={`Find a ${kind}`} items={items} onDone={close} />}
      </PopoverButton>
    </li>
  );
}

function OrganizationCrumb({ place }: { readonly place: Place }) {
  const organizations = useQuery(organizationsQuery).data ?? [];
  const project = useQuery({ ...projectQuery(place.projectId ?? ''), enabled: place.projectId !== undefined }).data;
  const { toOrganization } = useWays(place);
  const shown = organizations.find(({ id }) => id === project?.org_id) ?? organizations[0];
  if (shown === undefined) return null;
  return (
    <Crumb
      kind="organization"
      text={shown.name}
      link={
        <Link className="crumb-text" to="/" search={{ org: organizations.length > 1 ? shown.id : undefined }}>
          {shown.name}
        </Link>
      }
      items={organizations.map(({ id, name }) => ({
        id,
        title: name,
        isCurrent: id === shown.id,
        onSelect: () => toOrganization(id),
      }))}
    />
  );
}

function ProjectCrumb({ projectId, place }: { readonly projectId: string; readonly place: Place }) {
  const project = useQuery(projectQuery(projectId)).data;
  const organizations = useQuery(organizationsQuery).data ?? [];
  const orgId = project?.org_id ?? organizations[0]?.id ?? '';
  const projects = useQuery({ ...projectsQuery(orgId, ''), enabled: orgId !== '' }).data ?? [];
  const { toProject } = useWays(place);
  const name = project?.name ?? projectId;
  return (
    <Crumb
      kind="project"
      text={name}
      link={
        <Link className="crumb-text" to="/projects/$projectId" params={{ projectId }} search={{}}>
          {name}
        </Link>
      }
      items={projects.map((one) => ({
        id: one.id,
        title: one.name,
        hint: one.id,
        isCurrent: one.id === projectId,
        onSelect: () => toProject(one.id),
      }))}
    />
  );
}

function BranchCrumb({ place }: { readonly place: Place }) {
  const { projectId = '', branches, branch, isBranchPage } = place;
  const { toBranch } = useWays(place);
  if (branches.length === 0) return null;
  const link =
    branch === undefined ? undefined : (
      <Link
        className="crumb-text"
        to="/projects/$projectId/branches/$branchId"
        params={{ projectId, branchId: branch.id }}
        aria-current={isBranchPage ? 'page' : undefined}
      >
        {branch.name}
      </Link>
    );
  return (
    <Crumb
      kind="branch"
      text={branch?.name ?? 'All branches'}
      {...(link === undefined ? {} : { link })}
      items={branches.map(({ id, name, default: isDefault }) => ({
        id,
        title: name,
        ...(isDefault ? { hint: 'default' } : {}),
        isCurrent: id === branch?.id,
        onSelect: () => toBranch(id),
      }))}
    />
  );
}
