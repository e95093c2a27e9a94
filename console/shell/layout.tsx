/** The frame: the sign-in page without a sign-in, else navigation on the left and the page on the right. */
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { useLiveChanges } from '../api/live.ts';
import { loadScript } from '../api/load-script.ts';
import { sessionQuery } from '../api/queries.ts';
import { offline } from '../api/watched-flag.ts';
import { Button } from '../ui/button.tsx';
import { Icon, Logo } from '../ui/icons.tsx';
import { Notices } from '../ui/notices-view.tsx';
import { Failure, Loading } from '../ui/states.tsx';
import { BackupBanner } from './backup-banner.tsx';
import { Breadcrumb } from './breadcrumb.tsx';
import { Sidebar } from './sidebar.tsx';
import { SignIn } from './sign-in.tsx';

const Palette = lazy(async () => ({ default: (await loadScript(() => import('./palette.tsx'))).Palette }));

export function Layout() {
  const session = useQuery(sessionQuery);
  return (
    <>
      {session.data === undefined ? (
        <main className="sign-in">
          {session.error === null ? <Loading /> : <Failure error={session.error} onRetry={() => session.refetch()} />}
        </main>
      ) : session.data.signed_in ? (
        <Frame />
      ) : (
        <SignIn />
      )}
      <Notices />
    </>
  );
}

function Frame() {
  useLiveChanges();
  const [isOpen, setOpen] = useState(false);
  const isOffline = useSyncExternalStore(offline.watch, offline.get);
  const main = useFocusOnNavigation(() => setOpen(false));
  const [isFinding, setFinding] = usePaletteKey();
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <header className="topbar">
        <Link className="brand" to="/">
          <Logo /> Catnap
        </Link>
        <Button tone="quiet" aria-label="Navigation" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Icon name={isOpen ? 'close' : 'menu'} />
        </Button>
      </header>
      <Sidebar isOpen={isOpen} />
      <div>
        {isOffline && (
          <p className="offline" role="status">
            Catnap does not answer. What you see is what it said last; the page goes on when it is back.
          </p>
        )}
        <BackupBanner />
        <Breadcrumb onPalette={() => setFinding(true)} />
        <main className="main" id="main" tabIndex={-1} ref={main}>
          <Outlet />
        </main>
      </div>
      {isFinding && (
        <Suspense>
          <Palette onClose={() => setFinding(false)} />
        </Suspense>
      )}
    </div>
  );
}

/** Ctrl K, or ⌘ K, wherever the keyboard is. */
function usePaletteKey() {
  const [isFinding, setFinding] = useState(false);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== 'k') return;
      event.preventDefault();
      event.stopPropagation();
      // Another dialog keeps what was typed in it.
      setFinding((now) => !now && document.querySelector('dialog[open]') === null);
    };
    // Before the SQL editor, which has a meaning of its own for it.
    addEventListener('keydown', press, { capture: true });
    return () => removeEventListener('keydown', press, { capture: true });
  }, []);
  return [isFinding, setFinding] as const;
}

/** A new page begins at its beginning, for the keyboard and for screen readers too. */
function useFocusOnNavigation(onNavigate: () => void) {
  const main = useRef<HTMLElement>(null);
  const path = useRouterState({ select: (state) => state.location.pathname });
  const last = useRef(path);
  useEffect(() => {
    if (last.current === path) return;
    last.current = path;
    main.current?.focus();
    onNavigate();
  });
  return main;
}
