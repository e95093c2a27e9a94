/** The OpenAPI document, made from the schemas of the routes. Its paths are relative to the server URL. */
import swagger from '@fastify/swagger';
import type { App } from '../kit/app-type.ts';

const tags = [
  { name: 'Projects', description: 'A project owns branches, computes and settings.' },
  { name: 'Branches', description: 'A branch owns data: databases and roles.' },
  { name: 'Snapshots', description: 'The data of a branch at a moment, kept until it expires or is deleted.' },
  { name: 'Saved queries', description: 'Queries that people keep with a project, for all who may change it.' },
  { name: 'Webhooks', description: 'Addresses that are told of what happens in a project, and what was sent to them.' },
  {
    name: 'Endpoints',
    description: 'A compute is a Postgres server attached to a branch. It naps when nobody uses it.',
  },
  { name: 'Databases', description: 'Databases of a branch.' },
  { name: 'Roles', description: 'Postgres roles of a branch, and their passwords.' },
  { name: 'Operations', description: 'Durable work that a write has queued; poll until it is finished.' },
  { name: 'API keys', description: 'Personal keys, keys of an organization, and keys limited to one project.' },
  {
    name: 'Auth (beta)',
    description:
      'Beta. A project at an auth provider for the users of an application; they are copied into the table ' +
      '`neon_auth.users_sync` of the project’s database.',
  },
  { name: 'Consumption', description: 'What projects and branches have used: computing, writing, storage.' },
  { name: 'Organizations', description: 'Owners of projects.' },
  { name: 'Account', description: 'The caller, the regions, and what the credential is.' },
];

export async function useOpenApi(app: App, options: { version: string; url: string }): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Catnap management API',
        version: options.version,
        description:
          'Manages Postgres projects that nap when nobody uses them. Every request carries an API key in the ' +
          'authorization header. A write answers at once and lists the operations it queued. Every POST accepts an ' +
          'Idempotency-Key header: the same key and body give the same reply for 24 hours.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: options.url }],
      tags,
      components: {
        securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'An API key.' } },
      },
      security: [{ bearer: [] }],
    },
    transformObject: (document) => {
      if (!('openapiObject' in document)) return document.swaggerObject;
      complete(document.openapiObject.paths);
      return document.openapiObject;
    },
    refResolver: { buildLocalReference: (json, _baseUri, _fragment, index) => String(json.$id ?? `schema-${index}`) },
  });
}

interface Operation {
  requestBody?: { required?: boolean; content: Record<string, { schema?: object }> };
  parameters?: object[];
  responses: Record<string, { description?: string }>;
}

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'A repeat with the same key and body does nothing again and gets the first reply, for 24 hours.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
};

const statusMeanings: Readonly<Record<string, string>> = {
  '200': 'Done.',
  '201': 'Made; the operations that follow are listed.',
};

/** What the schemas of the routes cannot say: headers, bodies that may be left out, and the meaning of statuses. */
function complete(paths: object | undefined): void {
  for (const item of Object.values(paths ?? {}) as Record<string, Operation>[]) {
    for (const [method, operation] of Object.entries(item)) {
      if (method === 'post') operation.parameters = [...(operation.parameters ?? []), idempotencyKey];
      const body = operation.requestBody?.content['application/json']?.schema;
      if (operation.requestBody && body) operation.requestBody.required = 'required' in body;
      for (const [status, reply] of Object.entries(operation.responses)) {
        reply.description = statusMeanings[status] ?? reply.description ?? '';
      }
    }
  }
}
