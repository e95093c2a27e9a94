/** Roles and databases of a branch. */
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { BranchSelect, WithBranch } from '../target/branch-choice.tsx';
import { PageHead } from '../ui/bits.tsx';
import { Databases } from './databases.tsx';
import { Roles } from './roles.tsx';

export function DataPage() {
  const { projectId } = useParams({ from: '/projects/$projectId/data' });
  const { branch } = useSearch({ from: '/projects/$projectId/data' });
  const navigate = useNavigate({ from: '/projects/$projectId/data' });
  return (
    <>
      <title>Roles and databases · Catnap</title>
      <PageHead
        title="Roles and databases"
        lead="Each branch has its own. What is created by SQL appears here once Catnap has read the compute’s catalogue."
      />
      <WithBranch projectId={projectId} branchId={branch}>
        {(chosen, branches) => (
          <>
            <div className="toolbar">
              <BranchSelect
                branches={branches}
                value={chosen.id}
                onChange={(value) => navigate({ search: { branch: value } })}
              />
            </div>
            <div className="grid-two">
              <Roles branch={chosen} />
              <Databases branch={chosen} />
            </div>
          </>
        )}
      </WithBranch>
    </>
  );
}
