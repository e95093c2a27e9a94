import { tmpdir } from 'node:os';
import { describe, expect, test } from 'vitest';
import { newEndpointId } from '../../../../lib/ids.ts';
import { createLayout, socketFile } from './layout.ts';

describe('the layout of the data home', () => {
  const layout = createLayout('/var/lib/catnap');

  test('finds paths by id', () => {
    expect(layout.branch('calm-cat-1', 'br-calm-cat-1')).toBe(
      '/var/lib/catnap/projects/calm-cat-1/branches/br-calm-cat-1',
    );
    expect(layout.endpoint('calm-cat-1', 'ep-calm-cat-1')).toBe(
      '/var/lib/catnap/projects/calm-cat-1/endpoints/ep-calm-cat-1',
    );
    expect(layout.build(17, '17.10.0-beta.17-0123456789')).toBe('/var/lib/catnap/builds/17/17.10.0-beta.17-0123456789');
  });

  test.each(['', '..', '../x', 'a/b', 'A', 'a\0', 'a.b', 'x'.repeat(61)])('takes %j for no id', (id) => {
    expect(() => layout.project(id)).toThrow(/not a valid project id/);
    expect(() => layout.branch('p', id)).toThrow(/not a valid branch id/);
    expect(() => layout.endpoint('p', id)).toThrow(/not a valid endpoint id/);
    expect(() => layout.socketDirectory(id)).toThrow(/not a valid endpoint id/);
  });

  test.each(['..', '.x', 'a/b', ''])('takes %j for no build', (build) => {
    expect(() => layout.build(17, build)).toThrow(/not the name of a build/);
    expect(() => layout.template(17, build)).toThrow(/not the name of a build/);
  });

  test('sockets have short names, a different one for each endpoint', () => {
    const paths = Array.from({ length: 1000 }, () => socketFile(layout.socketDirectory(newEndpointId())));
    expect(new Set(paths).size).toBe(1000);
    for (const path of paths) expect(path).toMatch(/^\/var\/lib\/catnap\/s\/[a-z2-7]{8}\/\.s\.PGSQL\.5432$/);
  });

  test('a deep home has its sockets under the temporary folder', () => {
    const deep = `/home/${'somebody/'.repeat(20)}catnap`;
    const path = socketFile(createLayout(deep).socketDirectory('ep-x'));
    expect(path.startsWith(tmpdir())).toBe(true);
    expect(Buffer.byteLength(path)).toBeLessThanOrEqual(103);
    expect(createLayout(`${deep}2`).sockets).not.toBe(createLayout(deep).sockets);
  });
});
