/** What the account pages show: signing in, a new account, and the signed-in user. */
import { passwordLengthMax, passwordLengthMin } from '../core/passwords.ts';
import type { UserRow } from '../statements/users.ts';
import { type Html, html } from './html.ts';
import type { Visitor } from './visitor.ts';

export interface AccountForm {
  readonly visitor: Visitor;
  /** Where to go afterwards. */
  readonly next: string;
  readonly error?: string | undefined;
  readonly email?: string | undefined;
  readonly isNew?: boolean;
}

export function hidden(fields: Readonly<Record<string, string>>): Html[] {
  return Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`);
}

export const nameOf = (user: UserRow) => user.displayName ?? user.primaryEmail ?? user.id;

export function whoView(visitor: Visitor, next = '/stack/sign-in'): Html | undefined {
  const { user } = visitor;
  if (user === null) return undefined;
  return html`<form class="who" method="post" action="/stack/sign-out">
    ${hidden({ mark: visitor.mark, next })}<span>${nameOf(user)}</span><button class="link">Sign out</button></form>`;
}

/** Both forms; the one that was not requested is collapsed. */
export function accountView(form: AccountForm): Html {
  const signIn = html`<form method="post" action="/stack/sign-in">
    ${hidden({ mark: form.visitor.mark, next: form.next })}
    <label>E-mail<input type="email" name="email" required maxlength="256" autocomplete="username" value="${form.isNew ? '' : form.email}"></label>
    <label>Password<input type="password" name="password" required maxlength="${passwordLengthMax}" autocomplete="current-password"></label>
    <button class="button full">Sign in</button>
    <p class="switch"><a href="/stack/forgot-password">Forgotten your password?</a></p></form>`;
  const signUp = html`<form method="post" action="/stack/sign-up">
    ${hidden({ mark: form.visitor.mark, next: form.next })}
    <label>Name<input type="text" name="name" maxlength="256" autocomplete="name"></label>
    <label>E-mail<input type="email" name="email" required maxlength="256" autocomplete="email" value="${form.isNew ? form.email : ''}"></label>
    <label>Password <span class="hint">${passwordLengthMin} characters or more</span><input type="password" name="password" required minlength="${passwordLengthMin}" maxlength="${passwordLengthMax}" autocomplete="new-password"></label>
    <button class="button full">Create account</button></form>`;
  const error = form.error === undefined ? null : html`<p class="note bad" role="alert">${form.error}</p>`;
  return html`${error}
<section class="card"><h2>With your account at this provider</h2>${signIn}</section>
<section class="card"><h2>No account yet?</h2><details${form.isNew ? html` open` : null}><summary>Create an account</summary>${signUp}</details></section>`;
}

/** One account as a tile. */
export function accountTile(user: UserRow): Html {
  return html`<div class="account"><span class="face" aria-hidden="true">${nameOf(user).slice(0, 1).toUpperCase()}</span>
    <div><b>${nameOf(user)}</b><small>${user.primaryEmail ?? user.id}</small></div></div>`;
}
