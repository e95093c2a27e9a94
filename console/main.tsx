/** Begins: the theme, a link from the terminal if the address holds one, then the page. */
import './styles/base.css';
import './styles/ui.css';
import './styles/shell.css';
import './styles/pages.css';
import './styles/finding.css';
import './styles/branches.css';
import './styles/history.css';
import './styles/grid.css';
import './styles/sql.css';
import './styles/monitoring.css';
import './styles/diagram.css';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { client } from './api/query-client.ts';
import { router } from './router.tsx';
import { openLink } from './shell/open-link.ts';
import { applyTheme, readTheme } from './ui/theme.ts';

applyTheme(readTheme());

const root = document.getElementById('root');
if (root === null) throw new Error('BUG: the page has no root');
await openLink();
// Pasted into a tab that has the console open already, the link loads nothing anew.
addEventListener('hashchange', () => void openLink());
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
