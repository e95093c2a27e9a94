type Schemas = Readonly<Record<string, object>>;

/** `document` is the parsed OpenAPI document, `unversioned` the schemas of replies that it leaves out, by name. */
export function renderConsoleTypes(document: object, unversioned: Schemas): string;
export function renderCliTypes(document: object, unversioned: Schemas): string;
/** `kinds` is that field of `src/compute/kubernetes/objects/schemas.json`. */
export function renderKubernetesTypes(kinds: Schemas): string;
