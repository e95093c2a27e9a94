/** The keys of the auth provider's SDK, as the lines that an app needs. They are shown once. */
import type { CreateNeonAuthProviderSDKKeysReply } from '../api/generated.ts';
import { CopyButton } from '../ui/bits.tsx';
import { Dialog } from '../ui/dialog.tsx';

export type SdkKeys = CreateNeonAuthProviderSDKKeysReply;

export function environmentLines(keys: SdkKeys): string {
  return [
    ...(keys.base_url === undefined ? [] : [`NEXT_PUBLIC_STACK_API_URL=${keys.base_url}`]),
    `NEXT_PUBLIC_STACK_PROJECT_ID=${keys.auth_provider_project_id}`,
    `NEXT_PUBLIC_STACK_PUBLISHABLE_CLIENT_KEY=${keys.pub_client_key}`,
    `STACK_SECRET_SERVER_KEY=${keys.secret_server_key}`,
  ].join('\n');
}

export function AuthKeysDialog({ keys, onClose }: { readonly keys: SdkKeys; readonly onClose: () => void }) {
  const lines = environmentLines(keys);
  return (
    <Dialog title="Keys for your app" onClose={onClose} wide>
      <div className="dialog-body">
        <p>Copy these lines into the environment of your app now: the secret key is not shown again.</p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach it. */}
        <pre className="code-block" tabIndex={0}>
          {lines}
        </pre>
        <div className="row">
          <CopyButton text={lines} label="Copy the lines">
            Copy
          </CopyButton>
        </div>
      </div>
    </Dialog>
  );
}
