/**
 * Starts several things at once, each of which goes on by itself when it has started. Fails with the first failure, but
 * only after all others have started or failed: whoever undoes the start then knows everything that runs.
 */
export async function startTogether(starts: readonly Promise<void>[]): Promise<void> {
  const failures: unknown[] = [];
  await Promise.all(starts.map((start) => start.catch((error: unknown) => failures.push(error))));
  if (failures.length > 0) throw failures[0];
}
