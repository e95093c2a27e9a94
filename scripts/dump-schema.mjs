/**
 * A readable dump of a migrated schema, made from the catalogue because the embedded Postgres brings no pg_dump.
 * Sorted, so that equal schemas give equal text however they came to be.
 */

/** The rooms with migrations of their own, and a pattern for the names of what those make. */
export const tablesOfRooms = { db: '^(?!stack_)', 'auth-provider': '^stack_' };

/** `sql` is a connection of the `postgres` package whose search path is the schema. */
export async function dumpSchema(sql, room) {
  const header = [
    `-- What all migrations in src/${room}/migrations come to, for reading and for review.`,
    '-- Written by `npm run generate`; do not edit.',
  ];
  const names = tablesOfRooms[room];
  const tables = await sql`
    select relname as name, oid from pg_class
    where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and relname ~ ${names}
    order by relname`;
  const parts = [header.join('\n'), ...(await dumpSequences(sql, names))];
  for (const table of tables) parts.push(await dumpTable(sql, table));
  parts.push(...(await dumpViews(sql, names)), ...(await dumpFunctions(sql, names)));
  return `${parts.join('\n\n')}\n`;
}

async function dumpTable(sql, { name, oid }) {
  const columns = await sql`
    select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required,
      pg_get_expr(d.adbin, d.adrelid) as fallback, a.attidentity as identity, a.attgenerated as generated
    from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = ${oid} and a.attnum > 0 and not a.attisdropped order by a.attnum`;
  // Not-null is told with the column; newer majors list it here too.
  const constraints = await sql`
    select conname as name, pg_get_constraintdef(oid) as definition from pg_constraint
    where conrelid = ${oid} and contype <> 'n'
    order by array_position(array['p', 'u', 'f', 'c', 'x'], contype::text), conname`;
  const lines = [
    ...columns.map(columnLine),
    ...constraints.map((constraint) => `  constraint ${constraint.name} ${constraint.definition}`),
  ];
  const statements = [`create table ${name} (\n${lines.join(',\n')}\n);`];
  return [...statements, ...(await dumpIndexes(sql, oid)), ...(await dumpTriggers(sql, oid))].join('\n');
}

function columnLine({ name, type, required, fallback, identity, generated }) {
  const parts = [`  ${name} ${type}`];
  if (identity !== '') parts.push(`generated ${identity === 'a' ? 'always' : 'by default'} as identity`);
  if (generated !== '') parts.push(`generated always as (${fallback}) stored`);
  else if (fallback !== null) parts.push(`default ${fallback}`);
  if (required) parts.push('not null');
  return parts.join(' ');
}

/** Without those that belong to a constraint, which tells of them. */
async function dumpIndexes(sql, oid) {
  const indexes = await sql`
    select pg_get_indexdef(i.indexrelid) as definition from pg_index i join pg_class c on c.oid = i.indexrelid
    where i.indrelid = ${oid} and not exists (select from pg_constraint where conindid = i.indexrelid and conrelid = ${oid})
    order by c.relname`;
  return indexes.map(({ definition }) => `${definition};`);
}

async function dumpTriggers(sql, oid) {
  const triggers = await sql`
    select pg_get_triggerdef(oid) as definition from pg_trigger where tgrelid = ${oid} and not tgisinternal
    order by tgname`;
  return triggers.map(({ definition }) => `${definition};`);
}

/** Without those behind identity columns. */
async function dumpSequences(sql, names) {
  const sequences = await sql`
    select c.relname as name, format_type(s.seqtypid, null) as type from pg_sequence s join pg_class c on c.oid = s.seqrelid
    where c.relnamespace = current_schema()::regnamespace and c.relname ~ ${names}
      and not exists (select from pg_depend where objid = c.oid and deptype = 'i') order by c.relname`;
  return sequences.map(({ name, type }) => `create sequence ${name} as ${type};`);
}

async function dumpViews(sql, names) {
  const views = await sql`
    select relname as name, pg_get_viewdef(oid) as definition from pg_class
    where relnamespace = current_schema()::regnamespace and relkind = 'v' and relname ~ ${names} order by relname`;
  return views.map(({ name, definition }) => `create view ${name} as\n${definition}`);
}

async function dumpFunctions(sql, names) {
  const functions = await sql`
    select pg_get_functiondef(oid) as definition from pg_proc
    where pronamespace = current_schema()::regnamespace and proname ~ ${names} order by proname, oid`;
  return functions.map(({ definition }) => `${definition.trim()};`);
}
