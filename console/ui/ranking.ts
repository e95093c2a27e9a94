/** Which of many things a person means by a few letters: all words must occur, and the best fit comes first. */

export interface Choosable {
  readonly id: string;
  readonly title: string;
  /** Said beside it, and searched too. */
  readonly hint?: string | undefined;
}

export function ranked<T extends Choosable>(items: readonly T[], words: string, most: number): readonly T[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return items.slice(0, most);
  const scored = items.flatMap((item, place) => {
    const score = scoreOf(item, wanted);
    return score === null ? [] : [{ item, score, place }];
  });
  return scored
    .sort((a, b) => a.score - b.score || a.place - b.place)
    .slice(0, most)
    .map(({ item }) => item);
}

/** The lower the better; null if a word does not occur. */
function scoreOf({ title, hint = '' }: Choosable, wanted: readonly string[]): number | null {
  const name = title.toLowerCase();
  const all = `${name} ${hint.toLowerCase()}`;
  let score = 0;
  for (const word of wanted) {
    const at = all.indexOf(word);
    if (at === -1) return null;
    if (!name.includes(word)) score += 3;
    else if (!name.startsWith(word)) score += isWordStart(name, name.indexOf(word)) ? 1 : 2;
  }
  return score;
}

const isWordStart = (text: string, at: number) => at === 0 || /[^a-z0-9]/.test(text.charAt(at - 1));
