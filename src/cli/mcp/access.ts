/** What the tools of an MCP server may do; apart from the tools, because the help of the command names it. */

/**
 * `read` changes nothing. `branch` also makes branches, and changes those that are neither the default one nor
 * protected. `write` may do everything that the key may.
 */
export const accessLevels = ['read', 'branch', 'write'] as const;
export type AccessLevel = (typeof accessLevels)[number];
