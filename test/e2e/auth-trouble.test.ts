/** Users on their way into a database that is restored, that refuses or hangs, while Catnap is killed. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AuthApp, readMetric } from '../helpers/auth-app.ts';
import { eventually, randomMoment, thinkTime } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { type SmtpServer, startSmtpServer } from '../helpers/smtp-server.ts';

/** Each is one of the API, one of the worker and one of everything, while people sign up. */
const killRounds = Number(process.env.CATNAP_TEST_SIGN_UP_KILLS ?? 1);

let smtp: SmtpServer;
let program: Program;
let app: AuthApp;
let slow: AuthApp;

beforeAll(async () => {
  smtp = await startSmtpServer();
  program = await Program.create({ CATNAP_SMTP_URL: smtp.url, CATNAP_MAIL_FROM: 'Shop <shop@example.com>' });
  await program.start();
  [app, slow] = await Promise.all([AuthApp.create(program, 'app'), AuthApp.create(program, 'slow')]);
});
afterAll(async () => {
  await program.destroy();
  await smtp.close();
});

const branchNamed = async (name: string): Promise<string> => {
  const { body } = await program.api('GET', `${app.path}/branches`);
  return body.branches.find((branch: { name: string }) => branch.name === name).id;
};

it('sends mails where a mail server is configured', async () => {
  expect((await app.signUp('mail@example.com', 'http://localhost:3000/verify')).status).toBe(200);
  await eventually(() => expect(smtp.mails).toHaveLength(1));
  expect(smtp.mails[0]).toMatch(/^From: Shop <shop@example.com>$/m);
  expect(smtp.mails[0]).toMatch(/^To: mail@example.com$/m);
  expect(smtp.mails[0]?.replaceAll('=\n', '').replaceAll('=3D', '=')).toMatch(/http:\/\/localhost:3000\/verify\?code=/);
  await eventually(async () => {
    const { body } = await program.api('GET', '/outbox');
    expect(body.mails).toMatchObject([{ to: 'mail@example.com', status: 'sent' }]);
  });
});

describe('a trigger that hangs', () => {
  it('delays no other tenant', async () => {
    const hang = 'begin perform pg_sleep(60); return new; end';
    await slow.ask(`create function hang() returns trigger language plpgsql as $$ ${hang} $$`);
    await slow.ask('create trigger hang after insert on neon_auth.users_sync for each row execute function hang()');
    await slow.createUser('slow@example.com');
    await app.createUser('quick@example.com');
    await eventually(async () => expect(await app.count('quick@example.com')).toBe('1'));
    // The other one still hangs: nobody waited for it.
    expect(await slow.count('slow@example.com')).toBe('0');
  });
});

describe('a restored branch', () => {
  it('is brought up to date from where its own data were, and says when that fails', async () => {
    const refuse = `alter table neon_auth.users_sync add constraint no check (raw_json ->> 'primary_email' !~ '^late')`;
    await app.ask(refuse);
    const child = (await program.api('POST', `${app.path}/branches`, { branch: { name: 'before' } })).body.branch.id;
    await program.settle(app.projectId);
    await app.ask('alter table neon_auth.users_sync drop constraint no');
    await app.createUser('late@example.com');
    await eventually(async () => expect(await app.count('late@example.com')).toBe('1'));

    await app.restoreFrom(child, 'after');
    expect(await app.count('quick@example.com')).toBe('1');
    expect(await app.count('late@example.com')).toBe('0');
    expect((await app.integration()).users_sync_error).toMatch(/violates check constraint "no"/);
    expect(await readMetric(program, 'catnap_users_sync_lag_seconds')).toBeGreaterThan(0.1);
    // Nothing happens at the provider meanwhile: what is missing is copied all the same.
    await app.ask('alter table neon_auth.users_sync drop constraint no');
    await eventually(async () => expect(await app.count('late@example.com')).toBe('1'));
    await eventually(async () => expect(await app.integration()).not.toHaveProperty('users_sync_error'));
  });

  it('has the users before its first query when it slept', async () => {
    await app.suspend();
    await app.restoreFrom(await branchNamed('after'));
    await app.createUser('later@example.com');
    expect(await app.count('later@example.com')).toBe('1');
    expect(await app.count('late@example.com')).toBe('1');
  });

  it('keeps its integration when the branch with its former data changes or goes', async () => {
    const after = await branchNamed('after');
    const renamed = await program.api('PATCH', `${app.path}/branches/${after}/databases/neondb`, {
      database: { name: 'other' },
    });
    expect(renamed.status).toBe(200);
    expect((await app.integration()).db_name).toBe('neondb');
    await app.createUser('last@example.com');
    await eventually(async () => expect(await app.count('last@example.com')).toBe('1'));
  });
});

describe('a table that was changed', () => {
  it('is an error that people see, in the API and as a number, until it is put right', async () => {
    await app.ask('alter table neon_auth.users_sync rename raw_json to raw');
    await app.createUser('renamed@example.com');
    await eventually(async () =>
      expect((await app.integration()).users_sync_error).toMatch(/column "raw_json" .* does not exist/),
    );
    expect(await readMetric(program, 'catnap_users_sync_failing')).toBeGreaterThan(0);
    await app.ask('alter table neon_auth.users_sync rename raw to raw_json');
    await eventually(async () => expect(await app.count('renamed@example.com')).toBe('1'));
    await eventually(async () => expect((await app.integration()).users_sync_error).toBeUndefined());
    const byBranch = await program.api('GET', `${app.path}/branches/${app.branchId}/auth`);
    expect(byBranch.body.users_synced_at).toBeDefined();
  });

  it('whose trigger hangs says so too, and does not keep its compute from starting', async () => {
    const failed = async () => expect((await slow.integration()).users_sync_error).toMatch(/statement timeout/);
    await eventually(failed);
    // A start waits five seconds for it, which is long for a test.
    if (killRounds === 1) return;
    await slow.suspend();
    const askedAt = Date.now();
    expect(await slow.ask('select 1')).toBe('1');
    expect(Date.now() - askedAt).toBeLessThan(8_000);
  });
});

describe('sign-ups while Catnap is killed', () => {
  const acknowledged: string[] = [];
  let isOver = false;
  let lastFailure = '';

  /** One after another, each with a new address, until it is over. */
  async function crowd(name: string): Promise<void> {
    for (let n = 0; !isOver; n++) {
      const email = `${name}${n}@killed.test`;
      const outcome = await app.signUp(email).then(
        (reply) => `answer ${reply.status}`,
        (error: Error) => `no answer: ${error.cause}`,
      );
      if (outcome === 'answer 200') acknowledged.push(email);
      else {
        lastFailure = outcome;
        await thinkTime(20);
      }
    }
  }

  async function killRole(role: string): Promise<void> {
    const [pid] = await program.processPids(role);
    if (pid === undefined) throw new Error(`no ${role} runs`);
    process.kill(pid, 'SIGKILL');
    await eventually(async () => {
      const [next] = await program.processPids(role);
      if (next === undefined || next === pid) throw new Error(`${role} is not back`);
    });
  }

  it('nobody who got an answer is lost, and nobody is there twice', { timeout: 600_000 }, async () => {
    const crowds = [crowd('a'), crowd('b')];
    const more = async () => {
      const before = acknowledged.length;
      await eventually(() => expect(acknowledged.length, lastFailure).toBeGreaterThan(before + 3));
    };
    for (let round = 0; round < killRounds; round++) {
      for (const kill of [() => killRole('api'), () => killRole('worker'), () => program.killHard()]) {
        await more();
        await randomMoment(200);
        await kill();
      }
      await program.start();
      await more();
    }
    isOver = true;
    await Promise.all(crowds);
    const rows = `select coalesce(string_agg(email, ','), '') from neon_auth.users_sync where email like '%@killed.test'`;
    await eventually(async () => {
      const found = (await app.ask(rows)).split(',');
      expect(acknowledged.filter((email) => !found.includes(email))).toEqual([]);
      expect(new Set(found).size).toBe(found.length);
    });
  });
});
