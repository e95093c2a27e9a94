import type { settingDocs } from '../src/lib/config.ts';
import type { ErrorKindFacts } from '../src/lib/errors.ts';

export function renderErrors(errorKinds: Readonly<Record<string, ErrorKindFacts>>): string;
export function renderSettings(docs: typeof settingDocs): string;
export function withSettings(readme: string, docs: typeof settingDocs): string;
