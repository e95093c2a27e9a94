/** Just enough of a mail server: it takes everything. */
import { once } from 'node:events';
import { createServer } from 'node:net';

export interface SmtpServer {
  readonly url: string;
  /** As they came, headers and all. */
  readonly mails: string[];
  close(): Promise<void>;
}

export async function startSmtpServer(): Promise<SmtpServer> {
  const mails: string[] = [];
  const server = createServer((socket) => {
    let data: string | null = null;
    let buffered = '';
    socket.on('error', () => {});
    socket.write('220 test\r\n');
    socket.on('data', (chunk) => {
      buffered += chunk.toString();
      for (let end = buffered.indexOf('\r\n'); end >= 0; end = buffered.indexOf('\r\n')) {
        const line = buffered.slice(0, end);
        buffered = buffered.slice(end + 2);
        if (data !== null && line !== '.') data += `${line}\n`;
        else if (data !== null) {
          mails.push(data);
          data = null;
          socket.write('250 taken\r\n');
        } else if (line === 'DATA') {
          data = '';
          socket.write('354 go on\r\n');
        } else if (line === 'QUIT') socket.end('221 bye\r\n');
        else socket.write('250 fine\r\n');
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `smtp://127.0.0.1:${port}?ignoreTLS=true`,
    mails,
    close: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}
