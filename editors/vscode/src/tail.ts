/** A file that others append to and rotate: what is new in it since the last look. */

import { type FileHandle, open } from "node:fs/promises";

/** At the first look, no more than this many bytes from its end. */
const FIRST_BYTES = 256 * 1024;

interface Place {
  inode: bigint;
  offset: bigint;
}

export class Tail {
  private readonly path: string;
  private place: Place | undefined;
  private looking: Promise<string> = Promise.resolve("");

  constructor(path: string) {
    this.path = path;
  }

  /** Whole lines that were appended since the last look; "" where there is no file. Looks queue up. */
  next(): Promise<string> {
    this.looking = this.looking.catch(() => "").then(() => this.look());
    return this.looking;
  }

  private async look(): Promise<string> {
    const before = this.place;
    const rest = before ? await this.rest(before) : "";
    return rest + (await this.read(this.path, (inode) => this.from(inode, before)));
  }

  /** What was left in a file that has been rotated away meanwhile. */
  private rest(before: Place): Promise<string> {
    return this.read(`${this.path}.1`, (inode) =>
      inode === before.inode ? before.offset : undefined,
    );
  }

  private from(inode: bigint, before: Place | undefined): bigint {
    return before?.inode === inode ? before.offset : 0n;
  }

  private async read(path: string, from: (inode: bigint) => bigint | undefined): Promise<string> {
    let file: FileHandle;
    try {
      file = await open(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
      throw error;
    }
    try {
      const { ino, size } = await file.stat({ bigint: true });
      const wanted = from(ino);
      if (wanted === undefined) return "";
      const start = this.start(wanted > size ? 0n : wanted, size);
      const text = await bytes(file, start, size);
      const end = text.lastIndexOf(10) + 1;
      this.place = { inode: ino, offset: start + BigInt(end) };
      return text.subarray(0, end).toString("utf8");
    } finally {
      await file.close();
    }
  }

  private start(wanted: bigint, size: bigint): bigint {
    const first = this.place === undefined && size > FIRST_BYTES;
    return first ? size - BigInt(FIRST_BYTES) : wanted;
  }
}

async function bytes(file: FileHandle, start: bigint, end: bigint): Promise<Buffer> {
  const into = Buffer.alloc(Number(end - start));
  const { bytesRead } = await file.read(into, 0, into.length, Number(start));
  return into.subarray(0, bytesRead);
}
