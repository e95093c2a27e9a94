/** CHANGELOG.md as a release needs it: sections by version, and one named Pending for what is not released. Pure. */

const pending = '## Pending';

/** The text below the heading of a version, or undefined if the changelog has none. */
export function changesIn(changelog, version) {
  const sections = changelog.split(/^(?=## )/m);
  const section = sections.find((text) => new RegExp(`^## ${version.replaceAll('.', '\\.')}(,|$)`, 'm').test(text));
  return section?.replace(/^.*\n/, '').trim();
}

/** Gives what is pending the heading of a version. `date` is a day such as 2026-11-18. */
export function releasePending(changelog, version, date) {
  const [before, after] = changelog.split(`${pending}\n`);
  if (after === undefined) throw new Error(`CHANGELOG.md has no section "${pending}"`);
  const [changes] = after.split(/^## /m);
  if (changes.trim() === '') throw new Error('CHANGELOG.md has nothing under Pending: there is nothing to release');
  if (changesIn(changelog, version) !== undefined) throw new Error(`CHANGELOG.md has a section for ${version} already`);
  return `${before}${pending}\n\n## ${version}, ${date}\n${after}`;
}
