/** The NDJSON log of one session: the truth. Reading needs no lock, writing holds the session's. */
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

  /** `check` returns whether the session has another file now; it is for names that people made. */
  constructor(folder: Folder, name: string, check?: () => boolean) {
    this.name = name;
    this.#check = check;
    this.#folder = folder;
    this.#lock = new Lock(folder, lockFile(name));
  }

  /** Whether a write is under way or waits for its turn. */
  get busy(): boolean {
    return this.#lock.busy;
  }

  /** Whether the session has another file now, so that nothing may be written to this one. */
  get isRenamed(): boolean {
    return this.#check?.() ?? false;
  }

  /** Return the newest live entries by time, ties by place; shared objects, not to be changed. */
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

  /** Return the live entry of this id; a shared object, not to be changed. */
  get(id: string): Item | undefined {
    // This brings the snapshot to where the log is, and returns nothing.
    this.entries(0);
    return this.size() === null ? undefined : this.#snapshot.get(id);
  }

  /** Return the entries that only the archive has; shared objects, not to be changed. */
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

  /** Return a text that changes with every write to the log, null if there is none. */
  tag(): string | null {
    const status = this.size() === null ? null : this.#folder.stat(this.name);
    return status && `${status.ino}-${status.size}-${status.mtimeNs}`;
  }

  /** Return the log's size in bytes, null if there is none. */
  size(): number | null {
    const status = this.#folder.exists() ? this.#folder.stat(this.name) : null;
    if (status !== null && !status.isFile()) {
      throw new CorruptLogError(`${join(this.#folder.path, this.name)} is a folder, link or device: move it away`);
    }
    return status && Number(status.size);
  }

  /** Make an empty log if there is none. */
  async create(): Promise<void> {
    await this.#writing(async () => undefined);
  }

  /**
   * Put records in one write, all or none, and return the entries that they make.
   *
   * `records` is told the time of the newest entry, so that what is written next is no older.
   */
  async put(records: (newest: bigint | null) => Item[]): Promise<Item[]> {
    return this.#writing(async (fd) => {
      this.#snapshot.read(fd);
      const { needed, results } = this.#resolved(records(this.#snapshot.scan.ts));
      await this.#append(fd, inBatch(needed.map(dump)));
      return results;
    });
  }

  /** Write a tombstone; false, and nothing is written, if there is no such entry. */
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
   * Remove every line of some entries from the log, its archive and copies of both; return how many lines those were.
   *
   * The log comes last: a process that is killed before has removed nothing of what the log still shows. The journal of
   * erasures comes first: what it names is erased by the next sync or merge, also after a kill.
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
   * Empty the log, its archive included, to zero bytes; return its size before, null if it is missing.
   *
   * `check` is called while the lock is held; what it throws cancels the change, here and in `remove`.
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

  /** Remove the log with its archive and lock file; false if it is missing. */
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

  /** Record that entries, or all, are erased; take that back if `act` fails before it has begun to erase. */
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

  /** Remove what Python prepares to take the place of log or archive: it begins again when it notices. */
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
        // What a killed rewrite of another process left.
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
          // Also if another process made it: that may have been killed before it synced the folder.
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
    // An id whose earlier life was erased begins its next one, or the erasure, once it is merged, would take the new
    // entry, too.
    const isNew = (id: string): boolean => this.#snapshot.get(id) === undefined;
    const lives = erasedLives(this.#folder, this.name, records.map(({ id }) => String(id)).filter(isNew));
    const results = records.map((record) => {
      const id = String(record.id);
      const there = current.get(id) ?? this.#snapshot.get(id);
      const last = Math.max(lives.get(id) ?? 0, this.#snapshot.lastLife(id));
      const line = there ? withoutOldVector(there, record) : inNextLife(record, last);
      const result = there ? apply(there, line) : create(line);
      if (there) {
        // A patch may be short and its entry too long for one line, which a rewrite could then not write.
        checkSize(result);
      }
      needed.push(line);
      current.set(id, result);
      return result;
    });
    return { needed, results };
  }

  /** Append whole lines in one write and sync them. If that fails the log is as long as before. */
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

  /** Return where to write and what to write first, so that new lines are separate from a torn one. */
  #mended(fd: number): [begin: number, prefix: string] {
    const { torn, rest } = this.#snapshot.scan;
    // A torn batch is hidden from readers. Lines that follow it would make it look like one that was edited, and
    // shown.
    if (torn !== null && whole(rest) === null) {
      this.#keep(fd, torn);
      ftruncateSync(fd, torn);
      return [torn, ""];
    }
    return [fstatSync(fd).size, rest.length > 0 ? "\n" : ""];
  }

  /** Copy the end of the log, from `begin` on, to a new original in the folder of archives. */
  #keep(fd: number, begin: number): void {
    const end = Buffer.alloc(fstatSync(fd).size - begin);
    readSync(fd, end, 0, end.length, begin);
    const name = `${archiveFile(this.name)}.${stampNow()}.original`;
    this.#folder.makeSub(ARCHIVE);
    this.#folder.replace(name, [end], name + TEMPORARY);
  }
}

/** Return the time now in UTC, with microseconds, as names of originals have it. */
function stampNow(): string {
  return `${new Date().toISOString().replace(/[-:.Z]/g, "")}000Z`;
}

/** Return a later line of an entry so that no vector answers for a text that it was not given for. */
function withoutOldVector(there: Item, later: Item): Item {
  if (!("embedding" in there) || "embedding" in later || isDeepStrictEqual(saidBy(apply(there, later)), saidBy(there))) {
    return later;
  }
  return { ...later, embedding: null };
}
