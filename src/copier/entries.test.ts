import { expect, test } from 'vitest';
import { entriesOf, stageOf, takeOwner, withOwner, withRoles } from './entries.ts';

const script = `--
-- PostgreSQL database dump
--

SET statement_timeout = 0;

--
-- Name: odd; Type: FUNCTION; Schema: public; Owner: me
--

CREATE FUNCTION public.odd() RETURNS void LANGUAGE sql AS $$
ALTER TABLE x OWNER TO nobody;
$$;


ALTER FUNCTION public.odd() OWNER TO me;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: TABLE t; Type: ACL; Schema: public; Owner: me
--

SET SESSION AUTHORIZATION me;
GRANT SELECT ON TABLE public.t TO me;
RESET SESSION AUTHORIZATION;
REVOKE ALL ON TABLE public.t FROM "Some One";
GRANT SELECT ON TABLE public.t TO PUBLIC;

--
-- Name: last; Type: TABLE; Schema: public; Owner: me
--

CREATE TABLE public.last ();


ALTER TABLE public.last OWNER TO me;

--
-- PostgreSQL database dump complete
--

\\unrestrict word

`;

test('a script is its entries, without what stands before them', () => {
  expect(entriesOf(script).map(({ kind, name }) => [kind, name])).toEqual([
    ['FUNCTION', 'odd'],
    ['ACL', 'TABLE t'],
    ['TABLE', 'last'],
  ]);
});

test('the owner is taken from the end of an entry, and never from a body', () => {
  const [odd = { kind: '', name: '', text: '' }] = entriesOf(script);
  const { entry, owners } = takeOwner(odd);
  expect(entry.text).toContain('ALTER TABLE x OWNER TO nobody;');
  expect(entry.text).not.toContain('OWNER TO me');
  expect(entry.text).toMatch(/SET default_table_access_method = heap;$/);
  const names = new Map([['me', '"Copier"']]);
  expect(owners.map((one) => withOwner(one, names).text)).toEqual(['ALTER FUNCTION public.odd() OWNER TO "Copier";']);
  const last = entriesOf(script).slice(-1).map(takeOwner);
  expect(last.map((taken) => [taken.entry.text, taken.owners.map(({ text }) => text)])).toEqual([
    ['CREATE TABLE public.last ();', ['ALTER TABLE public.last OWNER TO me;']],
  ]);
  expect(takeOwner({ kind: 'TABLE', name: 't', text: 'CREATE TABLE t ();' }).owners).toEqual([]);
});

test('roles get their names in the target', () => {
  const names = new Map([
    ['me', 'copier'],
    ['"Some One"', 'someone'],
  ]);
  const rights = entriesOf(script)[1] ?? { kind: '', name: '', text: '' };
  expect(withRoles(rights, names).text.split('\n')).toEqual([
    'GRANT SELECT ON TABLE public.t TO copier;',
    'REVOKE ALL ON TABLE public.t FROM someone;',
    'GRANT SELECT ON TABLE public.t TO PUBLIC;',
  ]);
  const policy = {
    kind: 'POLICY',
    name: 'p',
    text: `CREATE POLICY p ON t TO me, other USING ((a = ' TO me;'::text));`,
  };
  expect(withRoles(policy, names).text).toBe(`CREATE POLICY p ON t TO copier, other USING ((a = ' TO me;'::text));`);
  const later = {
    kind: 'DEFAULT ACL',
    name: 'd',
    text: 'ALTER DEFAULT PRIVILEGES FOR ROLE me GRANT SELECT ON TABLES TO you;',
  };
  expect(withRoles(later, names).text).toBe('ALTER DEFAULT PRIVILEGES FOR ROLE copier GRANT SELECT ON TABLES TO you;');
});

test('what depends on whole rows comes last', () => {
  const kinds = ['INDEX', 'CONSTRAINT', 'MATERIALIZED VIEW DATA', 'FK CONSTRAINT', 'TRIGGER', 'POLICY', 'ROW SECURITY'];
  expect(kinds.map(stageOf)).toEqual(['indexes', 'indexes', 'views', 'rules', 'rules', 'rules', 'rules']);
});
