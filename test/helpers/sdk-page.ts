/** A web application of a few lines, with one of the SDKs in the browser: bundled, and served on this machine. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { build } from 'vite';

export interface SdkPage {
  readonly url: string;
  close(): Promise<void>;
}

/** `window.signIn()` begins; the text of the page is who is signed in, or what went wrong. */
const script = (sdk: string) => `
import { StackClientApp } from '${sdk}';
const app = new StackClientApp({
  ...window.settings, tokenStore: 'cookie', devTool: false, analytics: { enabled: false },
});
const show = (value) => { document.querySelector('output').textContent = JSON.stringify(value); };
const showError = (error) => show({ error: error.errorCode ?? String(error) });
window.signIn = (provider) => app.signInWithOAuth(provider).catch(showError);
window.signOut = () => app.signOut().catch(showError);
window.accounts = async () => {
  const user = await app.getUser();
  const { accessToken } = await user.currentSession.getTokens();
  const list = await user.listOAuthProviders();
  const connected = await user.getConnectedAccount('google').catch((error) => error.errorCode);
  const project = await app.getProject();
  return { accessToken, list: list.map(({ type, email }) => ({ type, email })), connected, offered: project.config.oauthProviders };
};
if (location.pathname === '/handler/oauth-callback') app.callOAuthCallback().catch(showError);
else app.getUser().then((user) => show(user && { id: user.id, email: user.primaryEmail, providers: user.oauthProviders }), showError);
`;

export async function servePage(sdk: string, settings: object): Promise<SdkPage> {
  const files = await bundle(sdk);
  const html = `<!doctype html><title>App</title><output></output>
<script>window.settings = ${JSON.stringify(settings)}; window.process = { env: {} };</script>
<script type="module" src="/app.js"></script>`;
  const server = createServer((request, response) => {
    const code = files.get(request.url ?? '');
    response.writeHead(200, { 'content-type': code === undefined ? 'text/html' : 'text/javascript' });
    response.end(code ?? html);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://localhost:${port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The code by its path. */
async function bundle(sdk: string): Promise<ReadonlyMap<string, string>> {
  const entry = 'virtual:app';
  const file = `${import.meta.dirname}/app.js`;
  const made = await build({
    configFile: false,
    logLevel: 'silent',
    define: { 'process.env.NODE_ENV': '"production"' },
    build: {
      write: false,
      minify: false,
      rollupOptions: { input: entry, output: { entryFileNames: 'app.js', chunkFileNames: '[name]-[hash].js' } },
    },
    plugins: [
      {
        name: 'app',
        resolveId: (id) => (id === entry ? file : undefined),
        load: (id) => (id === file ? script(sdk) : undefined),
      },
    ],
  });
  const [result] = Array.isArray(made) ? made : [made];
  if (result === undefined || !('output' in result)) throw new Error('there is no bundle');
  return new Map(result.output.flatMap((one) => (one.type === 'chunk' ? [[`/${one.fileName}`, one.code]] : [])));
}
