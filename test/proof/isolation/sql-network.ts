/** Ways out over the network and over sockets, by foreign servers and notifications. */
import { type Escape, harmless, refused } from './sql-escape.ts';

const options = (host: string, port: number) => `host '${host}', port '${port}', dbname 'x', connect_timeout '2'`;

/** As root a server has no network at all; as an ordinary user it is the machine's, which is stated. */
const hasOwnNetwork = process.getuid?.() === 0;
const unreachable = ['08001', '42501', '42704', '2F003'];

/** `port` is one of this machine where somebody listens. */
export function networkEscapes(port: number): readonly Escape[] {
  const hosts = hasOwnNetwork ? ['127.0.0.1', 'localhost', '::1', '169.254.169.254', '10.0.0.1'] : [];
  return [
    ...hosts.map((host) =>
      refused(
        `create server s foreign data wrapper postgres_fdw options (${options(host, port)});
         create user mapping for current_user server s options (user 'x', password 'x');
         import foreign schema public from server s into public`,
        unreachable,
      ),
    ),
    ...['/tmp', '/run', '/var/run/postgresql', '.'].map((folder) =>
      refused(
        `create server s foreign data wrapper postgres_fdw options (${options(folder, 5432)});
         create user mapping for current_user server s options (user 'catnap_admin', password '');
         import foreign schema public from server s into public`,
        unreachable,
      ),
    ),
    ...[
      "sslkeylogfile '/tmp/catnap-isolation'",
      "passfile '/etc/passwd'",
      "service 'x'",
      "sslcert '/etc/passwd'",
      "sslkey '/etc/passwd'",
      "krbsrvname 'x'",
      "options '-c role=catnap_admin'",
      "nosuch 'x'",
    ].flatMap((option) => [
      refused(
        `create server s foreign data wrapper postgres_fdw options (host 'nowhere.invalid', ${option});
         create user mapping for current_user server s options (user 'x', password 'x');
         import foreign schema public from server s into public`,
        ['42501', 'HV00D', '08001', '42704', '42601', '2F003'],
      ),
      refused(
        `create server s foreign data wrapper postgres_fdw options (host 'nowhere.invalid');
         create user mapping for current_user server s options (user 'x', ${option});
         import foreign schema public from server s into public`,
        ['42501', 'HV00D', '08001', '42704', '42601', '2F003'],
      ),
    ]),
    refused(
      `create server s foreign data wrapper postgres_fdw;
       create user mapping for current_user server s options (password_required 'false')`,
      ['42501', '42704'],
    ),
    refused(`select dblink_connect('host=127.0.0.1 port=${port}')`, ['42883']),
    harmless(`select pg_notify('catnap', 'x')`, () => true),
    harmless(`listen catnap`, () => true),
    harmless(`select pg_notification_queue_usage() as used`, (rows) => Number(rows[0]?.used) === 0),
    harmless(`select inet_server_addr()::text as address`, (rows) => rows.every(({ address }) => address === null)),
  ];
}
