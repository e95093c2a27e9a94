/**
 * The open queries of a project. The server keeps them, and each change is sent to it a moment after the last key; what
 * it has not got yet also stays in the browser, so that neither a reload nor an outage loses a word.
 */
import type { SavedQuery } from '../api/generated.ts';

export interface QueryTab {
  /** In this page only. */
  readonly key: string;
  /** Null until the server has it. */
  readonly id: string | null;
  readonly name: string;
  readonly text: string;
  readonly revision: number;
}

export type SaveState = { readonly kind: 'saved' | 'waiting' } | { readonly kind: 'failed'; readonly reason: string };

export interface TabsView {
  readonly tabs: readonly QueryTab[];
  readonly chosen: string;
  readonly save: SaveState;
}

export type QueryChange = Partial<Pick<SavedQuery, 'name' | 'query' | 'is_open' | 'revision'>>;

/** What the server does for it; a test has another one. */
export interface SavedQueries {
  create(query: Pick<SavedQuery, 'name' | 'query' | 'is_open'>): Promise<SavedQuery>;
  /** Null if somebody else has changed or deleted it. */
  update(id: string, change: QueryChange): Promise<SavedQuery | null>;
  remove(id: string): Promise<unknown>;
}

/** As a browser's storage. */
export interface Drafts {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

interface Draft {
  readonly id: string | null;
  readonly name: string;
  readonly text: string;
}

const saveAfterMs = 800;

export class QueryTabs {
  readonly #server: SavedQueries;
  readonly #drafts: Drafts;
  readonly #draftsKey: string;
  readonly #listeners = new Set<() => void>();
  /** Tabs whose text or name the server does not have. */
  readonly #unsaved = new Set<string>();
  #view: TabsView;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #saving: Promise<void> | null = null;
  #made = 0;

  constructor(server: SavedQueries, drafts: Drafts, projectId: string, saved: readonly SavedQuery[]) {
    this.#server = server;
    this.#drafts = drafts;
    this.#draftsKey = `catnap-drafts-${projectId}`;
    const open = saved.filter((query) => query.is_open).map((query) => this.#tabOf(query));
    const tabs = this.#withDrafts(open);
    if (tabs.length === 0) tabs.push(this.#newTab(tabs, ''));
    this.#view = { tabs, chosen: tabs.at(-1)?.key ?? '', save: { kind: 'saved' } };
    if (this.#unsaved.size > 0) this.#saveSoon();
  }

  readonly watch = (listener: () => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly view = () => this.#view;

  choose(key: string): void {
    this.#show({ chosen: key });
  }

  setText(key: string, text: string): void {
    this.#change(key, { text });
  }

  rename(key: string, name: string): void {
    this.#change(key, { name });
  }

  add(text = ''): void {
    const tab = this.#newTab(this.#view.tabs, text);
    this.#show({ tabs: [...this.#view.tabs, tab], chosen: tab.key });
    if (text !== '') this.#change(tab.key, { text });
  }

  /** Opens one that the server keeps, or shows its tab. */
  open(query: SavedQuery): void {
    const known = this.#view.tabs.find(({ id }) => id === query.id);
    if (known !== undefined) {
      this.choose(known.key);
      return;
    }
    const tab = this.#tabOf(query);
    this.#show({ tabs: [...this.#view.tabs, tab], chosen: tab.key });
    const opened = this.#server.update(query.id, { is_open: true });
    this.#quietly(opened.then((now) => now !== null && this.#note(tab.key, now)));
  }

  /** The server keeps what is in it, unless that is nothing. */
  async close(key: string): Promise<void> {
    await this.#saveAll();
    const tab = this.#tab(key);
    if (tab === undefined) return;
    this.#drop(key);
    if (tab.id === null) return;
    const isEmpty = tab.text.trim() === '';
    this.#quietly(isEmpty ? this.#server.remove(tab.id) : this.#server.update(tab.id, { is_open: false }));
  }

  /** For good, whether it is open or not. */
  async remove(id: string): Promise<void> {
    const tab = this.#view.tabs.find((one) => one.id === id);
    await this.#server.remove(id);
    if (tab !== undefined) this.#drop(tab.key);
  }

  #drop(key: string): void {
    this.#unsaved.delete(key);
    const place = this.#view.tabs.findIndex((tab) => tab.key === key);
    const rest = this.#view.tabs.filter((tab) => tab.key !== key);
    if (rest.length === 0) rest.push(this.#newTab([], ''));
    const next = rest[Math.min(place, rest.length - 1)]?.key ?? '';
    this.#show({ tabs: rest, chosen: this.#view.chosen === key ? next : this.#view.chosen });
    this.#writeDrafts();
  }

  #change(key: string, change: Partial<Pick<QueryTab, 'name' | 'text'>>): void {
    this.#unsaved.add(key);
    this.#show({ tabs: this.#with(key, change), save: { kind: 'waiting' } });
    this.#writeDrafts();
    this.#saveSoon();
  }

  #saveSoon(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#saveAll(), saveAfterMs);
  }

  /** One after another: a second save of a tab needs the revision that the first one got. */
  async #saveAll(): Promise<void> {
    clearTimeout(this.#timer);
    while (this.#saving !== null) await this.#saving;
    this.#saving = this.#saveEach();
    await this.#saving;
    this.#saving = null;
  }

  async #saveEach(): Promise<void> {
    for (const key of [...this.#unsaved]) {
      const tab = this.#tab(key);
      // A new tab that nobody has written in is nothing to keep.
      if (tab === undefined || (tab.id === null && tab.text.trim() === '')) continue;
      try {
        await this.#save(tab);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        this.#show({ save: { kind: 'failed', reason } });
        return;
      }
    }
    if (this.#unsaved.size === 0) this.#show({ save: { kind: 'saved' } });
  }

  async #save(tab: QueryTab): Promise<void> {
    const content = { name: tab.name, query: tab.text };
    const known = tab.id === null ? null : await this.#server.update(tab.id, { ...content, revision: tab.revision });
    // Where somebody else was faster, theirs stays, and this is another one.
    const name = tab.id === null ? tab.name : copyName(tab.name);
    const saved = known ?? (await this.#server.create({ ...content, name, is_open: true }));
    const now = this.#tab(tab.key);
    if (now?.text === tab.text && now.name === tab.name) this.#unsaved.delete(tab.key);
    this.#note(tab.key, saved, now?.name === tab.name ? saved.name : now?.name);
    this.#writeDrafts();
  }

  #note(key: string, { id, revision }: SavedQuery, name = this.#tab(key)?.name ?? ''): void {
    this.#show({ tabs: this.#with(key, { id, revision, name }) });
  }

  #writeDrafts(): void {
    const drafts = this.#view.tabs
      .filter(({ key, text }) => this.#unsaved.has(key) && text !== '')
      .map(({ id, name, text }): Draft => ({ id, name, text }));
    if (drafts.length === 0) this.#drafts.removeItem(this.#draftsKey);
    else this.#drafts.setItem(this.#draftsKey, JSON.stringify(drafts));
  }

  #withDrafts(open: readonly QueryTab[]): QueryTab[] {
    const tabs = [...open];
    for (const { id, name, text } of this.#readDrafts()) {
      const place = tabs.findIndex((tab) => tab.id !== null && tab.id === id);
      const tab = { ...(tabs[place] ?? this.#newTab(tabs, '')), name, text };
      if (place === -1) tabs.push(tab);
      else tabs[place] = tab;
      this.#unsaved.add(tab.key);
    }
    return tabs;
  }

  #readDrafts(): readonly Draft[] {
    try {
      const kept: unknown = JSON.parse(this.#drafts.getItem(this.#draftsKey) ?? '[]');
      return Array.isArray(kept) ? kept : [];
    } catch {
      return [];
    }
  }

  #tabOf({ id, name, query, revision }: SavedQuery): QueryTab {
    return { key: this.#newKey(), id, name, text: query, revision };
  }

  #newTab(beside: readonly QueryTab[], text: string): QueryTab {
    const names = new Set(beside.map(({ name }) => name));
    let number = 1;
    while (names.has(`Query ${number}`)) number += 1;
    return { key: this.#newKey(), id: null, name: `Query ${number}`, text, revision: 0 };
  }

  #newKey(): string {
    this.#made += 1;
    return `tab-${this.#made}`;
  }

  #tab = (key: string) => this.#view.tabs.find((tab) => tab.key === key);

  #with = (key: string, change: Partial<QueryTab>) =>
    this.#view.tabs.map((tab) => (tab.key === key ? { ...tab, ...change } : tab));

  /** A tab that stays open on the server is no loss. */
  #quietly(work: Promise<unknown>): void {
    work.catch(() => {});
  }

  #show(change: Partial<TabsView>): void {
    this.#view = { ...this.#view, ...change };
    for (const listener of this.#listeners) listener();
  }
}

const nameLengthMax = 100;
const copyName = (name: string) => `${name.slice(0, nameLengthMax - 7)} (copy)`;
