/** Images of Postgres: the tag begins with the version, by which the operator knows it, and so does Catnap. */

/** The tag, with a digest behind it if there is one; empty for an image without a tag. */
export function releaseOf(image: string): string {
  const name = image.split('/').at(-1) ?? '';
  return name.includes(':') ? name.slice(name.indexOf(':') + 1) : '';
}
