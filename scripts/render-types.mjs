/**
 * TypeScript types for clients of the API, from its OpenAPI document, and for objects of Kubernetes, from the schemas of
 * their definitions. Knows the part of JSON Schema that these use, and refuses the rest. Pure; `generate.mjs` writes the
 * result.
 */

const lineMax = 120;

/** Replies that the commands read. */
const cliTypes = [
  'Installation',
  'ConsoleLink',
  'ListProjectsReply',
  'GetProjectReply',
  'GetProjectEndpointReply',
  'ListProjectBranchDatabasesReply',
  'ListProjectBranchRolesReply',
  'GetConnectionURIReply',
  'ListApiKeysReply',
  'CreateApiKeyReply',
  'RevokeApiKeyReply',
  'GetCurrentUserOrganizationsReply',
  'UpdateOrganizationReply',
  'ListOutboxReply',
  'ListDeletedReply',
  'ListProjectBranchesReply',
  'ListSnapshotsReply',
  'CreateSnapshotReply',
  'RestoreSnapshotReply',
  'FinalizeRestoreBranchReply',
  'GetSnapshotScheduleReply',
  'GetBackupReply',
  'CreateProjectReply',
  'UpdateProjectReply',
  'DeleteProjectReply',
  'GetProjectBranchReply',
  'CreateProjectBranchReply',
  'UpdateProjectBranchReply',
  'DeleteProjectBranchReply',
  'SetDefaultProjectBranchReply',
  'RestoreProjectBranchReply',
  'GetProjectBranchHistoryReply',
  'GetProjectBranchSchemaReply',
  'GetProjectBranchSchemaComparisonReply',
  'ListProjectEndpointsReply',
  'CreateProjectEndpointReply',
  'UpdateProjectEndpointReply',
  'ListProjectEndpointLogsReply',
  'CreateProjectBranchDatabaseReply',
  'CreateProjectBranchRoleReply',
  'GetProjectBranchRolePasswordReply',
  'ListProjectOperationsReply',
  'GetProjectOperationReply',
  'GetAuthDetailsReply',
  'ResetProjectBranchRolePasswordReply',
  'ListProjectBranchRoleVerifiersReply',
  'UpdateProjectBranchDatabaseReply',
];

/** All of it: nearly every operation is called, and types cost browsers nothing. */
export function renderConsoleTypes(document, unversioned) {
  return renderTypes({ ...namedSchemas(document), ...unversioned });
}

export function renderCliTypes(document, unversioned) {
  return renderTypes({ ...namedSchemas(document), ...unversioned }, cliTypes);
}

/** `kinds` as `cut-crds.mjs` writes them: of each kind what is asked for and what is reported. */
export function renderKubernetesTypes(kinds) {
  const declarations = Object.entries(kinds).flatMap(([kind, { spec, status }]) => [
    declaration(`${kind}Spec`, spec),
    declaration(`${kind}Status`, status),
  ]);
  const header = '/** Types of objects, from `schemas.json` beside it. Written by `npm run generate`; do not edit. */';
  return `${[header, ...declarations].join('\n\n')}\n`;
}

/** Every schema that has a name, and the reply of each operation as `<OperationId>Reply`. */
function namedSchemas(document) {
  const replies = Object.values(document.paths)
    .flatMap((methods) => Object.values(methods))
    .flatMap((operation) => {
      const [, reply] = Object.entries(operation.responses).find(([status]) => status.startsWith('2')) ?? [];
      const schema = reply?.content?.['application/json']?.schema;
      return schema === undefined ? [] : [[replyName(operation.operationId), schema]];
    });
  return { ...document.components.schemas, ...Object.fromEntries(replies) };
}

const replyName = (operationId) => `${operationId[0].toUpperCase()}${operationId.slice(1)}Reply`;

/** One declaration for each schema; with `names`, for those and for what they refer to. */
function renderTypes(schemas, names = Object.keys(schemas)) {
  const wanted = withReferences(schemas, names);
  const declarations = Object.entries(schemas)
    .filter(([name]) => wanted.has(name))
    .map(([name, schema]) => declaration(name, schema));
  const header = '/** Types of the API. Written by `npm run generate` from the OpenAPI document; do not edit. */';
  return `${[header, ...declarations].join('\n\n')}\n`;
}

function withReferences(schemas, names) {
  const wanted = new Set();
  const queue = [...names];
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (wanted.has(name)) continue;
    if (schemas[name] === undefined) throw new Error(`the API has no type ${name}`);
    wanted.add(name);
    queue.push(...[...JSON.stringify(schemas[name]).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => refName(ref)));
  }
  return wanted;
}

const refName = (ref) => ref.split('/').at(-1);

function declaration(name, schema) {
  const head = comment(schema.description, '');
  const isNamed = isRecord(schema) && Object.keys(schema.properties).length > 0;
  if (isNamed) return `${head}export interface ${name} ${typeOf(schema, '')}`;
  return `${head}export type ${name} = ${typeOf(schema, '')};`;
}

const isRecord = (schema) => schema.type === 'object' && schema.properties !== undefined;

function typeOf(schema, indent) {
  if (schema.$ref !== undefined) return refName(schema.$ref);
  if (schema.enum !== undefined) return schema.enum.map(literal).join(' | ');
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type }, indent)).join(' | ');
  if (schema.anyOf !== undefined) return schema.anyOf.map((one) => typeOf(one, indent)).join(' | ');
  if (isRecord(schema)) return record(schema, indent);
  switch (schema.type) {
    case 'object':
      return `Readonly<Record<string, ${typeOf(schema.additionalProperties, indent)}>>`;
    case 'array': {
      const item = typeOf(schema.items, indent);
      return `readonly ${/^readonly | \| /.test(item) && !item.startsWith('{') ? `(${item})` : item}[]`;
    }
    case 'integer':
      return 'number';
    case 'number':
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    default:
      throw new Error(`there is no type for the schema ${JSON.stringify(schema)}`);
  }
}

const literal = (value) => (typeof value === 'string' ? `'${value}'` : String(value));

function record({ properties, required = [] }, indent) {
  // An object of which nothing is known: `{}` would admit anything.
  if (Object.keys(properties).length === 0) return 'Readonly<Record<string, unknown>>';
  const inner = `${indent}  `;
  const fields = Object.entries(properties).map(([name, schema]) => {
    const start = `${inner}readonly ${name}${required.includes(name) ? '' : '?'}:`;
    return `${comment(schema.description, inner)}${field(start, typeOf(schema, inner), inner)}`;
  });
  return `{\n${fields.join('\n')}\n${indent}}`;
}

/** Breaks a long union the way the formatter does. */
function field(start, type, indent) {
  const line = `${start} ${type};`;
  if (type.includes('\n') || line.length <= lineMax) return line;
  return `${[start, ...type.split(' | ').map((member) => `${indent}  | ${member}`)].join('\n')};`;
}

function comment(text, indent) {
  if (text === undefined) return '';
  const line = `${indent}/** ${text} */`;
  if (line.length <= lineMax) return `${line}\n`;
  const lines = text.match(new RegExp(`.{1,${lineMax - indent.length - 4}}(?:\\s|$)`, 'g'));
  return [`${indent}/**`, ...lines.map((part) => `${indent} * ${part.trim()}`), `${indent} */`, ''].join('\n');
}
