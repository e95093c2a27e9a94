/** The page without a sign-in. It is shown instead of every other page, so the address stays as it is. */
import { useSyncExternalStore } from 'react';
import { send } from '../api/client.ts';
import { sessionEnded } from '../api/watched-flag.ts';
import { useForm } from '../forms/use-form.ts';
import { Button } from '../ui/button.tsx';
import { TextField } from '../ui/field.tsx';
import { FailureLine, Form } from '../ui/form.tsx';
import { Logo } from '../ui/icons.tsx';

export function SignIn() {
  const form = useForm({
    initial: { key: '' },
    send: ({ key }) => send<object>('POST', '/console/session', { body: { api_key: key.trim() } }),
    refresh: [[]],
    onDone: () => sessionEnded.set(false),
  });
  const hasEnded = useSyncExternalStore(sessionEnded.watch, sessionEnded.get);
  return (
    <main className="sign-in">
      <title>Sign in · Catnap</title>
      <Form form={form} disabled={form.values.key.trim() === ''} className="card">
        <p className="brand">
          <Logo /> Catnap
        </p>
        <h1>Sign in</h1>
        {hasEnded && (
          <p className="ended" role="status">
            Your session has ended: its key was revoked, you signed out elsewhere, or 14 days have passed. Sign in to go
            on where you were.
          </p>
        )}
        <TextField
          label="API key"
          type="password"
          autoComplete="current-password"
          {...form.field('key')}
          required
          hint="Any key: a person’s, an organization’s, or one of a single project."
        />
        <FailureLine error={form.error} />
        <Button type="submit" tone="primary" busy={form.isBusy}>
          Sign in
        </Button>
        <p className="hint">
          On the machine that runs Catnap, <code>catnap open</code> opens this page signed in, and{' '}
          <code>catnap keys show</code> prints the first key; in a checkout begin with <code>npx</code>.
        </p>
      </Form>
    </main>
  );
}
