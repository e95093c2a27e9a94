import type { ListedPackage } from './render-licenses.mjs';
import type { Lock } from './third-party.mjs';

export function renderSbom(release: {
  readonly manifest: object;
  readonly lock: Lock;
  readonly bundled: readonly (ListedPackage & { readonly folder: string })[];
  readonly installed: readonly (ListedPackage & { readonly folder: string })[];
  readonly sha256: string;
  readonly at: string;
}): string;
