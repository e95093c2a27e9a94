/** The MCP server: which tools there are, for an API and a level of access. Loaded only where it is used. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { ApiClient } from '../kit/client.ts';
import { addBranchTools } from './branch-tools.ts';
import { addDescribeTools } from './describe-tools.ts';
import { describeKey, mayRunSql } from './key.ts';
import { addSqlTools } from './sql-tools.ts';
import { type McpOptions, Toolbox } from './toolbox.ts';

const instructions = [
  'Catnap runs serverless Postgres. A project has branches; a branch is a full copy of its parent’s data with a life of',
  'its own, made in moments. Its compute naps when unused and wakes by itself. Try changes on a branch first:',
  'create_branch, execute_sql there, compare_schemas, delete_branch. Which of these tools are here depends on what the',
  'server and its key may do.',
].join(' ');

export function createMcpServer(client: ApiClient, options: McpOptions): McpServer {
  const server = new McpServer(
    { name: 'catnap', version: options.version },
    { instructions: `${instructions} ${describeKey(options.key)}` },
  );
  const tools = new Toolbox(server, client, options);
  addDescribeTools(tools);
  if (mayRunSql(options.key)) addSqlTools(tools);
  addBranchTools(tools);
  return server;
}
