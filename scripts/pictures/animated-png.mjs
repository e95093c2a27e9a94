/** Screenshots of one size put together into one picture that moves (APNG); browsers and GitHub show it. */
import { chunk, cut, decode, difference, headerOf, idat, number, signature } from './png.mjs';

/** `frames` have a `file`, which is a PNG, and how many `seconds` it is shown; the whole begins again at its end. */
export function animate(frames) {
  const pictures = frames.map(({ file, seconds }) => ({ ...decode(file), seconds }));
  const [first] = pictures;
  if (pictures.some(({ width, height, channels }) => `${[width, height, channels]}` !== `${shapeOf(first)}`)) {
    throw new Error('the pictures differ in size or in kind');
  }
  const parts = changesOf(pictures);
  let sequence = 0;
  const chunks = parts.flatMap(({ picture, area, seconds }, index) => {
    const control = frameControl(sequence++, area, seconds);
    // The first picture is also what programs show that know nothing of the others.
    if (index === 0) return [control, chunk('IDAT', idat(picture))];
    return [control, chunk('fdAT', Buffer.concat([number(sequence++), idat(picture)]))];
  });
  return Buffer.concat([
    signature,
    headerOf(first),
    chunk('acTL', Buffer.concat([number(parts.length), number(0)])),
    ...chunks,
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

const shapeOf = ({ width, height, channels }) => [width, height, channels];

/** Of each picture only what is new in it. One that is like the picture before lets that one stay longer. */
function changesOf(pictures) {
  const parts = [];
  for (const [index, picture] of pictures.entries()) {
    const { width, height, seconds } = picture;
    const area = index === 0 ? { x: 0, y: 0, width, height } : difference(pictures[index - 1], picture);
    if (area === null) parts.at(-1).seconds += seconds;
    else parts.push({ picture: cut(picture, area), area, seconds });
  }
  return parts;
}

function frameControl(sequence, { x, y, width, height }, seconds) {
  const fractions = Buffer.alloc(6);
  fractions.writeUInt16BE(Math.round(seconds * 100), 0);
  fractions.writeUInt16BE(100, 2);
  return chunk('fcTL', Buffer.concat([...[sequence, width, height, x, y].map(number), fractions]));
}
