/** Choosing a branch on pages that show one branch at a time; the address holds the choice. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Branch } from '../api/generated.ts';
import { branchesQuery } from '../api/queries.ts';
import { SelectField } from '../ui/field.tsx';
import { Empty, Loaded } from '../ui/states.tsx';

interface WithBranchProps {
  readonly projectId: string;
  /** From the address; the default branch without one. */
  readonly branchId: string | undefined;
  readonly children: (branch: Branch, branches: readonly Branch[]) => ReactNode;
}

export function WithBranch({ projectId, branchId, children }: WithBranchProps) {
  const branches = useQuery(branchesQuery(projectId));
  return (
    <Loaded query={branches}>
      {(found) => {
        const branch = found.find(({ id }) => id === branchId) ?? found.find((one) => one.default) ?? found[0];
        return branch === undefined ? <Empty title="The project has no branch yet." /> : children(branch, found);
      }}
    </Loaded>
  );
}

interface BranchSelectProps {
  readonly branches: readonly Branch[];
  readonly value: string;
  readonly onChange: (branchId: string) => void;
}

export function BranchSelect({ branches, value, onChange }: BranchSelectProps) {
  return (
    <SelectField
      label="Branch"
      value={value}
      choices={branches.map(({ id, name }) => ({ value: id, text: name }))}
      onChange={onChange}
    />
  );
}
