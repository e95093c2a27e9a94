/** The corner of the page in which notices appear. */
import { useSyncExternalStore } from 'react';
import { Button } from './button.tsx';
import { Icon } from './icons.tsx';
import { dismiss, getNotices, watchNotices } from './notices.ts';

export function Notices() {
  const notices = useSyncExternalStore(watchNotices, getNotices);
  return (
    <section className="notices" aria-live="polite" aria-label="Notices">
      {notices.map((notice) => (
        <div key={notice.id} className={`notice ${notice.tone}`}>
          <p>{notice.text}</p>
          <Button tone="quiet" small aria-label="Dismiss" onClick={() => dismiss(notice.id)}>
            <Icon name="close" />
          </Button>
        </div>
      ))}
    </section>
  );
}
