/** The parts of the documentation that are made from tables in the code. Pure; `generate.mjs` writes them. */

const settingsBegin = '<!-- settings: written by `npm run generate` from src/lib/setting-docs.ts -->';
const settingsEnd = '<!-- end of settings -->';

export function renderErrors(errorKinds) {
  const rows = Object.entries(errorKinds).map(([kind, facts]) => [
    `\`${kind}\``,
    String(facts.status),
    facts.code === '' ? '' : `\`${facts.code}\``,
    `\`${facts.sqlState}\``,
    facts.retryable ? 'yes' : 'no',
    facts.meaning,
  ]);
  return `# Errors

Written by \`npm run generate\` from the table in \`src/lib/errors.ts\`; do not edit.

Every failed request is answered with JSON: \`{"request_id": "…", "code": "…", "message": "…"}\`. The status and the
\`code\` are in the table; for most errors \`code\` is empty, as the wire contract has it. The message is lower case and
carries its details as \`; key:"value"\`. What a key may not see is answered as if it did not exist. A client of the
database port gets the SQLSTATE instead. "Again" says whether the same request can succeed later as it is; where the
server knows how much later, a \`Retry-After\` header says so.

${table(['Kind', 'Status', 'Code', 'SQLSTATE', 'Again', 'Meaning'], rows)}
`;
}

export function renderSettings(settingDocs) {
  return table(
    ['Variable', 'Default', 'Meaning'],
    settingDocs.map(([name, fallback, meaning]) => [`\`${name}\``, fallback, meaning]),
  );
}

/** The README with its table of settings replaced. */
export function withSettings(readme, settingDocs) {
  const from = readme.indexOf(settingsBegin);
  const to = readme.indexOf(settingsEnd);
  if (from === -1 || to < from) throw new Error(`the README needs the lines ${settingsBegin} and ${settingsEnd}`);
  const before = readme.slice(0, from + settingsBegin.length);
  return `${before}\n${renderSettings(settingDocs)}\n${readme.slice(to)}`;
}

export function table(titles, rows) {
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(titles), `|${titles.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}
