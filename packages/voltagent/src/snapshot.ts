/** In-memory cache of one log's live entries, updated from the file. */
import { fstatSync, readSync } from "node:fs";
import { crc32 } from "node:zlib";

import type { Item } from "./json.js";
import { apply, create, idOf, isPut, isTombstone, lifeOf } from "./line.js";
import { type Line, Scan } from "./scan.js";
import { type Microseconds, readTime } from "./time.js";

const CHECKED = 4096;

/** An entry, null once it is deleted, and its time. */
interface Placed {
  entry: Item | null;
  readonly ts: Microseconds;
}

interface State {
  size: bigint;
  mtime: bigint;
  inode: bigint;
}

/** Folds a log's lines into entries. If the log has only grown, reading again reads only the new lines. */
export class Snapshot {
  scan = new Scan();
  readonly #entries = new Map<string, Placed>();
  /** The last life of each id that has a tombstone in the log. */
  readonly #lives = new Map<string, number>();
  /** All entries, including deleted ones, ordered by time, then place. */
  #order: Placed[] = [];
  #isSorted = true;
  #state: State | null = null;
  #crc = 0;
  #provisional = false;

  /** Return the live entry with this id. */
  get(id: string): Item | undefined {
    return this.#entries.get(id)?.entry ?? undefined;
  }

  /** Return the number of the last life of an id that a tombstone ended; 0 if there is none. */
  lastLife(id: string): number {
    return this.#lives.get(id) ?? 0;
  }

  /** Return the newest live entries, ordered by time, then place. The objects are shared and must not be changed. */
  entries(limit = Infinity): Item[] {
    if (!this.#isSorted) {
      this.#order.sort((one, other) => Number(one.ts - other.ts));
      this.#isSorted = true;
    }
    const found: Item[] = [];
    for (let at = this.#order.length - 1; at >= 0 && found.length < limit; at -= 1) {
      const entry = this.#order[at]?.entry;
      if (entry) {
        found.push(entry);
      }
    }
    return found.reverse();
  }

  /** Update the entries to the current state of the log. */
  read(fd: number): void {
    // Use bigint: a number cannot hold nanoseconds since 1970, and a change within one microsecond would be missed.
    const { size, mtimeNs: mtime, ino: inode } = fstatSync(fd, { bigint: true });
    const state = this.#state;
    if (state?.size === size && state.mtime === mtime && state.inode === inode) {
      return;
    }
    // A changed log that did not grow, or whose last bytes before the old end differ, was rewritten. Then read all
    // entries again.
    if (state === null || this.#provisional || state.inode !== inode || state.size >= size || this.#changed(fd)) {
      this.scan = new Scan();
      this.#entries.clear();
      this.#lives.clear();
      [this.#order, this.#isSorted] = [[], true];
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
      if (known?.entry) {
        this.#lives.set(id, Math.max(lifeOf(known.entry), this.lastLife(id)));
      }
      if (known !== undefined) {
        // The item stays in the order, so that deleting needs no search.
        known.entry = null;
      }
    } else if (known?.entry) {
      known.entry = apply(known.entry, line.record);
    } else if (isPut(line.record)) {
      this.#place(id, create(line.record));
    }
  }

  #place(id: string, entry: Item): void {
    const placed = { entry, ts: readTime(entry.ts) ?? 0n };
    this.#isSorted &&= (this.#order.at(-1)?.ts ?? placed.ts) <= placed.ts;
    this.#entries.set(id, placed);
    this.#order.push(placed);
  }
}

function checksum(fd: number, offset: number): number {
  const length = Math.min(offset, CHECKED);
  const bytes = Buffer.alloc(length);
  readSync(fd, bytes, 0, length, offset - length);
  return crc32(bytes);
}
