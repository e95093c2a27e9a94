/** Passwords of a branch's own, for keys that may not have those of its parent. */
import type { ApiClient } from './client.ts';
import type { ListProjectBranchDatabasesReply, ResetProjectBranchRolePasswordReply } from './generated.ts';
import { untilDone } from './operations.ts';

/**
 * A branch begins with the passwords of its parent, which a key of scope `branches` does not get. Gives those roles
 * that own its databases new ones, which it returns by role. `path` is that of the branch.
 */
export async function resetOwnersPasswords(client: ApiClient, path: string): Promise<Map<string, string>> {
  const passwords = new Map<string, string>();
  const { databases } = await client.get<ListProjectBranchDatabasesReply>(`${path}/databases`);
  for (const owner of new Set(databases.map(({ owner_name: name }) => name))) {
    const role = `${path}/roles/${encodeURIComponent(owner)}`;
    const reset = await client.post<ResetProjectBranchRolePasswordReply>(`${role}/reset_password`, {});
    await untilDone(client, reset.operations);
    passwords.set(owner, reset.role.password ?? '');
  }
  return passwords;
}
