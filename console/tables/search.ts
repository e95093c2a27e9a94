/** What the address of the page with the tables holds. */

export interface TablesSearch {
  /** With its schema: `public.invoices`. */
  readonly table?: string | undefined;
  /** From 1, which is left out. */
  readonly page?: number | undefined;
  readonly sort?: string | undefined;
  readonly desc?: boolean | undefined;
  /** Filters; `readFilters` makes sure of that. */
  readonly where?: readonly unknown[] | undefined;
  readonly view?: 'structure' | 'diagram' | undefined;
}
