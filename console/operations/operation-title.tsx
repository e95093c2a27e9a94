/** An operation by name: what it does or did, and a link to what it is about. */
import { Link } from '@tanstack/react-router';
import type { Operation } from '../api/generated.ts';
import { consequenceOf, type Named, subjectOf, titleOf } from './words.ts';

export function OperationTitle({ operation, named }: { readonly operation: Operation; readonly named: Named }) {
  const subject = subjectOf(operation, named);
  const id = operation.endpoint_id ?? operation.branch_id;
  return (
    <>
      {titleOf(operation, subject)}{' '}
      {subject === undefined
        ? id !== undefined && <code className="soft">{id}</code>
        : operation.action !== 'create_timeline' && (
            <Link
              className="subject"
              to="/projects/$projectId/branches/$branchId"
              params={{ projectId: operation.project_id, branchId: subject.branchId }}
            >
              {subject.name}
            </Link>
          )}
    </>
  );
}

/** The cause first, then what it means. */
export function OperationTrouble({ operation }: { readonly operation: Operation }) {
  const consequence = consequenceOf(operation);
  if (operation.error === undefined && consequence === '') return null;
  return (
    <span className="hint trouble">
      {operation.error !== undefined && <span className="cause">{sentence(operation.error)}</span>} {consequence}
    </span>
  );
}

/** The API begins in lower case and ends without a full stop. */
function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
