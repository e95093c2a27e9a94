/** Gives the person a file. */

export function download(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser has taken its hold of the content by then.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
