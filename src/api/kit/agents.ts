/** One message of an agent to `/mcp`, and its answer: what the route hands to whoever speaks the protocol. */

/** What the tools of an agent may do, on top of what its key may: `src/cli/mcp/access.ts` says what each means. */
export const agentAccessLevels = ['read', 'branch', 'write'] as const;

export interface AgentMessage {
  /** The message, parsed; whether it is one is for the protocol to say. */
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly key: string;
  readonly access: (typeof agentAccessLevels)[number];
  /** The one project that all tools work in, by id or name. */
  readonly project: string | undefined;
  readonly version: string;
  /** Reaches this same API, from the address of the agent. */
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
}

export interface AgentAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type AnswerAgent = (message: AgentMessage) => Promise<AgentAnswer>;
