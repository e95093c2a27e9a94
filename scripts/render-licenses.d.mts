export interface ListedPackage {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}
export function renderLicenses(lists: {
  readonly bundled: readonly ListedPackage[];
  readonly installed: readonly ListedPackage[];
}): string;
