/**
 * Login by a link that a person opens in the console. libpq shows a notice only after AuthenticationOk, so that message
 * comes first. It admits the client to nothing: no compute is chosen, woken or dialled before the person has answered.
 */
import { CatnapError } from '../../lib/errors.ts';
import type { ControlPlane, LinkRequest } from '../kit/control-plane.ts';
import type { MessageStream } from '../protocol/message-stream.ts';
import { authenticationOk, noticeResponse } from '../protocol/messages.ts';
import { type Identity, type PasswordLogin, verifyPassword } from './authenticate.ts';

type StartupParameters = ReadonlyMap<string, string>;

export interface LinkLoginOptions extends Pick<PasswordLogin, 'controlPlane' | 'mockVerifier' | 'passwordIterations'> {
  readonly showLink: NonNullable<ControlPlane['showLink']>;
  readonly messages: MessageStream;
  readonly address: string;
  readonly parameters: StartupParameters;
  readonly signal: AbortSignal;
  /** Called when the wait begins, with its longest duration. */
  readonly onWait: (ms: number) => void;
}

/** Returns the startup parameters with what the person has chosen. */
export async function authenticateByLink(
  options: LinkLoginOptions,
): Promise<{ readonly identity: Identity; readonly parameters: StartupParameters }> {
  const { messages, parameters } = options;
  const { link, seconds, wait } = await options.showLink(requestOf(options));
  options.onWait(seconds * 1_000);
  const welcome = `Welcome to Catnap!\nTo log in without a password, open this link within ${seconds} seconds:`;
  messages.write(Buffer.concat([authenticationOk, noticeResponse(`${welcome}\n\n    ${link}\n`)]));
  const { endpointId, role, database, password } = await wait(options.signal);
  const route = { endpointId, pooled: false };
  const identity = await verifyPassword({ ...options, role, route, password: Buffer.from(password) }).catch(
    (thrown) => {
      if (!(thrown instanceof CatnapError) || thrown.kind !== 'password_wrong') throw thrown;
      throw new CatnapError('precondition_failed', `the password of role "${role}" was changed by SQL: reset it first`);
    },
  );
  messages.write(noticeResponse(`Connecting to database ${database} as ${role}.`));
  return { identity, parameters: new Map(parameters).set('user', role).set('database', database) };
}

function requestOf({ address, parameters }: LinkLoginOptions): LinkRequest {
  const role = parameters.get('user') ?? '';
  // As in Postgres, the default database has the name of the role.
  const database = parameters.get('database') ?? role;
  return { address, role, database, applicationName: parameters.get('application_name') ?? '' };
}
