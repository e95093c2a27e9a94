/** The variables that `config.ts` reads, as the README shows them; a test compares the two. */

/** Name, default and meaning of each variable, in the order the README lists them. */
export const settingDocs: readonly (readonly [name: string, fallback: string, meaning: string])[] = [
  [
    'CATNAP_HOME',
    '`/var/lib/catnap` as root, else `$XDG_DATA_HOME/catnap` (`~/.local/share/catnap`)',
    'Data home: everything Catnap keeps.',
  ],
  ['CATNAP_BIND', '`127.0.0.1`', 'Address that the HTTP and the database port listen on.'],
  ['CATNAP_HTTP_PORT', '`7070`', 'API, console, auth provider and SQL over HTTP.'],
  ['CATNAP_PG_PORT', '`5432`', 'Database port. When unset and taken, 7432 is used, and the start says so.'],
  ['CATNAP_PROXIES', 'a quarter of the cores, 1 to 4', 'Processes that serve the database port, 1 to 4.'],
  ['CATNAP_DOMAIN', '`localhost`', 'Domain of the endpoints’ host names.'],
  ['CATNAP_REGION', '`local`', 'Region id that projects carry.'],
  [
    'CATNAP_PUBLIC_URL',
    '`http://<bind>:<port>`, with `localhost` for a loopback or wildcard address',
    'URL under which people reach the HTTP port.',
  ],
  ['CATNAP_TLS_CERT', 'made by Catnap', 'Your certificate for the database port: a PEM file, its chain included.'],
  ['CATNAP_TLS_KEY', 'made by Catnap', 'Its private key, PEM. Both files are read again when they change.'],
  ['CATNAP_DATABASE_URL', 'embedded Postgres', 'External system database, Postgres 14 or newer.'],
  ['CATNAP_STACK_URL', 'embedded provider', 'Auth provider elsewhere: base URL of a Stack Auth deployment’s API.'],
  ['CATNAP_STACK_CLIENT_ID', '', 'Id of the integration client that Catnap is for that provider.'],
  ['CATNAP_STACK_CLIENT_SECRET', '', 'Its secret.'],
  [
    'CATNAP_OAUTH_ISSUERS',
    'none',
    'Identity providers of your own, `corp=https://login.example.com`; see [auth](docs/auth-provider.md).',
  ],
  ['CATNAP_DRIVER', '`local`', 'Where computes run. `kubernetes` is refused until it is built.'],
  ['CATNAP_UID_BASE', '`700000`', 'As root: the first of the uids that Catnap and the projects’ servers run under.'],
  [
    'CATNAP_PRIVATE_JWKS',
    '`on` on loopback, else `off`',
    'Whether key sets of third parties may be read from this machine and from private networks: `on` or `off`.',
  ],
  ['CATNAP_RATE_LIMIT', '`off` on loopback, else `700`', 'Requests a minute for one key, or `off`.'],
  ['CATNAP_SUSPEND_MIN_SECONDS', '`60`', 'Smallest suspend timeout that the API accepts.'],
  [
    'CATNAP_LOOK_IDLE_SECONDS',
    '`300`',
    'How long a [look into the past](docs/history.md) may be unused before its compute is removed.',
  ],
  [
    'CATNAP_LOOKS_MAX',
    '`16`',
    'Looks into the past that may be open at once, at most 4 of one project; 0 refuses them.',
  ],
  [
    'CATNAP_TEMP_DISK_BYTES',
    'max(20 GiB, 15 GiB × max CU)',
    'Bound of a compute’s temporary files, in place of the rule.',
  ],
  [
    'CATNAP_CAPACITY_CU',
    'no limit',
    'What the smallest sizes of all running computes may come to; a compute that does not fit is refused at its start.',
  ],
  [
    'CATNAP_SCALE_DOWN_SECONDS',
    '`30`',
    'How long a smaller size must have been enough before a compute with a range is made smaller.',
  ],
  ['CATNAP_API_KEY', 'generated', 'First personal API key, 32 characters or more, in place of a generated one.'],
  [
    'CATNAP_SMTP_URL',
    'none',
    'Server for mails of the auth provider, `smtp://` or `smtps://`; without one see `catnap outbox`.',
  ],
  ['CATNAP_MAIL_FROM', '`catnap@localhost`', 'Sender of those mails.'],
  ['CATNAP_DEFAULT_PLAN', '`scale`', 'Plan of the first organization: `free`, `launch` or `scale`.'],
  [
    'CATNAP_PG_BIN_<major>',
    'embedded 17 and 18',
    'Directory of Postgres binaries for a major, e.g. `CATNAP_PG_BIN_16=/usr/lib/postgresql/16/bin`.',
  ],
  [
    'CATNAP_LOG_LEVEL',
    '`info`',
    '`fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`. On a terminal the default is `warn`.',
  ],
];
