/** The NDJSON log of one session, the source of truth. Reading needs no lock, writing holds the session's lock. */
import { closeSync, constants, fdatasync, fstatSync, ftruncateSync, fsyncSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual, promisify } from "node:util";

import { CorruptLogError, KeepstoneError, StoreError } from "./errors.js";
import { type Folder, ifThere } from "./folder.js";
import type { Item } from "./json.js";
import { ARCHIVE, archiveFile, lockFile, logOf, PREPARED, TEMPORARY } from "./layout.js";
import { apply, checkSize, create, dump, inBatch, inNextLife, saidBy } from "./line.js";
import { erasedLives, livesIn, recordErased } from "./lives.js";
import { type Held, Lock } from "./lock.js";
import { without } from "./rewriting.js";
import { whole } from "./scan.js";
import { Snapshot } from "./snapshot.js";

const { O_APPEND, O_CREAT, O_RDONLY, O_RDWR } = constants;
const syncFile = promisify(fdatasync);

/** One session's log in a folder of logs. */
export class Log {
  readonly name: string;
  readonly #folder: Folder;
  readonly #lock: Lock;
  readonly #check: (() => boolean) | undefined;
  readonly #snapshot = new Snapshot();
  #fresh = true;

  /** `check`, for names that people chose, returns whether the session has another file now. */
  constructor(folder: Folder, name: string, check?: () => boolean) {
    this.name = name;
    this.#check = check;
    this.#folder = folder;
    this.#lock = new Lock(folder, lockFile(name));
  }

  /** Whether a write is running or waiting for its turn. */
  get busy(): boolean {
    return this.#lock.busy;
  }

  /** Whether the session has another file now, so that this file must not be written. */
  get isRenamed(): boolean {
    return this.#check?.() ?? false;
  }

  /** Return the newest live entries, ordered by time, then place. The objects are shared and must not be changed. */
  entries(limit?: number): Item[] {
    const fd = ifThere(() => this.#folder.open(this.name, O_RDONLY));
    if (fd === null) {
      return [];
    }
    try {
      this.#snapshot.read(fd);
      return this.#snapshot.entries(limit);
    } finally {
      closeSync(fd);
    }
  }

  /** Return the live entry with this id. The object is shared and must not be changed. */
  get(id: string): Item | undefined {
    // Update the snapshot; with limit 0 this returns no entries.
    this.entries(0);
    return this.size() === null ? undefined : this.#snapshot.get(id);
  }

  /** Return the entries that are only in the archive. The objects are shared and must not be changed. */
  archived(): Item[] {
    const fd = ifThere(() => this.#folder.open(archiveFile(this.name), O_RDONLY));
    if (fd === null) {
      return [];
    }
    try {
      const archive = new Snapshot();
      archive.read(fd);
      return archive.entries().filter(({ id }) => this.get(String(id)) === undefined);
    } finally {
      closeSync(fd);
    }
  }

  /** Return a tag that changes with every write to the log, null if the log is missing. */
  tag(): string | null {
    const status = this.size() === null ? null : this.#folder.stat(this.name);
    return status && `${status.ino}-${status.size}-${status.mtimeNs}`;
  }

  /** Return the log's size in bytes, null if the log is missing. */
  size(): number | null {
    const status = this.#folder.exists() ? this.#folder.stat(this.name) : null;
    if (status !== null && !status.isFile()) {
      throw new CorruptLogError(`${join(this.#folder.path, this.name)} is a folder, link or device: move it away`);
    }
    return status && Number(status.size);
  }

  /** Create an empty log if it is missing. */
  async create(): Promise<void> {
    await this.#writing(async () => undefined);
  }

  /**
   * Put records atomically in one write, and return the resulting entries.
   *
   * `records` gets the time of the last line, so that new records are not older.
   */
  async put(records: (newest: bigint | null) => Item[]): Promise<Item[]> {
    return this.#writing(async (fd) => {
      this.#snapshot.read(fd);
      const { needed, results } = this.#resolved(records(this.#snapshot.scan.ts));
      await this.#append(fd, inBatch(needed.map(dump)));
      return results;
    });
  }

  /** Write a tombstone; return false, and write nothing, if the entry is missing. */
  async delete(id: string, ts: string): Promise<boolean> {
    if (this.size() === null) {
      return false;
    }
    return this.#writing(async (fd) => {
      this.#snapshot.read(fd);
      const found = this.#snapshot.get(id) !== undefined;
      if (found) {
        await this.#append(fd, [dump({ id, deleted: true, ts })]);
      }
      return found;
    });
  }

  /**
   * Remove every line of some entries from the log, its archive and copies of both; return the number of lines.
   *
   * The erasure journal is written first: the next sync or merge erases the entries that it names, even if this
   * process is killed. The log is rewritten last: until then all of the log's entries stay.
   */
  async purge(ids: ReadonlySet<string>): Promise<number> {
    if (this.size() === null && this.#archived().length === 0) {
      return 0;
    }
    return this.#holding(async (held) => this.#erasing(ids, false, (begun) => {
      held.mark();
      this.#removePrepared();
      const temporaryOf = (name: string): string => (name === this.name ? this.name : archiveFile(this.name)) + TEMPORARY;
      const names = [...this.#archived().map((name) => join(ARCHIVE, name)), ...(this.size() === null ? [] : [this.name])];
      const removed = names.map((name) => {
        const count = without(this.#folder, name, ids, temporaryOf(name));
        begun(count > 0);
        return count;
      });
      held.unmark();
      return removed.reduce((sum, count) => sum + count, 0);
    }));
  }

  /**
   * Empty the log to zero bytes and remove its archive; return the old size, null if the log is missing.
   *
   * Here and in `remove`, `check` is called while the lock is held; an error that it throws cancels the change.
   */
  async clear(check?: () => void): Promise<number | null> {
    if (this.size() === null) {
      return null;
    }
    return this.#writing(async (fd) => {
      check?.();
      return this.#erasing(null, false, (begun) => {
        const size = fstatSync(fd).size;
        begun(true);
        this.#removePrepared();
        this.#removeArchive();
        ftruncateSync(fd, 0);
        fsyncSync(fd);
        return size;
      });
    });
  }

  /** Remove the log with its archive and lock file; return false if the log is missing. */
  async remove(check?: () => void): Promise<boolean> {
    if (this.size() === null && this.#archived().length === 0) {
      return false;
    }
    return this.#holding(async (held) => {
      check?.();
      const there = this.size() !== null;
      await this.#erasing(null, true, (begun) => {
        begun(true);
        this.#removePrepared();
        this.#removeArchive();
        this.#folder.unlink(this.name);
        this.#folder.sync();
      });
      held.remove();
      return there;
    });
  }

  /** Record the erasure of some or all entries; withdraw the record if `act` fails before it has erased anything. */
  async #erasing<T>(ids: ReadonlySet<string> | null, isGone: boolean, act: (begun: (is: boolean) => void) => T): Promise<T> {
    const lives = livesIn(this.#folder, [archiveFile(this.name), this.name]);
    const ended = new Map(Array.from(lives).filter(([id]) => ids?.has(id) ?? true));
    const withdraw = await recordErased(this.#folder, this.name, ended, isGone);
    let isBegun = false;
    try {
      return act((is) => (isBegun ||= is));
    } catch (error) {
      if (!isBegun) {
        await withdraw();
      }
      throw error;
    }
  }

  /** Remove files that Python has prepared to replace the log or archive: Python notices and begins again. */
  #removePrepared(): void {
    this.#prepared().forEach((name) => this.#folder.unlink(name));
  }

  #prepared(): string[] {
    return [this.name + PREPARED, archiveFile(this.name) + PREPARED];
  }

  #removeArchive(): void {
    this.#archived().forEach((name) => this.#folder.unlink(join(ARCHIVE, name)));
    this.#folder.sync(ARCHIVE);
  }

  #archived(): string[] {
    const files = this.#folder.entries(ARCHIVE).filter((entry) => entry.isFile());
    return files.map(({ name }) => name).filter((name) => logOf(name) === this.name);
  }

  async #holding<T>(act: (held: Held) => Promise<T>): Promise<T> {
    return this.#lock.hold(async (held) => {
      if (this.isRenamed) {
        throw new StoreError(`${join(this.#folder.path, this.name)} was renamed; nothing was written: try again`);
      }
      if (held.marked || this.#fresh) {
        // Remove files that a killed rewrite of another process left.
        this.#folder.unlink(this.name + TEMPORARY);
        this.#folder.unlink(archiveFile(this.name) + TEMPORARY);
        const isInUse = this.#prepared().map((name) => held.removeLeft(name));
        if (isInUse.includes(true)) {
          held.mark();
        } else {
          held.unmark();
        }
        this.#fresh = false;
      }
      return act(held);
    });
  }

  async #writing<T>(act: (fd: number) => Promise<T>): Promise<T> {
    this.#folder.make();
    return this.#holding(async () => {
      const fd = this.#folder.open(this.name, O_RDWR | O_APPEND | O_CREAT);
      try {
        if (fstatSync(fd).size === 0) {
          // Sync even if another process created the file: it may have been killed before it synced the folder.
          this.#folder.sync();
        }
        return await act(fd);
      } finally {
        closeSync(fd);
      }
    });
  }

  #resolved(records: Item[]): { needed: Item[]; results: Item[] } {
    const current = new Map<string, Item>();
    const needed: Item[] = [];
    // An id whose earlier life was erased begins the next life: otherwise the erasure, once merged, would also erase
    // the new entry.
    const isNew = (id: string): boolean => this.#snapshot.get(id) === undefined;
    const lives = erasedLives(this.#folder, this.name, records.map(({ id }) => String(id)).filter(isNew));
    const results = records.map((record) => {
      const id = String(record.id);
      const there = current.get(id) ?? this.#snapshot.get(id);
      const last = Math.max(lives.get(id) ?? 0, this.#snapshot.lastLife(id));
      const line = there ? withoutOldVector(there, record) : inNextLife(record, last);
      const result = there ? apply(there, line) : create(line);
      if (there) {
        // A patch may be short although its entry is then too long for the single line that a rewrite writes.
        checkSize(result);
      }
      needed.push(line);
      current.set(id, result);
      return result;
    });
    return { needed, results };
  }

  /** Append whole lines in one write and sync them. If this fails, the log gets its old length again. */
  async #append(fd: number, lines: string[]): Promise<void> {
    const [begin, prefix] = this.#mended(fd);
    const data = Buffer.from(prefix + lines.join(""));
    try {
      for (let at = 0; at < data.length; ) {
        at += writeSync(fd, data, at);
      }
      await syncFile(fd);
    } catch (error) {
      ftruncateSync(fd, begin);
      fsyncSync(fd);
      throw error instanceof KeepstoneError ? error : this.#failed(error);
    }
  }

  #failed(cause: unknown): StoreError {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return new StoreError(`${join(this.#folder.path, this.name)}: ${reason}; nothing was stored`, { cause });
  }

  /** Return the offset for new lines, and a prefix that separates them from a torn line. */
  #mended(fd: number): [begin: number, prefix: string] {
    const { torn, rest } = this.#snapshot.scan;
    // A torn batch is hidden from readers. With lines after it, it would look like an edited batch, which is shown.
    if (torn !== null && whole(rest) === null) {
      this.#keep(fd, torn);
      ftruncateSync(fd, torn);
      return [torn, ""];
    }
    return [fstatSync(fd).size, rest.length > 0 ? "\n" : ""];
  }

  /** Copy the end of the log, from offset `begin`, to a new original in the archive folder. */
  #keep(fd: number, begin: number): void {
    const end = Buffer.alloc(fstatSync(fd).size - begin);
    readSync(fd, end, 0, end.length, begin);
    const name = `${archiveFile(this.name)}.${stampNow()}.original`;
    this.#folder.makeSub(ARCHIVE);
    this.#folder.replace(name, [end], name + TEMPORARY);
  }
}

/** Return the current time in UTC, with microseconds, in the format of originals' names. */
function stampNow(): string {
  return `${new Date().toISOString().replace(/[-:.Z]/g, "")}000Z`;
}

/** Return a later line of an entry that also removes the entry's vector if the text changes. */
function withoutOldVector(there: Item, later: Item): Item {
  if (!("embedding" in there) || "embedding" in later || isDeepStrictEqual(saidBy(apply(there, later)), saidBy(there))) {
    return later;
  }
  return { ...later, embedding: null };
}
