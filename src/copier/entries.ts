/**
 * A script of pg_dump as what it consists of: entries with a kind and a name. Owners are taken out of them, to be given
 * at the end, because until then the role that copies must own everything; and roles get their names in the target.
 */

export interface Entry {
  /** As pg_dump names it, such as `TABLE` or `FK CONSTRAINT`. */
  readonly kind: string;
  readonly name: string;
  readonly text: string;
}

const head = /^--\n-- Name: (.*); Type: ([A-Z ]+); Schema: .*\n--\n/gm;
/** The last statement of an entry; the settings behind it are for the next one. */
const owner = /(?:^|\n\n)(ALTER [^\n]* OWNER TO (?:"(?:[^"]|"")+"|[^\s";]+);)((?:\s*SET default_\w+ = [^\n]*;)*)$/;

const foot = /^--\n-- PostgreSQL database dump complete\n--\n[\s\S]*$/m;

/** What stands before the first one are settings, which the copy has of its own. */
export function entriesOf(dumped: string): readonly Entry[] {
  const script = dumped.replace(foot, '');
  const heads = [...script.matchAll(head)];
  return heads.map((match, at) => {
    const [whole, name = '', kind = ''] = match;
    const text = script.slice(match.index + whole.length, heads[at + 1]?.index ?? script.length);
    return { kind, name, text: text.trim() };
  });
}

export interface Taken {
  readonly entry: Entry;
  readonly owners: readonly Entry[];
}

export function takeOwner(entry: Entry): Taken {
  const [whole, statement] = owner.exec(entry.text) ?? [];
  if (whole === undefined || statement === undefined) return { entry, owners: [] };
  const { kind, name } = entry;
  const text = entry.text.slice(0, -whole.length) + whole.replace(statement, '');
  return { entry: { kind, name, text: text.trim() }, owners: [{ kind, name, text: statement }] };
}

/** What is made behind the rows. Views are filled before policies could hide rows from them. */
export function stageOf(kind: string): 'indexes' | 'views' | 'rules' {
  if (kind === 'MATERIALIZED VIEW DATA') return 'views';
  return /^(INDEX|CONSTRAINT|INDEX ATTACH|STATISTICS)$/.test(kind) ? 'indexes' : 'rules';
}

/** A copy is whole without these where the target does not let its owner make them. */
export const mayBeLeftOut = (kind: string) =>
  /^(ACL|DEFAULT ACL|COMMENT|EVENT TRIGGER|SECURITY LABEL|PROCEDURAL LANGUAGE|FOREIGN DATA WRAPPER)$/.test(kind);

/** Rights and policies name roles at places that are easy to tell; `names` has those that are called otherwise here. */
export function withRoles({ kind, name, text }: Entry, names: ReadonlyMap<string, string>): Entry {
  const renamed = (given: string) => names.get(given) ?? given;
  if (kind === 'ACL' || kind === 'DEFAULT ACL') {
    const lines = text
      .split('\n')
      // Who granted it is lost: to act as somebody else takes a superuser.
      .filter((line) => !/^(SET|RESET) SESSION AUTHORIZATION\b/.test(line))
      .map((line) => line.replaceAll(grantee, (_all, word: string, role: string) => `${word} ${renamed(role)}`));
    return { kind, name, text: lines.join('\n') };
  }
  if (kind !== 'POLICY') return { kind, name, text };
  const changed = text.replace(policyRoles, (_all, before: string, roles: string) => {
    return `${before}${roles.split(', ').map(renamed).join(', ')}`;
  });
  return { kind, name, text: changed };
}

const identifier = '"(?:[^"]|"")+"|[a-z_][\\w$]*';
const grantee = new RegExp(`\\b(TO|FROM|FOR ROLE) (${identifier})`, 'g');
const policyRoles = new RegExp(`( TO )((?:${identifier})(?:, (?:${identifier}))*)(?= USING| WITH|;)`);

export function ownerOf({ text }: Entry): string {
  return /OWNER TO (.*);$/.exec(text)?.[1] ?? '';
}

export function withOwner(entry: Entry, names: ReadonlyMap<string, string>): Entry {
  const role = ownerOf(entry);
  return { ...entry, text: `${entry.text.slice(0, -role.length - 1)}${names.get(role) ?? role};` };
}
