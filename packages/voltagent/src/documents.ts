/** Small JSON documents in the agent's own files: readable, and changed so that no change is lost. */
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";

import type { Client } from "./client.js";
import { StoreError } from "./errors.js";
import { type Item, objectOf } from "./json.js";
import { fileStem } from "./layout.js";

const AT_ONCE = 16;
const [NOT_FOUND, CHANGED] = [404, 412];

/** The documents of one kind, each in a file of its own below `voltagent/`. */
export class Documents {
  readonly #client: Client;
  readonly #folder: string;

  constructor(client: Client, kind: string) {
    this.#client = client;
    this.#folder = `voltagent/${kind}/`;
  }

  /** Return a document, null if there is none. */
  async read(id: string): Promise<Item | null> {
    const found = await this.#open(this.#path(id));
    return found && found.value;
  }

  /** Write a new document; false, and nothing is written, if there is one. */
  async create(id: string, value: Item): Promise<boolean> {
    // The mark tells our own earlier try, whose answer was lost, from somebody else's document.
    const made = randomUUID();
    const headers = { "if-none-match": "*" };
    if (await this.#write(this.#path(id), { ...value, made }, headers)) {
      return true;
    }
    const there = await this.#open(this.#path(id));
    return there?.made === made;
  }

  /** Write a document, whatever was there. */
  async put(id: string, value: Item): Promise<void> {
    await this.#write(this.#path(id), value);
  }

  /** Write what `change` makes of a document, and return that; null if there is none. */
  async update(id: string, change: (value: Item) => Item): Promise<Item | null> {
    for (let value: Item | undefined; ; ) {
      const found = await this.#open(this.#path(id));
      if (found === null) {
        return null;
      }
      if (value !== undefined && isDeepStrictEqual(found.value, value)) {
        return value; // Our own earlier try, whose answer was lost.
      }
      value = change(found.value);
      const mark: Item = found.made === null ? {} : { made: found.made };
      if (await this.#write(this.#path(id), { ...value, ...mark }, { "if-match": found.etag })) {
        return value;
      }
    }
  }

  /** Remove a document; false if there is none. */
  async remove(id: string): Promise<boolean> {
    // Asked before, because the answer to a deletion that is sent again is that there is nothing.
    const { status } = await this.#client.send("GET", this.#path(id), { allow: [NOT_FOUND] });
    await this.#client.send("DELETE", this.#path(id), { allow: [NOT_FOUND] });
    return status !== NOT_FOUND;
  }

  /** Return all documents of this kind. */
  async all(): Promise<Item[]> {
    const names = (await this.#names()).filter((name) => name.startsWith(this.#folder) && name.endsWith(".json"));
    const found: Item[] = [];
    for (let at = 0; at < names.length; at += AT_ONCE) {
      const some = names.slice(at, at + AT_ONCE).map((name) => this.#open(urlOf(name)));
      found.push(...(await Promise.all(some)).flatMap((one) => (one ? [one.value] : [])));
    }
    return found;
  }

  async #names(): Promise<string[]> {
    const names: string[] = [];
    let cursor: string | undefined;
    do {
      const query = { limit: 1000, cursor };
      const { body, status } = await this.#client.send("GET", "/files", { query, allow: [NOT_FOUND] });
      if (status === NOT_FOUND) {
        return names;
      }
      names.push(...(body.files as string[]));
      cursor = typeof body.next === "string" ? body.next : undefined;
    } while (cursor !== undefined);
    return names;
  }

  async #open(path: string): Promise<{ value: Item; made: string | null; etag: string } | null> {
    const { status, body, etag } = await this.#client.send("GET", path, { allow: [NOT_FOUND] });
    if (status === NOT_FOUND) {
      return null;
    }
    const value = objectOf(String(body.content));
    if (value === null) {
      throw new StoreError(`the agent's file ${String(body.path)} holds no JSON object: mend or remove it`);
    }
    const { made, ...rest } = value;
    return { value: rest, made: typeof made === "string" ? made : null, etag: etag ?? "*" };
  }

  async #write(path: string, value: Item, headers: Record<string, string> = {}): Promise<boolean> {
    const body = { content: `${JSON.stringify(value, null, 2)}\n` };
    const { status } = await this.#client.send("PUT", path, { body, headers, allow: [CHANGED] });
    return status !== CHANGED;
  }

  #path(id: string): string {
    return urlOf(`${this.#folder}${fileStem(id)}.json`);
  }
}

/** Return the part of a list that a query is for; a limit of 0 is none, as VoltAgent has it. */
export function pageOf<T>(found: readonly T[], { offset = 0, limit }: { offset?: number; limit?: number }): T[] {
  return found.slice(offset, limit ? offset + limit : undefined);
}

/** Return the path of a route for one of the agent's files. */
export function urlOf(file: string): string {
  return `/files/${file.split("/").map(encodeURIComponent).join("/")}`;
}
