/** How an application hears of a visit to an OAuth provider: in the query of its own address, as the SDKs read it. */
import { type AuthProviderError, known } from '../http/errors.ts';
import { ThirdPartyFailure } from '../third-party/failure.ts';

export function withParameters(url: string, parameters: Readonly<Record<string, string>>): string {
  const target = new URL(url);
  for (const [name, value] of Object.entries(parameters)) target.searchParams.set(name, value);
  return target.href;
}

/** `error` is for clients of OAuth in general, the rest for the SDKs. */
export function withError(url: string, error: AuthProviderError, given: Readonly<Record<string, string>>): string {
  const names: Readonly<Record<string, string>> = {
    OAUTH_PROVIDER_ACCESS_DENIED: 'access_denied',
    OAUTH_PROVIDER_TEMPORARILY_UNAVAILABLE: 'temporarily_unavailable',
  };
  return withParameters(url, {
    ...given,
    error: names[error.code ?? ''] ?? 'server_error',
    error_description: error.message,
    errorCode: error.code ?? '',
    message: error.message,
    details: JSON.stringify(error.details ?? {}),
  });
}

/** The cause of a failure stays here, for the log. */
export async function inAppTerms<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (!(thrown instanceof ThirdPartyFailure)) throw thrown;
    const error =
      thrown.problem === 'rejected'
        ? known('INVALID_AUTHORIZATION_CODE', 'What the OAuth provider sent back is not valid. Sign in again.')
        : known('OAUTH_PROVIDER_TEMPORARILY_UNAVAILABLE', 'The OAuth provider cannot be used at the moment.');
    error.cause = thrown;
    throw error;
  }
}
