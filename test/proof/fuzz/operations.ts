/**
 * Every operation that can be asked for: those of the OpenAPI document as it says, and those that it leaves out (the
 * auth provider, pages, metrics) as their routes declare them.
 */
import type { App } from '../../../src/api/kit/app-type.ts';
import type { Resolve, Schema } from './schema.ts';

export interface Operation {
  readonly method: string;
  /** With parameters in braces: `/api/v2/projects/{project_id}`. */
  readonly path: string;
  readonly query: Schema | undefined;
  readonly body: Schema | undefined;
  readonly parameters: Readonly<Record<string, Schema>>;
  readonly takesIdempotencyKey: boolean;
}

interface DocumentedOperation {
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}
export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const prefix = '/api/v2';

export function documented(document: OpenApiDocument): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters = [], requestBody }]) => {
      const named = (where: string) =>
        Object.fromEntries(parameters.filter((one) => one.in === where).map(({ name, schema }) => [name, schema]));
      return {
        method: method.toUpperCase(),
        path: `${prefix}${path}`,
        query: { type: 'object', properties: named('query') },
        body: requestBody?.content['application/json']?.schema,
        parameters: named('path'),
        takesIdempotencyKey: 'Idempotency-Key' in named('header'),
      };
    }),
  );
}

export function resolverOf(document: OpenApiDocument): Resolve {
  return (reference) => {
    const found = document.components.schemas[reference.replace('#/components/schemas/', '').replace(/#$/, '')];
    if (found === undefined) throw new Error(`the document has no ${reference}`);
    return found;
  };
}

/**
 * For `buildApp`'s `prepare`: collects the routes that the document does not have. An event stream has no end, SQL over
 * HTTP and WebSockets need a proxy: these are tried over a real port.
 */
export function collectUndocumented(app: App, into: Operation[]): void {
  const left = /^\/(api\/v2|sql|v2$|stack\/api\/latest)/;
  app.addHook('onRoute', ({ method, url, schema }) => {
    if (left.test(url)) return;
    const parts = (schema ?? {}) as { readonly querystring?: Schema; readonly body?: Schema; readonly params?: Schema };
    for (const one of [method].flat()) {
      into.push({
        method: one,
        path: url.replace(/:(\w+)/g, '{$1}').replace('*', '{rest}'),
        query: parts.querystring,
        body: parts.body,
        parameters: parts.params?.properties ?? {},
        takesIdempotencyKey: false,
      });
    }
  });
}
