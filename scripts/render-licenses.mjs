/** docs/licenses.md, from what a build has recorded and from the lock file. Pure; `generate.mjs` writes the result. */

export function renderLicenses({ bundled, installed }) {
  return `# Licenses

Written by \`npm run generate\`. Catnap itself is under the [Apache License 2.0](../LICENSE). This page lists the work of
others in the npm package, and what npm installs beside it.

## In the package

These are part of the built program or of the console. Their license texts are in the package, in the file
\`dist/third-party-licenses.txt\`. The \`pg_dump\` of \`@electric-sql/pglite-tools\` is PostgreSQL's (the PostgreSQL License).

${table(bundled)}

## Installed beside it

The servers are PostgreSQL (the PostgreSQL License). Their packages also hold the libraries that they are linked with,
each under its own license: ICU, OpenSSL, libxml2, zlib and others.

${table(installed)}
`;
}

function table(packages) {
  const rows = packages.map(({ name, version, license }) => `| \`${name}\` | ${version} | ${license} |`);
  return ['| Package | Version | License |', '|---|---|---|', ...rows].join('\n');
}
