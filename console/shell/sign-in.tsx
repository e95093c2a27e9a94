/** The page for those who are not signed in. It takes the place of every other, so the address stays as it is. */
import { useState } from 'react';
import { useAction } from '../api/action.ts';
import { send } from '../api/client.ts';
import { Button } from '../ui/button.tsx';
import { TextField } from '../ui/field.tsx';
import { Logo } from '../ui/icons.tsx';

export function SignIn() {
  const [key, setKey] = useState('');
  const signIn = useAction(
    (apiKey: string) => send<object>('POST', '/console/session', { body: { api_key: apiKey } }),
    { refresh: [[]], showsFailure: true },
  );
  return (
    <main className="sign-in">
      <title>Sign in · Catnap</title>
      <form
        className="card"
        onSubmit={(event) => {
          event.preventDefault();
          if (key.trim() !== '') signIn.mutate(key.trim());
        }}
      >
        <p className="brand">
          <Logo /> Catnap
        </p>
        <h1>Sign in</h1>
        <TextField
          label="API key"
          type="password"
          autoComplete="current-password"
          value={key}
          onChange={setKey}
          required
          hint="Any key: a person’s, an organization’s, or one of a single project."
        />
        {signIn.error !== null && (
          <p className="failure-line" role="alert">
            {signIn.error.message}
          </p>
        )}
        <Button type="submit" tone="primary" busy={signIn.isPending}>
          Sign in
        </Button>
        <p className="hint">
          The first key was printed at the first start. On the machine that runs Catnap, <code>catnap keys show</code>{' '}
          shows it again.
        </p>
      </form>
    </main>
  );
}
