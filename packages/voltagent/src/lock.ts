/**
 * The lock of one session: a queue in this process, and among processes the lock of Python's `filelock`.
 *
 * A waiting process polls every 1 to 10 ms, and touches the lock file. A holder that sees the touch waits for a
 * moment before it takes the lock again: otherwise a process that adds without pause would starve the others. The
 * Python side does the same.
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

/** Operations for the holder of a lock. */
export interface Held {
  /** Whether the last holder may have been killed during a rewrite. */
  readonly marked: boolean;
  /** Set the mark before a rewrite, which may leave files if the process is killed. */
  mark(): void;
  /** Clear the mark once no files of a rewrite are left. */
  unmark(): void;
  /** Remove a file that a killed process had locked. Return whether it stays because a process still locks it. */
  removeLeft(name: string): boolean;
  /** Remove the lock file when the lock is released; waiting processes create a new one. */
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

  /** Run `act` while holding the lock. Calls in this process run one after the other, in order. */
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
      // Remove the file while the lock is still held: a waiting process then notices that the name is gone, and opens
      // a new file.
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
   * Wait until the lock is acquired; return false if its path now leads to another file.
   *
   * A lock on a file that others do not find by its name excludes nobody.
   */
  async #isTaken(flock: Flock, fd: number, began: number): Promise<boolean> {
    while (!flock.tryLock(fd)) {
      // The touch shows the holder that another writer waits: see the top of this file.
      futimesSync(fd, Date.now() / 1000, Date.now() / 1000);
      await this.#wait(began);
    }
    const own = fstatSync(fd, { bigint: true });
    const named = this.#folder.exists() ? this.#folder.stat(this.#name) : null;
    if (named?.ino !== own.ino || named.dev !== own.dev) {
      return false;
    }
    // The time differs from the last seen time only if another process has touched the file.
    this.#wanted = this.#touched !== null && own.mtimeNs !== this.#touched;
    this.#touched = own.mtimeNs;
    return true;
  }

  /** Sleep before the next try; throw LockTimeoutError once the timeout is over. */
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

/** Return the time to sleep before the next try: processes that have waited longer poll more often. */
function pause(waited: number): number {
  const longer = SHORTEST_POLL + waited / 4;
  const shorter = (LONGEST_POLL * PATIENCE) / Math.max(waited, PATIENCE);
  return Math.max(SHORTEST_POLL, Math.min(longer, shorter)) * random();
}
