/** `catnap mcp`: the MCP server on standard input and output, for a program to start; the API serves it over HTTP. */
import { once } from 'node:events';
import { type Command, Option } from 'commander';
import { projectOption } from '../kit/options.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { findProject } from '../kit/targets.ts';
import { type AccessLevel, accessLevels } from '../mcp/access.ts';

interface Options {
  readonly access: AccessLevel;
  readonly project?: string;
}

export function addMcp(program: Command, run: RunCommand): void {
  program
    .command('mcp')
    .description('serve the Model Context Protocol to agents on standard input and output; over HTTP it is at /mcp')
    .option(...projectOption)
    .addOption(
      new Option('--access <level>', 'what the tools may do: read; branch, also other branches than the default; write')
        .choices(accessLevels)
        .default('read'),
    )
    .action((options: Options) => run((session) => serve(session, options)));
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
