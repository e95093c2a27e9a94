// biome-ignore lint/suspicious/noExplicitAny: any module of src/, whose types its caller imports.
export function loadSource(names: readonly string[]): Promise<Record<string, any>>;
