/** The provider's own project, whose users own the others. In the API it has a name instead of an id. */
import { isUuid } from '../../lib/ids.ts';
export const internalProjectId = '00000000-0000-4000-8000-000000000001';
export const internalName = 'internal';

export function projectIdFromWire(text: string): string | undefined {
  if (text === internalName) return internalProjectId;
  return isUuid(text) && text.toLowerCase() !== internalProjectId ? text.toLowerCase() : undefined;
}

export const projectIdOnWire = (id: string) => (id === internalProjectId ? internalName : id);
