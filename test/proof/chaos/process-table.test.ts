import { expect, it } from 'vitest';
import { clientBackend, ProcessTable, systemBackend } from './process-table.ts';

const home = '/h';
const found = (pid: number, parentPid: number, ...words: string[]) => ({ pid, parentPid, words });
const table = new ProcessTable(home, [
  found(1, 0, 'node', '/x/bin.js', 'up'),
  found(2, 1, 'node', '/x/child.js', 'api'),
  found(12, 1, 'bun', '--no-install', '/x/child.js', 'proxy', '0'),
  found(3, 1, '/h/bin/postgres', '-D', '/h/system/pgdata'),
  found(4, 3, 'postgres: catnap-system: catnap catnap [local] idle'),
  found(5, 1, '/h/bin/postgres', '-D', '/h/p/pgdata', '-c', 'catnap.endpoint=ep-a'),
  found(6, 5, 'postgres: ep-a: checkpointer '),
  found(7, 5, 'postgres: ep-a: neondb_owner neondb [local] idle'),
  found(8, 5, 'postgres: ep-a: catnap_admin catnap [local] idle'),
  found(9, 5, 'postgres: ep-a: walsender catnap_replication [local] START_REPLICATION'),
  found(10, 1, 'cp', '/h/a', '/h/b'),
  found(11, 0, '/other/bin/postgres', '-D', '/other/pgdata', '-c', 'catnap.endpoint=ep-b'),
]);
const pids = (processes: readonly { pid: number }[]) => processes.map(({ pid }) => pid);

it('tells Catnap’s processes, servers and what is inside them apart', () => {
  expect(pids(table.roles(1, 'api'))).toEqual([2]);
  expect(pids(table.roles(1, 'proxy'))).toEqual([12]);
  expect(table.systemServer()?.pid).toBe(3);
  expect(table.computes()).toMatchObject([{ pid: 5, endpointId: 'ep-a', dataDirectory: '/h/p/pgdata' }]);
  const [compute, system] = [found(5, 1), found(3, 1)];
  expect(pids(table.inside(compute, clientBackend))).toEqual([7]);
  expect(pids(table.inside(system, systemBackend))).toEqual([4]);
  expect(pids(table.inside(compute, /: checkpointer/))).toEqual([6]);
});

it('does not take what a server is forking for a server', () => {
  const words = ['/h/bin/postgres', '-D', '/h/system/pgdata'];
  const forking = new ProcessTable(home, [found(3, 1, ...words), found(4, 3, ...words), found(5, 3, ...words)]);
  expect(pids(forking.servers())).toEqual([3]);
  const two = new ProcessTable(home, [found(3, 1, ...words), found(4, 1, ...words)]);
  expect(pids(two.servers())).toEqual([3, 4]);
  expect(forking.others()).toEqual([]);
});

it('finds other processes that name the home', () => {
  expect(pids(table.others())).toEqual([10]);
});
