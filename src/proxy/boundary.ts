/** Follows message lengths through a stream of chunks, to know whether it stands between two messages. */

const headerBytes = 5;

export class BoundaryTracker {
  /** Bytes of the current message still to come, its header aside. */
  #bodyLeft = 0;
  #headerSeen = 0;
  #length = 0;

  get isBetweenMessages(): boolean {
    return this.#bodyLeft === 0 && this.#headerSeen === 0;
  }

  feed(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#bodyLeft > 0) {
        const step = Math.min(this.#bodyLeft, chunk.length - at);
        this.#bodyLeft -= step;
        at += step;
      } else if (this.#headerSeen === 0 && chunk.length - at >= headerBytes) {
        this.#bodyLeft = Math.max(0, chunk.readUInt32BE(at + 1) - 4);
        at += headerBytes;
      } else {
        this.#feedHeaderByte(chunk[at] ?? 0);
        at += 1;
      }
    }
  }

  /** For a header that two chunks share. */
  #feedHeaderByte(byte: number): void {
    if (this.#headerSeen > 0) this.#length = this.#length * 256 + byte;
    this.#headerSeen += 1;
    if (this.#headerSeen < headerBytes) return;
    this.#bodyLeft = Math.max(0, this.#length - 4);
    this.#headerSeen = 0;
    this.#length = 0;
  }
}
