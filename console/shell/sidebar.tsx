/** Navigation: the account, the project that is open, the theme, and the way out. */
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useSyncExternalStore } from 'react';
import { send } from '../api/client.ts';
import { projectQuery, sessionQuery } from '../api/queries.ts';
import { useAction } from '../forms/action.ts';
import { Button } from '../ui/button.tsx';
import { Icon, Logo } from '../ui/icons.tsx';
import { applyTheme, readTheme, themes, watchTheme } from '../ui/theme.ts';
import { projectPages, usePlace } from './place.ts';

export function Sidebar({ isOpen }: { readonly isOpen: boolean }) {
  const { projectId } = useParams({ strict: false });
  const session = useQuery(sessionQuery).data;
  const isPersonal = session?.key?.kind === 'personal';
  return (
    <aside className={isOpen ? 'sidebar open' : 'sidebar'} aria-label="Navigation">
      <Link className="brand" to="/">
        <Logo /> Catnap
      </Link>
      <nav aria-label="Account">
        <ul className="nav">
          <li>
            <Link to="/" activeOptions={{ exact: true }}>
              <Icon name="grid" /> Projects
            </Link>
          </li>
          {session?.key?.kind !== 'project' && (
            <li>
              <Link to="/keys">
                <Icon name="key" /> API keys
              </Link>
            </li>
          )}
          {isPersonal && (
            <li>
              <Link to="/organization">
                <Icon name="building" /> Organization
              </Link>
            </li>
          )}
          <li>
            <Link to="/deleted">
              <Icon name="trash" /> Deleted
            </Link>
          </li>
          <li>
            <Link to="/about">
              <Icon name="info" /> About
            </Link>
          </li>
        </ul>
      </nav>
      {projectId !== undefined && <ProjectNavigation projectId={projectId} />}
      <div className="sidebar-foot">
        <ThemeChoice />
        <SignOut keyName={session?.key?.name ?? ''} />
      </div>
    </aside>
  );
}

function ProjectNavigation({ projectId }: { readonly projectId: string }) {
  const project = useQuery(projectQuery(projectId)).data;
  const { isBranchPage } = usePlace();
  return (
    <nav aria-label="Project">
      <p className="nav-title">{project?.name ?? projectId}</p>
      <ul className="nav">
        {projectPages.map(({ page, to, text, icon }) => (
          <li key={page}>
            <Link
              to={to}
              params={{ projectId }}
              className={page === '' && isBranchPage ? 'within' : undefined}
              activeOptions={{ exact: true, includeSearch: false }}
            >
              <Icon name={icon} /> {text}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

const themeNames = { system: 'Auto', light: 'Light', dark: 'Dark' } as const;

function ThemeChoice() {
  const theme = useSyncExternalStore(watchTheme, readTheme);
  return (
    <fieldset className="segments" aria-label="Theme">
      {themes.map((name) => (
        <button key={name} type="button" aria-pressed={theme === name} onClick={() => applyTheme(name)}>
          {themeNames[name]}
        </button>
      ))}
    </fieldset>
  );
}

function SignOut({ keyName }: { readonly keyName: string }) {
  const signOut = useAction(() => send<object>('DELETE', '/console/session'), {
    refresh: [],
    // Nothing of what was seen stays in the memory of the page.
    onDone: () => location.assign('/'),
  });
  return (
    <Button
      small
      busy={signOut.isPending}
      title={`Signed in with the key “${keyName}”`}
      onClick={() => signOut.mutate()}
    >
      Sign out
    </Button>
  );
}
