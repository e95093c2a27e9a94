/** Copying. The browser's clipboard is there on https and on this machine only; elsewhere the old command does it. */
import { notify } from './notices.ts';

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    if (copyByCommand(text)) return true;
  }
  notify('bad', 'The browser does not let the page copy; select the text.');
  return false;
}

function copyByCommand(text: string): boolean {
  const give = (event: ClipboardEvent) => {
    event.clipboardData?.setData('text/plain', text);
    event.preventDefault();
  };
  document.addEventListener('copy', give, { once: true, capture: true });
  const isDone = document.execCommand('copy');
  document.removeEventListener('copy', give, { capture: true });
  return isDone;
}
