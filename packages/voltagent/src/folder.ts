/** Folders below a home, such as an agent's sessions: created on first write, and never reached through a link. */
import {
  closeSync, constants, fstatSync, fsyncSync, lstatSync, mkdirSync, openSync, readdirSync, renameSync, unlinkSync,
  writeSync,
  type BigIntStats, type Dirent,
} from "node:fs";
import { dirname, join, resolve } from "node:path";

import { CorruptLogError } from "./errors.js";

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

/** Return whether an error is a system error with one of these codes. */
export function isSystemError(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}

/** Return the result of `look`, or null if its file is missing. */
export function ifThere<T>(look: () => T): T | null {
  try {
    return look();
  } catch (error) {
    if (isSystemError(error, "ENOENT", "ENOTDIR")) {
      return null;
    }
    throw error;
  }
}

/** A folder below a root. The root may be a link; links below it are never followed. */
export class Folder {
  readonly path: string;
  readonly #root: string;
  readonly #parts: readonly string[];

  constructor(root: string, parts: readonly string[]) {
    this.#root = resolve(root);
    this.#parts = parts;
    this.path = join(this.#root, ...parts);
  }

  /** Create and sync the folder and its missing parents, so that they survive a power cut. */
  make(): void {
    // Only the root may be reached through links. Below it each folder is created and checked separately, which
    // `recursive` would not do.
    mkdirSync(this.#root, { recursive: true, mode: FOLDER_MODE });
    for (const path of this.#levels()) {
      try {
        mkdirSync(path, { mode: FOLDER_MODE });
        syncFolder(dirname(path));
      } catch (error) {
        if (!isSystemError(error, "EEXIST")) {
          throw error;
        }
      }
      check(path);
    }
  }

  /** Return whether the folder exists; throw CorruptLogError if a part of its path is a link. */
  exists(): boolean {
    return this.#levels().every((path) => ifThere(() => check(path)) !== null);
  }

  /** Open a file in the folder; throw CorruptLogError if it is a link, a folder or a device. */
  open(name: string, flags: number): number {
    if ((flags & O_CREAT) === 0 && !this.exists()) {
      throw Object.assign(new Error(`${this.path} is missing`), { code: "ENOENT" });
    }
    const fd = this.#open(name, flags);
    if (fstatSync(fd).isFile()) {
      return fd;
    }
    closeSync(fd);
    throw notRegular(join(this.path, name));
  }

  #open(name: string, flags: number): number {
    try {
      // With O_NONBLOCK, opening a FIFO does not wait for its other end. It has no effect on regular files.
      return openSync(join(this.path, name), flags | O_NOFOLLOW | O_NONBLOCK, FILE_MODE);
    } catch (error) {
      if (isSystemError(error, "ELOOP", "EMLINK", "EISDIR", "ENXIO")) {
        throw notRegular(join(this.path, name), error);
      }
      throw error;
    }
  }

  /** Return the status of a file, null if it is missing; a link is not followed. */
  stat(name: string): BigIntStats | null {
    return ifThere(() => lstatSync(join(this.path, name), { bigint: true }));
  }

  /** Return the entries of the folder or of a subfolder; empty if it is missing, or if the subfolder is a link. */
  entries(name?: string): Dirent[] {
    if (!this.exists() || (name !== undefined && !this.stat(name)?.isDirectory())) {
      return [];
    }
    return readdirSync(join(this.path, name ?? "."), { withFileTypes: true });
  }

  /** Replace a file atomically: a killed process leaves the old or the new file. `temporary` is written first. */
  replace(name: string, parts: Iterable<Uint8Array>, temporary: string): void {
    this.unlink(temporary);
    const fd = this.open(temporary, O_CREAT | O_EXCL | O_RDWR);
    try {
      for (const part of parts) {
        for (let at = 0; at < part.length; ) {
          at += writeSync(fd, part, at);
        }
      }
      fsyncSync(fd);
      renameSync(join(this.path, temporary), join(this.path, name));
    } catch (error) {
      this.unlink(temporary);
      throw error;
    } finally {
      closeSync(fd);
    }
    // A rename is durable only once its folder is synced. Until then a power cut may bring the old file back.
    this.sync(dirname(name));
  }

  /** Create a subfolder, unless it exists. */
  makeSub(name: string): void {
    try {
      mkdirSync(join(this.path, name), { mode: FOLDER_MODE });
      this.sync();
    } catch (error) {
      if (!isSystemError(error, "EEXIST")) {
        throw error;
      }
    }
  }

  /** Remove a file if it exists. */
  unlink(name: string): void {
    ifThere(() => unlinkSync(join(this.path, name)));
  }

  /** Sync the names in the folder or in a subfolder to disk. */
  sync(name = "."): void {
    ifThere(() => syncFolder(join(this.path, name)));
  }

  #levels(): string[] {
    return this.#parts.map((_, at) => join(this.#root, ...this.#parts.slice(0, at + 1)));
  }
}

function check(path: string): true {
  if (!lstatSync(path).isDirectory()) {
    throw new CorruptLogError(`${path} is no folder, or a link to one: move it away`);
  }
  return true;
}

function notRegular(path: string, cause?: unknown): CorruptLogError {
  return new CorruptLogError(`${path} is a folder, link or device: move it away`, { cause });
}

function syncFolder(path: string): void {
  const fd = openSync(path, O_RDONLY | O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
