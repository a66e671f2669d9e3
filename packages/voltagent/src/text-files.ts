/** An agent's text files, read and written like Python's `agent.files`, with the same lock. */
import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { StoreError } from "./errors.js";
import { Folder, ifThere } from "./folder.js";
import { checkAgent, shown } from "./layout.js";
import { Lock } from "./lock.js";

// These names are on disk and shared with the Python side. They never change.
const [LOCK, TEMPORARY, RESERVED] = [".keepstone.lock", ".keepstone.tmp", ".keepstone."];

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A text, and a tag of its content. */
export interface TextFile {
  content: string;
  tag: string;
}

/**
 * Called with a file's tag, null if it is missing, while the lock is held. An error that it throws cancels the
 * change.
 */
type Check = (tag: string | null) => void;

/** The text files of one agent, by path, with `/` between names. */
export class TextFiles {
  readonly #root: string;
  readonly #parts: readonly string[];
  readonly #top: Folder;
  readonly #lock: Lock;

  constructor(root: string, agent: string) {
    this.#root = root;
    this.#parts = ["agents", checkAgent(agent), "files"];
    this.#top = new Folder(root, this.#parts);
    this.#lock = new Lock(this.#top, LOCK);
  }

  /** Read a file, null if it is missing; throw StoreError if it is not UTF-8. */
  read(path: string): TextFile | null {
    const bytes = this.#bytes(path);
    try {
      return bytes && { content: utf8.decode(bytes), tag: tagOf(bytes) };
    } catch (error) {
      throw new StoreError(`the agent's file ${shown(path)} is not UTF-8: mend or remove it`, { cause: error });
    }
  }

  /** Write a file atomically. */
  async write(path: string, content: string, check: Check = () => undefined): Promise<void> {
    await this.#change(path, check, () => Buffer.from(content));
  }

  /** Append to a file, or create it; the whole file is rewritten. */
  async append(path: string, content: string): Promise<void> {
    await this.#change(path, () => undefined, (old) => Buffer.concat([old ?? Buffer.alloc(0), Buffer.from(content)]));
  }

  /** Remove a file; return false if it is missing. Its folders stay. */
  async remove(path: string, check: Check = () => undefined): Promise<boolean> {
    const [folder, name] = this.#placeOf(path);
    if (!folder.exists() || folder.stat(name) === null) {
      return false;
    }
    return this.#lock.hold(async (held) => {
      held.remove(); // The folder must contain only the agent's files.
      const old = this.#bytes(path);
      check(old && tagOf(old));
      folder.unlink(name);
      folder.sync();
      return old !== null;
    });
  }

  /** Return the sorted paths of the files below a folder. Links are left out. */
  list(folder: string): string[] {
    const entries = new Folder(this.#root, [...this.#parts, ...partsOf(folder)]).entries();
    const found = entries.flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      return entry.isDirectory() ? this.list(path) : entry.isFile() ? [path] : [];
    });
    return found.sort();
  }

  async #change(path: string, check: Check, make: (old: Buffer | null) => Buffer): Promise<void> {
    const [folder] = this.#placeOf(path);
    this.#top.make();
    await this.#lock.hold(async (held) => {
      held.remove();
      const old = this.#bytes(path);
      check(old && tagOf(old));
      folder.make();
      this.#top.replace(path, [make(old)], TEMPORARY); // Every writer removes a leftover file of this name.
    });
  }

  #bytes(path: string): Buffer | null {
    const [folder, name] = this.#placeOf(path);
    const fd = ifThere(() => folder.open(name, constants.O_RDONLY));
    if (fd === null) {
      return null;
    }
    try {
      // A hard link may share another program's file: reading would expose that file, and writing would detach the
      // link.
      if (fstatSync(fd).nlink > 1) {
        throw new StoreError(`${join(folder.path, name)} is a hard link, and links are not followed: put a copy there`);
      }
      return readFileSync(fd);
    } finally {
      closeSync(fd);
    }
  }

  #placeOf(path: string): [folder: Folder, name: string] {
    const parts = partsOf(path);
    return [new Folder(this.#root, [...this.#parts, ...parts.slice(0, -1)]), String(parts.at(-1))];
  }
}

/** Return the names in a path; throw StoreError if the path may lead out of the folder, or to a reserved file. */
function partsOf(path: string): string[] {
  const parts = path.split("/");
  const isOdd = (name: string): boolean => ["", ".", ".."].includes(name) || /[\0\\]/.test(name);
  if (parts.some(isOdd) || parts[0]?.toLowerCase().startsWith(RESERVED)) {
    throw new StoreError(`${shown(path)} does not name a file of the agent; use names with / between them`);
  }
  return parts;
}

function tagOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
