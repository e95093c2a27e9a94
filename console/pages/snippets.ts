/** How to connect, in the words of each client. The connection string is the one that the API gives. */

export interface Snippet {
  readonly name: string;
  readonly file: string;
  readonly code: string;
}

const passwordMask = '••••••••';

/** For the screen: in the connection string, and where a client wants the password by itself. */
export function hidePassword(code: string, uri: string): string {
  const { password } = new URL(uri);
  const plain = decodeURIComponent(password);
  const forms = [password, plain, new URLSearchParams({ p: plain }).toString().slice(2)];
  return forms.filter((form) => form !== '').reduce((text, form) => text.replaceAll(form, passwordMask), code);
}

export function snippetsFor(uri: string, origin: string): readonly Snippet[] {
  return [
    { name: 'psql', file: 'terminal', code: `psql '${uri}'` },
    { name: 'Environment', file: '.env', code: `DATABASE_URL="${uri}"` },
    {
      name: 'Node: pg',
      file: 'index.js',
      code: `import pg from 'pg';\n\nconst pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });\nconst { rows } = await pool.query('select version()');\nconsole.log(rows[0]);\nawait pool.end();\n\n// DATABASE_URL="${uri}"`,
    },
    {
      name: 'Node: postgres',
      file: 'index.js',
      code: `import postgres from 'postgres';\n\nconst sql = postgres(process.env.DATABASE_URL);\nconsole.log(await sql\`select version()\`);\nawait sql.end();\n\n// DATABASE_URL="${uri}"`,
    },
    {
      name: 'Serverless driver',
      file: 'index.js',
      code: `import { neon, neonConfig } from '@neondatabase/serverless';\n\nneonConfig.fetchEndpoint = '${origin}/sql';\nconst sql = neon(process.env.DATABASE_URL);\nconsole.log(await sql\`select version()\`);\n\n// DATABASE_URL="${uri}"`,
    },
    {
      name: 'Prisma',
      file: 'schema.prisma',
      code: `datasource db {\n  provider = "postgresql"\n  url      = env("DATABASE_URL")\n}\n\n// DATABASE_URL="${uri}"`,
    },
    {
      name: 'Drizzle',
      file: 'db.ts',
      code: `import { drizzle } from 'drizzle-orm/node-postgres';\n\nexport const db = drizzle(process.env.DATABASE_URL!);\n\n// DATABASE_URL="${uri}"`,
    },
    {
      name: 'Python',
      file: 'main.py',
      code: `import psycopg\n\nwith psycopg.connect("${uri}") as connection:\n    print(connection.execute("select version()").fetchone())`,
    },
    {
      name: 'Go',
      file: 'main.go',
      code: `package main\n\nimport (\n\t"context"\n\t"fmt"\n\n\t"github.com/jackc/pgx/v5"\n)\n\nfunc main() {\n\tctx := context.Background()\n\tconn, err := pgx.Connect(ctx, "${uri}")\n\tif err != nil {\n\t\tpanic(err)\n\t}\n\tdefer conn.Close(ctx)\n\tvar version string\n\tif err := conn.QueryRow(ctx, "select version()").Scan(&version); err != nil {\n\t\tpanic(err)\n\t}\n\tfmt.Println(version)\n}`,
    },
    { name: 'JDBC', file: 'connection URL', code: jdbcUrl(uri) },
  ];
}

/** JDBC takes user and password as parameters, and passes `options` on as it is. */
export function jdbcUrl(uri: string): string {
  const url = new URL(uri);
  const query = new URLSearchParams(url.search);
  query.delete('channel_binding');
  query.set('user', decodeURIComponent(url.username));
  query.set('password', decodeURIComponent(url.password));
  return `jdbc:postgresql://${url.host}${url.pathname}?${query}`;
}

/** A first call of the API, for a terminal. */
export function createProjectRequest(apiUrl: string): string {
  return [
    `curl -X POST ${apiUrl}/projects`,
    '  -H "authorization: Bearer $CATNAP_API_KEY"',
    '  -H "content-type: application/json"',
    `  -d '{"project": {"name": "hello"}}'`,
  ].join(' \\\n');
}
