/** What a run waits for, and how long it has taken so far. */
import { useNow } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';

interface RunStateProps {
  readonly since: number;
  readonly isAwake: boolean;
  readonly onCancel: () => void;
}

const tickMs = 100;

export function RunState({ since, isAwake, onCancel }: RunStateProps) {
  const now = useNow(tickMs);
  return (
    <>
      <span className="run-state">
        <span role="status">{isAwake ? 'Running' : 'Waking the compute'}</span>
        {/* Ten times a second is for eyes only. */}
        <span aria-hidden="true"> {(Math.max(0, now - since) / 1_000).toFixed(1)} s</span>
      </span>
      <Button small onClick={onCancel}>
        Cancel
      </Button>
    </>
  );
}
