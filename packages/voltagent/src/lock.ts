/**
 * The lock of one session: inside this process a queue, among processes the lock that Python's `filelock` takes.
 *
 * Who waits asks again every 1 to 10 ms, and touches the lock file. A holder that sees the touch keeps back
 * for a moment before it takes the lock again: otherwise a process that adds without pause would shut the
 * others out. The Python side does the same.
 */
import { closeSync, constants, fstatSync, ftruncateSync, futimesSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { LockTimeoutError, StoreError } from "./errors.js";
import { type Flock, loadFlock } from "./flock.js";
import { type Folder, ifThere } from "./folder.js";

/** Milliseconds to wait for other processes before `LockTimeoutError`. */
export const TIMEOUT = 5000;
const [SHORTEST_POLL, LONGEST_POLL, PATIENCE, YIELD] = [1, 10, 100, 3];

/** What the holder of a lock may do with it. */
export interface Held {
  /** Whether the last holder may have died in the middle of a rewrite. */
  readonly marked: boolean;
  /** Say that a rewrite begins, of which a death may leave files. */
  mark(): void;
  /** Say that nothing of a rewrite is left. */
  unmark(): void;
  /** Remove a file that a killed process held locked; return whether it stays, as a process still does. */
  removeLeft(name: string): boolean;
  /** Remove the lock file when the lock is given back; others that wait make a new one. */
  remove(): void;
}

/** An exclusive lock on one lock file. Not reentrant. */
export class Lock {
  readonly #folder: Folder;
  readonly #name: string;
  #queue: Promise<void> = Promise.resolve();
  #held = 0;
  #wanted = false;
  #touched: bigint | null = null;
  #givenBack = 0;

  constructor(folder: Folder, name: string) {
    this.#folder = folder;
    this.#name = name;
  }

  /** Whether a task of this process holds the lock or waits for it. */
  get busy(): boolean {
    return this.#held > 0;
  }

  /** Run `act` while holding the lock. Calls of this process come one after the other, in their order. */
  async hold<T>(act: (held: Held) => Promise<T>): Promise<T> {
    const before = this.#queue;
    let leave = (): void => undefined;
    this.#queue = new Promise((resolve) => (leave = resolve));
    this.#held += 1;
    await before;
    try {
      return await this.#holding(act);
    } finally {
      this.#held -= 1;
      leave();
    }
  }

  async #holding<T>(act: (held: Held) => Promise<T>): Promise<T> {
    const flock = await loadFlock();
    const fd = await this.#take(flock);
    let unwanted = false;
    const set = (length: number): void => {
      ftruncateSync(fd, length);
      this.#touched = mtime(fd);
    };
    const remove = (): void => {
      unwanted = true;
    };
    const removeLeft = (name: string): boolean => this.#removeLeft(flock, name);
    try {
      const marked = fstatSync(fd).size > 0;
      return await act({ marked, mark: () => set(1), unmark: () => set(0), remove, removeLeft });
    } finally {
      // The file is removed while the lock is still held: a process that waits on it then finds that its name is
      // gone, and opens a new one.
      if (unwanted) {
        this.#folder.unlink(this.#name);
      }
      this.#givenBack = performance.now();
      flock.unlock(fd);
      closeSync(fd);
    }
  }

  #removeLeft(flock: Flock, name: string): boolean {
    const fd = ifThere(() => this.#folder.open(name, constants.O_RDWR));
    if (fd === null) {
      return false;
    }
    try {
      if (!flock.tryLock(fd)) {
        return true;
      }
      this.#folder.unlink(name);
      return false;
    } finally {
      closeSync(fd);
    }
  }

  async #take(flock: Flock): Promise<number> {
    const left = this.#wanted ? this.#givenBack + YIELD * random() - performance.now() : 0;
    if (left > 0) {
      await sleep(left);
    }
    const began = performance.now();
    for (;;) {
      const fd = this.#open();
      try {
        if (await this.#isTaken(flock, fd, began)) {
          return fd;
        }
      } catch (error) {
        closeSync(fd);
        throw error;
      }
      closeSync(fd);
      await this.#wait(began);
    }
  }

  #open(): number {
    const fd = ifThere(() => this.#folder.open(this.#name, constants.O_RDWR | constants.O_CREAT));
    if (fd === null) {
      throw new StoreError(`${this.#folder.path} was renamed or removed; nothing was written: try again`);
    }
    return fd;
  }

  /**
   * Wait until the lock is ours; false if its name is another file's now, or its folder's path another folder's.
   *
   * A lock on a file that others do not find by its name keeps nobody out.
   */
  async #isTaken(flock: Flock, fd: number, began: number): Promise<boolean> {
    while (!flock.tryLock(fd)) {
      // The touch tells the holder that another writer waits: see the top of this file.
      futimesSync(fd, Date.now() / 1000, Date.now() / 1000);
      await this.#wait(began);
    }
    const own = fstatSync(fd, { bigint: true });
    const named = this.#folder.exists() ? this.#folder.stat(this.#name) : null;
    if (named?.ino !== own.ino || named.dev !== own.dev) {
      return false;
    }
    // The time differs from the one that we saw last only if another process has touched the file since.
    this.#wanted = this.#touched !== null && own.mtimeNs !== this.#touched;
    this.#touched = own.mtimeNs;
    return true;
  }

  /** Sleep before the lock is tried again; LockTimeoutError after too long. */
  async #wait(began: number): Promise<void> {
    const waited = performance.now() - began;
    if (waited >= TIMEOUT) {
      throw this.#timedOut();
    }
    await sleep(pause(waited));
  }

  #timedOut(): LockTimeoutError {
    return new LockTimeoutError(
      `${join(this.#folder.path, this.#name)} is held by another writer for over ${TIMEOUT / 1000} s; ` +
        "nothing was written: try again, or end the process that hangs",
    );
  }
}

function mtime(fd: number): bigint {
  return fstatSync(fd, { bigint: true }).mtimeNs;
}

function random(): number {
  return 0.5 + Math.random() / 2;
}

/** Return how long to sleep before asking again: who has waited for long asks more often than others. */
function pause(waited: number): number {
  const longer = SHORTEST_POLL + waited / 4;
  const shorter = (LONGEST_POLL * PATIENCE) / Math.max(waited, PATIENCE);
  return Math.max(SHORTEST_POLL, Math.min(longer, shorter)) * random();
}
