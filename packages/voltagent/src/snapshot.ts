/** The live entries of one log in memory, kept in step with the file. */
import { fstatSync, readSync } from "node:fs";
import { crc32 } from "node:zlib";

import type { Item } from "./json.js";
import { apply, create, idOf, isPut, isTombstone } from "./line.js";
import { type Line, Scan } from "./scan.js";
import { readTime } from "./time.js";

const CHECKED = 4096;

interface State {
  size: bigint;
  mtime: bigint;
  inode: bigint;
}

/** Folds a log's lines into entries. Reading again takes in only what is new, as long as the log only grew. */
export class Snapshot {
  scan = new Scan();
  #entries = new Map<string, Item>();
  #state: State | null = null;
  #crc = 0;
  #provisional = false;

  /** Return the live entry of this id. */
  get(id: string): Item | undefined {
    return this.#entries.get(id);
  }

  /** Return the live entries by time, ties by place; shared objects, not to be changed. */
  entries(): Item[] {
    const timed = [...this.#entries.values()].map((entry) => ({ entry, ts: readTime(entry.ts) ?? 0n }));
    return timed.sort((one, other) => Number(one.ts - other.ts)).map(({ entry }) => entry);
  }

  /** Bring the entries to where the log is. */
  read(fd: number): void {
    const { size, mtimeNs: mtime, ino: inode } = fstatSync(fd, { bigint: true });
    const state = this.#state;
    if (state?.size === size && state.mtime === mtime && state.inode === inode) {
      return;
    }
    if (state === null || this.#provisional || state.inode !== inode || state.size >= size || this.#changed(fd)) {
      this.scan = new Scan();
      this.#entries.clear();
    }
    this.scan.read(fd, (line) => this.#fold(line));
    this.#state = { size, mtime, inode };
    this.#provisional = this.scan.rest.length > 0;
    this.#crc = checksum(fd, this.scan.settled);
  }

  #changed(fd: number): boolean {
    return checksum(fd, this.scan.settled) !== this.#crc;
  }

  #fold(line: Line): void {
    const id = line.record && idOf(line.record);
    if (line.record === null || id === null) {
      return;
    }
    const known = this.#entries.get(id);
    if (isTombstone(line.record)) {
      this.#entries.delete(id);
    } else if (known !== undefined) {
      this.#entries.set(id, apply(known, line.record));
    } else if (isPut(line.record)) {
      this.#entries.set(id, create(line.record));
    }
  }
}

function checksum(fd: number, offset: number): number {
  const length = Math.min(offset, CHECKED);
  const bytes = Buffer.alloc(length);
  readSync(fd, bytes, 0, length, offset - length);
  return crc32(bytes);
}
