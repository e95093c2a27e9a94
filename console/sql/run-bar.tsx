/** What can be done with the text of the editor, and what is being done. */
import type { Endpoint } from '../api/generated.ts';
import { Button } from '../ui/button.tsx';
import { SelectField } from '../ui/field.tsx';
import { Icon } from '../ui/icons.tsx';
import { RunState } from './run-state.tsx';
import { rowLimits } from './use-row-limit.ts';
import type { Mode, Runner } from './use-runner.ts';

interface RunBarProps {
  readonly runner: Runner;
  readonly endpoint: Endpoint;
  readonly isEmpty: boolean;
  /** Only what is selected is run. */
  readonly hasSelection: boolean;
  readonly limit: number;
  readonly onLimit: (limit: number) => void;
  readonly onRun: (mode: Mode) => void;
  readonly onFormat: () => void;
  readonly onShow: (what: 'history' | 'help') => void;
}

export function RunBar(props: RunBarProps) {
  const { runner, endpoint, isEmpty, hasSelection, limit, onLimit, onRun, onFormat, onShow } = props;
  const { runningSince: since } = runner;
  const isOff = isEmpty || since !== null;
  return (
    <div className="workbench-bar">
      <Button
        small
        tone="primary"
        disabled={isOff}
        title={isEmpty ? 'Write a statement first' : undefined}
        onClick={() => onRun('run')}
      >
        <Icon name="play" /> {hasSelection ? 'Run selection' : 'Run'}
      </Button>
      <Button small disabled={isOff} onClick={() => onRun('explain')}>
        Explain
      </Button>
      <Button
        small
        disabled={isOff}
        title="Executes the statement in a transaction that is rolled back"
        onClick={() => onRun('analyze')}
      >
        Analyze
      </Button>
      <Button small tone="quiet" disabled={isEmpty} onClick={onFormat}>
        Format
      </Button>
      <SelectField
        label="Rows"
        value={String(limit)}
        choices={rowLimits.map((rows) => ({
          value: String(rows),
          text: rows === 0 ? 'All' : rows.toLocaleString('en'),
        }))}
        onChange={(value) => onLimit(Number(value))}
      />
      {since !== null && (
        <RunState since={since} isAwake={endpoint.current_state === 'active'} onCancel={runner.cancel} />
      )}
      <span className="bar-end">
        <Button small tone="quiet" onClick={() => onShow('history')}>
          History
        </Button>
        <Button small tone="quiet" onClick={() => onShow('help')}>
          Keyboard
        </Button>
      </span>
    </div>
  );
}
