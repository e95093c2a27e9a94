/** The link that the terminal prints at the first start holds a token behind the #, which signs in once. */

import { send } from '../api/client.ts';
import { sessionQuery } from '../api/queries.ts';
import { client } from '../api/query-client.ts';
import { notify } from '../ui/notices.ts';

export async function openLink(): Promise<void> {
  const link = /^#open=([\w-]+)$/.exec(location.hash)?.[1];
  if (link === undefined) return;
  // Gone from the address and from the history before anything else happens.
  history.replaceState(null, '', location.pathname + location.search);
  try {
    await send('POST', '/console/session', { body: { link } });
    await client.fetchQuery({ ...sessionQuery, staleTime: 0 });
  } catch (error) {
    notify('bad', error instanceof Error ? error.message : 'the link does not work');
  }
}
