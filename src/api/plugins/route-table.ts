/**
 * The list of registered routes, kept because Fastify does not report which methods a path has: the answer to a wrong
 * method names the right ones, and tests sweep over every route without a list of their own.
 */
import type { App } from '../kit/app-type.ts';
import type { NotOffered } from '../kit/not-offered-table.ts';

/** Asks for what Catnap has none of: a list that is always empty, or a single thing that is never found. */
export type Absent = 'list' | 'thing';

export interface RouteFacts {
  readonly method: string;
  /** The template, such as `/api/v2/projects/:project_id`. */
  readonly url: string;
  readonly isPublic: boolean;
  readonly operationId: string | undefined;
  /** Set where the answer is 501: the published API has it, and Catnap does not. */
  readonly notOffered: NotOffered | undefined;
  readonly absent: Absent | undefined;
}

declare module 'fastify' {
  interface FastifyInstance {
    routeTable: RouteFacts[];
  }
  interface FastifyContextConfig {
    /** Served without a key. */
    isPublic?: boolean;
    /** Answered with 501 and this reason. */
    notOffered?: NotOffered;
    absent?: Absent;
  }
}

export function useRouteTable(app: App): void {
  app.decorate('routeTable', []);
  app.addHook('onRoute', (route) => {
    for (const method of [route.method].flat()) {
      app.routeTable.push({
        method,
        url: route.url,
        isPublic: route.config?.isPublic === true,
        operationId: route.schema?.operationId,
        notOffered: route.config?.notOffered,
        absent: route.config?.absent,
      });
    }
  });
}

/** Only called for a path and method that no route serves, so its cost does not matter. */
export function methodsOf(table: readonly RouteFacts[], path: string): string[] {
  const wanted = path.replace(/\/+$/, '') || '/';
  const found = table.filter((route) => matches(route.url, wanted)).map((route) => route.method);
  return [...new Set(found)].sort();
}

function matches(template: string, path: string): boolean {
  const expected = template.split('/');
  const actual = path.split('/');
  return (
    expected.length === actual.length &&
    expected.every((part, index) => (part.startsWith(':') ? actual[index] !== '' : part === actual[index]))
  );
}
