/** On top of every page, for the operator: backups fail or fall behind. A key that may not ask sees nothing. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { backupQuery } from '../api/queries.ts';

export function BackupBanner() {
  const { data } = useQuery(backupQuery);
  const [first] = data?.alerts ?? [];
  if (data === undefined || first === undefined) return null;
  const more = data.alerts.length - 1;
  return (
    <p className="offline" role="status">
      {first} {more > 0 && `(and ${more} more)`} <Link to="/about">See the state of backups</Link>
    </p>
  );
}
