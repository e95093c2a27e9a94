/** A query's plan as a tree: each step with its cost, as a share of the whole, and the rows that it expects. */

export interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Join Type'?: string;
  readonly Filter?: string;
  readonly 'Index Cond'?: string;
  readonly 'Hash Cond'?: string;
  readonly 'Total Cost': number;
  readonly 'Plan Rows': number;
  readonly Plans?: readonly PlanNode[];
}

export function readPlan(text: string): PlanNode {
  const [first] = JSON.parse(text) as { Plan: PlanNode }[];
  if (first === undefined) throw new Error('the plan is empty');
  return first.Plan;
}

export function PlanView({ plan }: { readonly plan: PlanNode }) {
  return (
    <ul className="plan" aria-label="Plan">
      <Step node={plan} total={plan['Total Cost']} />
    </ul>
  );
}

function Step({ node, total }: { readonly node: PlanNode; readonly total: number }) {
  const share = total === 0 ? 0 : Math.round((node['Total Cost'] / total) * 100);
  const condition = node['Index Cond'] ?? node['Hash Cond'] ?? node.Filter;
  return (
    <li>
      <div className="plan-step">
        <strong>{node['Node Type']}</strong>
        {node['Relation Name'] !== undefined && <span>on {node['Relation Name']}</span>}
        {node['Index Name'] !== undefined && <span>using {node['Index Name']}</span>}
        <span className="hint">
          cost {node['Total Cost']}, {node['Plan Rows']} rows
        </span>
        <meter min={0} max={100} value={share} aria-label="Share of the cost" />
        {condition !== undefined && <code>{condition}</code>}
      </div>
      {node.Plans !== undefined && (
        <ul>
          {node.Plans.map((child, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the steps of a plan have no names and do not move.
            <Step key={index} node={child} total={total} />
          ))}
        </ul>
      )}
    </li>
  );
}
