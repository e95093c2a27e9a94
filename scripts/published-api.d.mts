export interface PublishedOperation {
  readonly method: string;
  /** With its parameters in braces. */
  readonly path: string;
  readonly operationId: string;
  readonly group: string;
}

export interface PublishedFile {
  readonly paths: Readonly<Record<string, Readonly<Record<string, PublishedItem>>>>;
}
export interface PublishedItem {
  readonly responses: Readonly<Record<string, PublishedReply>>;
}
export interface PublishedReply {
  readonly $ref?: string;
  readonly content?: Readonly<Record<string, { readonly schema?: object }>>;
}

export function readPublishedFile(): PublishedFile;
export function publishedOperations(file?: PublishedFile): PublishedOperation[];
export function addressOf(operation: { readonly method: string; readonly path: string }): string;
export function contractPackages(): { readonly name: string; readonly version: string }[];
