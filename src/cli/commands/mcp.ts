/** `catnap mcp`: the MCP server, on standard input and output for a program to start, or over HTTP. */
import { once } from 'node:events';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { projectOption } from '../kit/options.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { findProject } from '../kit/targets.ts';
import { type AccessLevel, accessLevels } from '../mcp/access.ts';

interface Options {
  readonly access: AccessLevel;
  readonly project?: string;
  readonly listen?: { readonly host: string; readonly port: number };
}

export function addMcp(program: Command, run: RunCommand): void {
  program
    .command('mcp')
    .description('serve the Model Context Protocol to agents, on standard input and output or over HTTP')
    .option(...projectOption)
    .addOption(
      new Option('--access <level>', 'what the tools may do: read; branch, also other branches than the default; write')
        .choices(accessLevels)
        .default('read'),
    )
    .option('--listen <port>', 'serve HTTP at this port, or address:port; each caller brings a key', parseListen)
    .action((options: Options) =>
      run((session) => (options.listen ? listen(session, options) : serve(session, options))),
    );
}

async function serve(session: Session, { access, project }: Options): Promise<undefined> {
  const { client, parts, link } = session;
  const bound = project === undefined ? undefined : (await findProject(session, { project })).id;
  // Here, because no other command needs the protocol.
  const { createMcpServer } = await import('../mcp/server.ts');
  const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
  const { describeKey, readKey } = await import('../mcp/key.ts');
  const key = await readKey(client);
  // Standard output belongs to the protocol.
  parts.stderr.write(`${describeKey(key)}\n`);
  const server = createMcpServer(client, { version: parts.version, access, key, project: bound, link });
  // The client ends us by closing our input, which the transport does not notice.
  const ended = once(parts.stdin, 'end');
  await server.connect(new StdioServerTransport(parts.stdin, parts.stdout));
  await ended;
  await server.close();
}

async function listen(session: Session, { access, project, listen: place }: Options): Promise<undefined> {
  if (place === undefined) return;
  const { parts, withKey, writer } = session;
  const { listenForMcp, mcpPath } = await import('../mcp/http.ts');
  const server = await listenForMcp({ ...place, version: parts.version, access, project, clientFor: withKey });
  writer.remark(`Agents are served at http://${place.host}:${place.port}${mcpPath}; Ctrl-C ends it.`);
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  server.close();
  server.closeAllConnections();
}

function parseListen(text: string): { readonly host: string; readonly port: number } {
  const [, host = '127.0.0.1', port = ''] = /^(?:(.+):)?(\d{1,5})$/.exec(text) ?? [];
  if (port === '' || Number(port) > 65_535) throw new InvalidArgumentError('Allowed: a port, or address:port.');
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) };
}
