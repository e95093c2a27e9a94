/** What the tools of the MCP server have in common: where they work, what they may do, and how they answer. */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { CallToolResult, ToolAnnotations } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import type { ApiClient } from '../kit/client.ts';
import { CliFailure } from '../kit/failure.ts';
import type { Branch } from '../kit/generated.ts';
import type { Link } from '../kit/link.ts';
import type { InProject, OnBranch, Reach } from '../kit/targets.ts';
import type { AccessLevel } from './access.ts';
import type { KeyFacts } from './key.ts';

export interface McpOptions {
  readonly version: string;
  readonly access: AccessLevel;
  readonly key: KeyFacts;
  /** The one project that all tools work in; without it each call may name one. */
  readonly project?: string | undefined;
  /** What the folder is linked to. */
  readonly link?: Link | null;
}

/** Arguments that say where a tool works. */
export interface Place {
  readonly project?: string | undefined;
  readonly branch?: string | undefined;
  readonly database?: string | undefined;
}

export interface ToolDescription<Shape extends z.ZodRawShape> {
  readonly title: string;
  readonly description: string;
  readonly input: Shape;
  readonly hints: ToolAnnotations;
}

/** Changes nothing. */
export const reads: ToolAnnotations = { readOnlyHint: true, openWorldHint: false };
/** Adds something, and takes nothing away. */
export const adds: ToolAnnotations = { readOnlyHint: false, destructiveHint: false, openWorldHint: false };
/** May take something away. */
export const changes: ToolAnnotations = { readOnlyHint: false, destructiveHint: true, openWorldHint: false };

const projectInput = {
  project: z.string().optional().describe('Id or name of the project; needed if there are several'),
};
export const branchInput = {
  branch: z.string().optional().describe('Id or name of the branch; the default branch when left out'),
};
export const databaseInput = {
  ...branchInput,
  database: z.string().optional().describe('Name of the database; the oldest one when left out'),
};

export class Toolbox {
  readonly client: ApiClient;
  readonly access: AccessLevel;
  readonly key: KeyFacts;
  readonly reach: Reach;
  readonly #server: McpServer;
  readonly #project: string | undefined;

  constructor(server: McpServer, client: ApiClient, options: McpOptions) {
    this.#server = server;
    this.#project = options.project;
    this.client = client;
    this.access = options.access;
    this.key = options.key;
    this.reach = { client, link: options.link ?? null };
  }

  /** `work` returns what the caller reads, as an object. */
  add<Shape extends z.ZodRawShape>(
    name: string,
    { title, description, input, hints }: ToolDescription<Shape>,
    work: (given: z.infer<z.ZodObject<Shape>> & Pick<Place, 'project'>) => Promise<object>,
  ): void {
    const place = this.#project === undefined ? projectInput : {};
    const inputSchema: z.ZodObject = z.strictObject({ ...place, ...input });
    this.#server.registerTool(name, { title, description, inputSchema, annotations: hints }, async (given) =>
      answer(() => work(given as z.infer<z.ZodObject<Shape>> & Pick<Place, 'project'>)),
    );
  }

  inProject({ project }: Place): InProject {
    const wanted = this.#project ?? project;
    return wanted === undefined ? {} : { project: wanted };
  }

  onBranch(place: Place): OnBranch {
    return { ...this.inProject(place), ...(place.branch !== undefined && { branch: place.branch }) };
  }

  inDatabase(place: Place): OnBranch & { readonly database?: string } {
    return { ...this.onBranch(place), ...(place.database !== undefined && { database: place.database }) };
  }

  /** Throws for a branch that this server must leave as it is. */
  requireChangeable(branch: Branch): void {
    if (this.access === 'write' || !(branch.default || branch.protected)) return;
    const which = branch.default ? 'the default branch' : 'a protected branch';
    throw new CliFailure(
      `${branch.name} is ${which}, and this server may change other branches only: make a branch of it, or have the ` +
        'server started with --access write (at /mcp: ?access=write)',
    );
  }
}

/** What a caller did wrong is for the model to read and mend; what we did wrong is not. */
async function answer(work: () => Promise<object>): Promise<CallToolResult> {
  try {
    const result = await work();
    return { content: [{ type: 'text', text: JSON.stringify(result) }], structuredContent: { ...result } };
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    return { content: [{ type: 'text', text: error.message }], isError: true };
  }
}
