/** What the page about auth can show, and how the address holds it. */

export const authViews = ['users', 'sign-in', 'keys', 'mails'] as const;

export type AuthView = (typeof authViews)[number];

export interface AuthSearch {
  readonly q?: string | undefined;
  /** Of the users, from 1. */
  readonly page?: number | undefined;
  readonly view?: AuthView | undefined;
}
