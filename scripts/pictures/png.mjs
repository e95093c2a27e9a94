/**
 * PNG files as pixels and back, as far as a browser's screenshots need it: 8 bits a channel, no palette, not
 * interlaced. Written again with the best compression they are smaller, and parts of them can be cut out.
 */
import { constants, deflateSync, inflateSync } from 'node:zlib';

export const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const channelsOf = { 2: 3, 6: 4 };

/** Width, height, channels (3, or 4 with opacity), and the bytes of the pixels from left to right, top to bottom. */
export function decode(file) {
  const chunks = chunksOf(file);
  const header = chunks.find(({ type }) => type === 'IHDR').body;
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const channels = channelsOf[header[9]];
  if (header[8] !== 8 || channels === undefined || header[12] !== 0) throw new Error('a kind of PNG that is not read');
  const packed = Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ body }) => body));
  return { width, height, channels, pixels: unfilter(inflateSync(packed), width * channels, height, channels) };
}

/** The whole file; `idat` has the compressed pixels alone. */
export function encode(picture) {
  return Buffer.concat([signature, headerOf(picture), chunk('IDAT', idat(picture)), chunk('IEND', Buffer.alloc(0))]);
}

export function headerOf({ width, height, channels }) {
  const kind = Object.keys(channelsOf).find((key) => channelsOf[key] === channels);
  return chunk('IHDR', Buffer.concat([number(width), number(height), Buffer.from([8, Number(kind), 0, 0, 0])]));
}

/** Flat areas compress best as they are, a slope between two colours does not. The smaller result is taken. */
export function idat({ width, height, channels, pixels }) {
  const stride = width * channels;
  const ways = [0, 2].map((filter) => {
    const lines = Buffer.alloc((stride + 1) * height);
    for (let y = 0; y < height; y += 1) {
      const to = y * (stride + 1);
      lines[to] = filter;
      for (let x = 0; x < stride; x += 1) {
        const above = filter === 0 || y === 0 ? 0 : pixels[(y - 1) * stride + x];
        lines[to + 1 + x] = pixels[y * stride + x] - above;
      }
    }
    return deflateSync(lines, { level: constants.Z_BEST_COMPRESSION, memLevel: 9 });
  });
  return ways[0].length <= ways[1].length ? ways[0] : ways[1];
}

export function cut({ width, channels, pixels }, area) {
  const part = Buffer.alloc(area.width * area.height * channels);
  for (let y = 0; y < area.height; y += 1) {
    const from = ((area.y + y) * width + area.x) * channels;
    pixels.copy(part, y * area.width * channels, from, from + area.width * channels);
  }
  return { width: area.width, height: area.height, channels, pixels: part };
}

/** The smallest area that holds every pixel in which two pictures of one size differ; null if there is none. */
export function difference(before, after) {
  const { width, height, channels } = after;
  const stride = width * channels;
  let [left, right, top, bottom] = [stride, -1, height, -1];
  for (let y = 0; y < height; y += 1) {
    const [a, b] = [before, after].map(({ pixels }) => pixels.subarray(y * stride, (y + 1) * stride));
    if (a.equals(b)) continue;
    top = Math.min(top, y);
    bottom = y;
    let from = 0;
    while (a[from] === b[from]) from += 1;
    let to = stride - 1;
    while (a[to] === b[to]) to -= 1;
    left = Math.min(left, from);
    right = Math.max(right, to);
  }
  if (bottom === -1) return null;
  const x = Math.floor(left / channels);
  return { x, y: top, width: Math.floor(right / channels) - x + 1, height: bottom - top + 1 };
}

export function number(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function chunk(type, body) {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), body]);
  return Buffer.concat([number(body.length), named, number(checksum(named))]);
}

function chunksOf(file) {
  if (!file.subarray(0, signature.length).equals(signature)) throw new Error('not a PNG file');
  const found = [];
  for (let at = signature.length; at < file.length; ) {
    const length = file.readUInt32BE(at);
    const type = file.toString('latin1', at + 4, at + 8);
    found.push({ type, body: file.subarray(at + 8, at + 8 + length) });
    at += length + 12;
  }
  return found;
}

function unfilter(lines, stride, height, channels) {
  const pixels = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y += 1) {
    const filter = lines[y * (stride + 1)];
    for (let x = 0; x < stride; x += 1) {
      const at = y * stride + x;
      const left = x < channels ? 0 : pixels[at - channels];
      const above = y === 0 ? 0 : pixels[at - stride];
      const corner = x < channels || y === 0 ? 0 : pixels[at - stride - channels];
      pixels[at] = lines[y * (stride + 1) + 1 + x] + predictions[filter](left, above, corner);
    }
  }
  return pixels;
}

/** By the number of the filter, as the standard has them. */
const predictions = [
  () => 0,
  (left) => left,
  (_left, above) => above,
  (left, above) => (left + above) >> 1,
  (left, above, corner) => {
    const guess = left + above - corner;
    const toLeft = Math.abs(guess - left);
    const toAbove = Math.abs(guess - above);
    const toCorner = Math.abs(guess - corner);
    if (toLeft <= toAbove && toLeft <= toCorner) return left;
    return toAbove <= toCorner ? above : corner;
  },
];

const table = Int32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit += 1) rest = (rest >>> 1) ^ (rest & 1 ? 0xedb88320 : 0);
  return rest;
});

function checksum(bytes) {
  let rest = -1;
  for (const byte of bytes) rest = table[(rest ^ byte) & 255] ^ (rest >>> 8);
  return (rest ^ -1) >>> 0;
}
