/** A query's plan, with what each step takes itself: what its own steps take is not counted twice. */

export interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly Alias?: string;
  readonly 'Index Name'?: string;
  readonly 'Join Type'?: string;
  readonly Strategy?: string;
  readonly Operation?: string;
  readonly Filter?: string;
  readonly 'Index Cond'?: string;
  readonly 'Hash Cond'?: string;
  readonly 'Merge Cond'?: string;
  readonly 'Join Filter'?: string;
  readonly 'Sort Key'?: readonly string[];
  readonly 'Group Key'?: readonly string[];
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Total Cost': number;
  readonly 'Plan Rows': number;
  readonly 'Actual Total Time'?: number;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly Plans?: readonly PlanNode[];
}

export interface Step {
  readonly title: string;
  /** What it works on: a table, an index. */
  readonly on: string;
  readonly conditions: readonly string[];
  /** Of the whole plan, from 0 to 1: time where it was measured, otherwise cost. */
  readonly share: number;
  readonly selfMs: number | null;
  readonly selfCost: number;
  /** Of all its runs together. */
  readonly rows: number | null;
  readonly expectedRows: number;
  readonly loops: number;
  /** By which factor there were more rows than expected, or fewer if it is below 1; null where it was good enough. */
  readonly misestimate: number | null;
  readonly steps: readonly Step[];
}

export interface Plan {
  readonly root: Step;
  readonly isMeasured: boolean;
  readonly planningMs: number | null;
  readonly executionMs: number | null;
}

interface Explained {
  readonly Plan: PlanNode;
  readonly 'Planning Time'?: number;
  readonly 'Execution Time'?: number;
}

export function readPlan(text: string): Plan {
  const [first] = JSON.parse(text) as Explained[];
  if (first === undefined) throw new Error('the plan is empty');
  const { Plan: node } = first;
  const isMeasured = node['Actual Total Time'] !== undefined;
  const whole = isMeasured ? timeOf(node) : node['Total Cost'];
  return {
    root: stepOf(node, whole, isMeasured),
    isMeasured,
    planningMs: first['Planning Time'] ?? null,
    executionMs: first['Execution Time'] ?? null,
  };
}

/** Times and rows are an average of the runs. */
const timeOf = (node: PlanNode) => (node['Actual Total Time'] ?? 0) * (node['Actual Loops'] ?? 1);

const sumOf = (nodes: readonly PlanNode[], read: (node: PlanNode) => number) =>
  nodes.reduce((sum, node) => sum + read(node), 0);

/** Below that nobody chooses another plan because of it. */
const misestimateMin = 10;

function stepOf(node: PlanNode, whole: number, isMeasured: boolean): Step {
  const children = node.Plans ?? [];
  const loops = node['Actual Loops'] ?? 1;
  const selfMs = isMeasured ? Math.max(0, timeOf(node) - sumOf(children, timeOf)) : null;
  const selfCost = Math.max(0, node['Total Cost'] - sumOf(children, (child) => child['Total Cost']));
  const actual = node['Actual Rows'];
  const factor = actual === undefined || loops === 0 ? 1 : Math.max(actual, 1) / Math.max(node['Plan Rows'], 1);
  return {
    title: titleOf(node),
    on: [node['Relation Name'], node['Index Name'] && `using ${node['Index Name']}`].filter(Boolean).join(' '),
    conditions: conditionsOf(node),
    share: whole === 0 ? 0 : Math.min(1, (selfMs ?? selfCost) / whole),
    selfMs,
    selfCost,
    rows: actual === undefined ? null : Math.round(actual * loops),
    expectedRows: node['Plan Rows'],
    loops,
    misestimate: factor >= misestimateMin || factor <= 1 / misestimateMin ? factor : null,
    steps: children.map((child) => stepOf(child, whole, isMeasured)),
  };
}

function titleOf(node: PlanNode): string {
  const { 'Node Type': type, 'Join Type': join, Strategy: strategy, Operation: operation } = node;
  if (operation !== undefined && type === 'ModifyTable') return operation;
  if (join !== undefined && join !== 'Inner') return type.replace(/ ?(Join|$)/, ` ${join} Join`);
  return type === 'Aggregate' && strategy !== undefined && strategy !== 'Plain' ? `${strategy} ${type}` : type;
}

function conditionsOf(node: PlanNode): string[] {
  const removed = node['Rows Removed by Filter'];
  const named: readonly (readonly [string, string | undefined])[] = [
    ['', node['Index Cond'] ?? node['Hash Cond'] ?? node['Merge Cond']],
    ['join filter ', node['Join Filter']],
    [
      'filter ',
      node.Filter && `${node.Filter}${removed ? `, which removed ${removed.toLocaleString('en')} rows` : ''}`,
    ],
    ['sort by ', node['Sort Key']?.join(', ')],
    ['group by ', node['Group Key']?.join(', ')],
  ];
  return named.flatMap(([word, text]) => (text === undefined ? [] : [`${word}${text}`]));
}
