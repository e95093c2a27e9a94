/** Pictures of one size, as PNG files, put together into one that moves (APNG); browsers and GitHub show it. */

const signatureBytes = 8;

/** Each shown for `seconds`, again and again. */
export function animate(pictures, seconds) {
  const frames = pictures.map((picture) => chunksOf(picture));
  const header = only(frames[0], 'IHDR');
  for (const chunks of frames) {
    if (!only(chunks, 'IHDR').equals(header)) throw new Error('the pictures differ in size or in kind');
  }
  let sequence = 0;
  const parts = frames.flatMap((chunks, index) => {
    const control = frameControl(sequence++, header, seconds);
    const data = chunks.filter(({ type }) => type === 'IDAT').map(({ body }) => body);
    // The first picture is also what programs show that know nothing of the others.
    if (index === 0) return [control, ...data.map((body) => chunk('IDAT', body))];
    return [control, ...data.map((body) => chunk('fdAT', Buffer.concat([number(sequence++), body])))];
  });
  return Buffer.concat([
    pictures[0].subarray(0, signatureBytes),
    chunk('IHDR', header),
    chunk('acTL', Buffer.concat([number(frames.length), number(0)])),
    ...parts,
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunksOf(picture) {
  const found = [];
  for (let at = signatureBytes; at < picture.length; ) {
    const length = picture.readUInt32BE(at);
    const type = picture.toString('latin1', at + 4, at + 8);
    found.push({ type, body: picture.subarray(at + 8, at + 8 + length) });
    at += length + 12;
  }
  return found;
}

const only = (chunks, wanted) => chunks.find(({ type }) => type === wanted).body;

function frameControl(sequence, header, seconds) {
  const fractions = Buffer.alloc(6);
  fractions.writeUInt16BE(Math.round(seconds * 100), 0);
  fractions.writeUInt16BE(100, 2);
  const size = header.subarray(0, 8);
  return chunk('fcTL', Buffer.concat([number(sequence), size, number(0), number(0), fractions]));
}

function number(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function chunk(type, body) {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), body]);
  return Buffer.concat([number(body.length), named, number(checksum(named))]);
}

function checksum(bytes) {
  let rest = 0xffffffff;
  for (const byte of bytes) {
    rest ^= byte;
    for (let bit = 0; bit < 8; bit += 1) rest = (rest >>> 1) ^ (rest & 1 ? 0xedb88320 : 0);
  }
  return (rest ^ 0xffffffff) >>> 0;
}
