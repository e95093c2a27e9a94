/** Failures as pages: what was wrong, in words for people, and where to go from here. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AuthProviderError, plain, statusOf } from '../http/errors.ts';
import { html } from './html.ts';
import { sendHtml } from './layout.ts';

const titles: Readonly<Record<number, string>> = { 403: 'Not allowed', 404: 'Not found', 429: 'Too many attempts' };

export const nothingHere = () => plain(404, 'There is nothing here, or it does not belong to your account.');

export function sendFailure(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = forPeople(thrown);
  const status = statusOf(error) ?? 500;
  if (status >= 500) request.log.error({ err: error }, 'a page of the auth provider failed');
  if (error instanceof AuthProviderError && error.retryAfterSeconds !== undefined) {
    reply.header('retry-after', String(error.retryAfterSeconds));
  }
  const isOurs = error instanceof Error && status < 500;
  const title = titles[status] ?? (status < 500 ? 'That did not work' : 'Something went wrong');
  const text = isOurs ? error.message : 'Please try again. The log has the cause under the request id.';
  return sendHtml(reply, {
    title,
    status,
    body: html`<h1>${title}</h1><p class="lead">${text}</p>
<section class="card"><a class="button quiet full" href="/stack/dashboard">Go to the dashboard</a></section>`,
  });
}

/** Schema errors are for programs; our own forms never cause them. */
function forPeople(thrown: unknown): unknown {
  if (thrown instanceof AuthProviderError || statusOf(thrown) !== 400) return thrown;
  const isPath = thrown instanceof Error && thrown.message.includes(' path.');
  return isPath ? nothingHere() : plain(400, 'Something is missing, or too long. Go back, look it over and try again.');
}
