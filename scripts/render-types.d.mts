type Schemas = Readonly<Record<string, object>>;

/** `document` is the parsed OpenAPI document, `unversioned` the schemas of replies that it leaves out, by name. */
export function renderConsoleTypes(document: object, unversioned: Schemas): string;
export function renderCliTypes(document: object, unversioned: Schemas): string;
