/** What the dashboard shows of a project: its users, keys, domains and signing keys. */
import type { MadeKeySet } from '../core/key-sets.ts';
import type { DomainRow } from '../statements/domains.ts';
import type { KeySetRow } from '../statements/key-sets.ts';
import type { ProjectRow } from '../statements/projects.ts';
import type { SigningKeyRow } from '../statements/signing-keys.ts';
import type { UserRow } from '../statements/users.ts';
import { hidden, nameOf } from './account-views.ts';
import { type Html, html } from './html.ts';

const day = (date: Date) => date.toISOString().slice(0, 10);

export interface ProjectPage {
  readonly project: ProjectRow;
  readonly mark: string;
  readonly now: Date;
  readonly baseUrl: string;
  readonly users: readonly UserRow[];
  readonly userCount: number;
  readonly search: string;
  readonly keySets: readonly KeySetRow[];
  readonly domains: readonly DomainRow[];
  readonly signingKeys: readonly SigningKeyRow[];
  /** Just made: the only time that its keys are shown. */
  readonly made?: MadeKeySet;
  readonly error?: string;
}

export function projectsView(projects: readonly ProjectRow[]): Html {
  const rows = projects.map(
    (project) => html`<li>
<div class="grow"><b><a href="/stack/dashboard/projects/${project.id}">${project.displayName}</a></b><small>${project.id}</small></div>
<small>since ${day(project.createdAt)}</small></li>`,
  );
  const empty = html`<p class="empty">There are none yet. A project becomes yours when you take it over: ask Catnap for a
transfer link.</p>`;
  return html`<h1>Your projects</h1><p class="lead">Auth projects that belong to your account.</p>
<section class="card">${rows.length === 0 ? empty : html`<ul class="rows">${rows}</ul>`}</section>`;
}

export function projectView(page: ProjectPage): Html {
  const { project } = page;
  return html`<p class="lead"><a href="/stack/dashboard">Your projects</a></p><h1>${project.displayName}</h1>
<p class="lead">${project.id}</p>
${page.error === undefined ? null : html`<p class="note bad" role="alert">${page.error}</p>`}
${page.made === undefined ? null : newKeysView(page.made)}
${usersView(page)}${keysView(page)}${domainsView(page)}${signingKeysView(page)}`;
}

const action = (page: ProjectPage, name: string) => `/stack/dashboard/projects/${page.project.id}/${name}`;

const copyable = (text: string) => html`<div class="secret"><code>${text}</code>
<button type="button" class="button quiet small" data-copy="${text}">Copy</button></div>`;

function newKeysView({ publishableKey, secretKey }: MadeKeySet): Html {
  const row = (title: string, key: string | undefined) =>
    key === undefined ? null : html`<p class="lead">${title}</p>${copyable(key)}`;
  return html`<section class="card"><h2>New keys</h2>
<p class="note good" role="status">Copy them now: they are not shown again.</p>
${row('Publishable client key', publishableKey)}${row('Secret server key', secretKey)}</section>`;
}

function usersView(page: ProjectPage): Html {
  const rows = page.users.map((user) => {
    const address = user.primaryEmail ?? 'no address';
    return html`<li><div class="grow"><b>${nameOf(user)}</b>
<small>${address}${user.primaryEmailVerified ? ' · verified' : ''}</small></div><small>${day(user.signedUpAt)}</small></li>`;
  });
  const found = page.search === '' ? 'The newest first.' : `${page.users.length} found.`;
  return html`<section class="card" id="users"><h2>Users <span class="badge">${page.userCount}</span></h2>
<p class="lead">${found}</p>
${rows.length === 0 ? html`<p class="empty">Nobody.</p>` : html`<ul class="rows">${rows}</ul>`}
<form class="bar" method="get" action="/stack/dashboard/projects/${page.project.id}">
<label>Search<input type="search" name="search" maxlength="200" value="${page.search}"></label>
<button class="button quiet">Search</button></form></section>`;
}

function keysView(page: ProjectPage): Html {
  return html`<section class="card" id="keys"><h2>Keys</h2>
<p class="lead">To rotate, make new keys, put them into your application, then revoke the old ones.</p>
<ul class="rows">${page.keySets.map((set) => keySetRow(page, set))}</ul>
<form class="bar" method="post" action="${action(page, 'make-keys')}">${hidden({ mark: page.mark })}
<label>Description<input type="text" name="description" required maxlength="200"></label>
<button class="button">New keys</button></form></section>`;
}

function keySetRow(page: ProjectPage, set: KeySetRow): Html {
  const isOver = set.revokedAt !== null || set.expiresAt <= page.now;
  const keys = [
    set.publishableLastFour && `pck …${set.publishableLastFour}`,
    set.secretLastFour && `ssk …${set.secretLastFour}`,
    set.adminLastFour && `sak …${set.adminLastFour}`,
  ].filter(Boolean);
  const state = set.revokedAt ? `revoked ${day(set.revokedAt)}` : isOver ? 'expired' : `since ${day(set.createdAt)}`;
  const question =
    set.adminLastFour === null
      ? 'Revoke these keys? Whoever uses them is refused at once.'
      : 'Revoke the key of the service that manages this project? It can then not keep the users in your database current.';
  const revoke = html`<form method="post" action="${action(page, 'revoke-keys')}" data-question="${question}">
${hidden({ mark: page.mark, id: set.id })}<button class="button danger small">Revoke</button></form>`;
  return html`<li${isOver ? html` class="gone"` : null}><div class="grow"><b>${set.description}</b>
<small>${keys.join(' · ')} · ${state}</small></div>${isOver ? null : revoke}</li>`;
}

function domainsView(page: ProjectPage): Html {
  const { mark } = page;
  const rows = page.domains.map(
    ({ domain }) => html`<li><div class="grow"><code>${domain}</code></div>
<form method="post" action="${action(page, 'remove-domain')}">${hidden({ mark, domain })}
<button class="button danger small">Remove</button></form></li>`,
  );
  const local = page.project.allowLocalhost ? 'Localhost is trusted too.' : 'Localhost is not trusted.';
  return html`<section class="card" id="domains"><h2>Trusted domains</h2>
<p class="lead">Where mails and redirects may lead. ${local}</p>
${rows.length === 0 ? html`<p class="empty">None.</p>` : html`<ul class="rows">${rows}</ul>`}
<form class="bar" method="post" action="${action(page, 'add-domain')}">${hidden({ mark })}
<label>Domain<input type="text" inputmode="url" name="domain" required maxlength="300" placeholder="https://app.example.com"></label>
<button class="button quiet">Add</button></form></section>`;
}

function signingKeysView(page: ProjectPage): Html {
  const { mark, project, now } = page;
  const rows = page.signingKeys
    .filter(({ audience }) => audience === 'plain')
    .map(({ kid, signsFrom, expiresAt }) => {
      const state = signsFrom > now ? 'signs soon' : expiresAt === null ? 'signs' : 'until the new one signs';
      return html`<li><div class="grow"><code>${kid}</code></div><small>${state}</small></li>`;
    });
  const question = 'Rotate the signing key? The new one is published now and signs in an hour.';
  return html`<section class="card" id="signing"><h2>Signing keys</h2>
<p class="lead">Access tokens are signed with them; backends verify with this key set.</p>
${copyable(`${page.baseUrl}/api/v1/projects/${project.id}/.well-known/jwks.json`)}
<ul class="rows">${rows}</ul>
<form method="post" action="${action(page, 'rotate-signing-key')}" data-question="${question}">${hidden({ mark })}
<button class="button quiet">Rotate</button></form></section>`;
}
