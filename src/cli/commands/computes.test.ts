import { afterEach, beforeEach, expect, test } from 'vitest';
import { type HttpStub, startHttpStub } from '../../../test/helpers/http-stub.ts';
import { catnapCommand } from '../../../test/helpers/run-cli.ts';

const endpoint = { id: 'ep-1', project_id: 'p1', branch_id: 'br-1', type: 'read_only', current_state: 'init' };

let stub: HttpStub;
beforeEach(async () => {
  const replies: Record<string, object> = {
    'GET /api/v2/projects?limit=100': { projects: [{ id: 'p1' }] },
    'GET /api/v2/projects/p1': { project: { id: 'p1' } },
    'GET /api/v2/projects/p1/branches?search=main': { branches: [{ id: 'br-1', name: 'main' }] },
    'POST /api/v2/projects/p1/endpoints': { endpoint, operations: [] },
  };
  stub = await startHttpStub(({ method, path }) => {
    const body = replies[`${method} ${path}`];
    return body && { body };
  });
});
afterEach(() => stub.close());

test.each(['computes create --branch main', 'branches add-compute main'])(
  '`catnap %s` makes a compute',
  async (words) => {
    const shape = ['--read-only', '--size', '0.5-2', '--no-wait'];
    const { code, out } = await catnapCommand([...words.split(' '), ...shape], { url: stub.url });
    expect([code, out]).toEqual([0, expect.stringContaining('ep-1')]);
    const wanted = { branch_id: 'br-1', type: 'read_only', autoscaling_limit_min_cu: 0.5, autoscaling_limit_max_cu: 2 };
    expect(stub.requests.at(-1)).toMatchObject({ method: 'POST', body: { endpoint: wanted } });
  },
);
