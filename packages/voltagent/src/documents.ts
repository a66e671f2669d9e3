/** Small JSON documents in the agent's files: readable, with updates that lose no concurrent change. */
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";

import { type Sender, pauseAfter } from "./client.js";
import { StoreError } from "./errors.js";
import { itemsIn } from "./fitting.js";
import { type Item, objectOf } from "./json.js";
import { fileStem } from "./layout.js";

const PAGE = 1000;
const [NOT_FOUND, CHANGED] = [404, 412];

/** The documents of one kind, by their ids, each in a separate file below `voltagent/`. */
export class Documents {
  readonly #client: Sender;
  readonly #folder: string;

  constructor(client: Sender, kind: string) {
    this.#client = client;
    this.#folder = `voltagent/${kind}/`;
  }

  /** Return a document, null if it is missing. */
  async read(id: string): Promise<Item | null> {
    const found = await this.#open(id);
    return found && found.value;
  }

  /** Write a new document; return false, and write nothing, if the document exists. */
  async create(id: string, value: Item): Promise<boolean> {
    // The mark `made` identifies a document that an earlier try of this call wrote, if its response was lost.
    const made = randomUUID();
    const headers = { "if-none-match": "*" };
    if (await this.#write(id, { ...value, made }, headers)) {
      return true;
    }
    const found = await this.#open(id);
    return found?.made === made;
  }

  /** Write a document, replacing any existing one. */
  async put(id: string, value: Item): Promise<void> {
    await this.#write(id, value);
  }

  /** Replace a document by the result of `change`, and return the result; null if the document is missing. */
  async update(id: string, change: (value: Item) => Item): Promise<Item | null> {
    let value: Item | undefined;
    for (let tries = 0; ; tries += 1) {
      const found = await this.#open(id);
      if (found === null) {
        return null;
      }
      if (value !== undefined && isDeepStrictEqual(found.value, value)) {
        return value; // An earlier try wrote it, but its response was lost.
      }
      value = change(found.value);
      // Updates keep the mark: the document's creator may still check for it after a lost response.
      const mark: Item = found.made === null ? {} : { made: found.made };
      if (await this.#write(id, { ...value, ...mark }, { "if-match": found.etag })) {
        return value;
      }
      await pauseAfter(tries, this.#path(id));
    }
  }

  /** Remove a document; return false if it is missing. */
  async remove(id: string): Promise<boolean> {
    // Check first: a repeated deletion, whose first response was lost, reports that the file is missing.
    const { status } = await this.#client.send("GET", this.#path(id), { allow: [NOT_FOUND] });
    await this.#client.send("DELETE", this.#path(id), { allow: [NOT_FOUND] });
    return status !== NOT_FOUND;
  }

  /** Return all documents of this kind; `damaged` is called with the path of each file that is not a document. */
  async all(damaged: (path: string) => void): Promise<Item[]> {
    const found: Item[] = [];
    let cursor: string | undefined;
    do {
      const query = { folder: this.#folder, limit: PAGE, cursor };
      const { body } = await this.#client.send("GET", "/file-contents", { query });
      for (const { path, content } of itemsIn(body.files).filter((file) => String(file.path).endsWith(".json"))) {
        const value = objectOf(String(content));
        if (typeof value?.id === "string") {
          found.push(unmarked(value).value);
        } else {
          damaged(String(path));
        }
      }
      cursor = typeof body.next === "string" ? body.next : undefined;
    } while (cursor !== undefined);
    return found;
  }

  async #open(id: string): Promise<{ value: Item; made: string | null; etag: string } | null> {
    const request = { allow: [NOT_FOUND], conversation: id };
    const { status, body, etag } = await this.#client.send("GET", this.#path(id), request);
    if (status === NOT_FOUND) {
      return null;
    }
    const value = objectOf(String(body.content));
    if (value === null) {
      throw new StoreError(`the agent's file ${String(body.path)} holds no JSON object: mend or remove it`);
    }
    return { ...unmarked(value), etag: etag ?? "*" };
  }

  async #write(id: string, value: Item, headers: Record<string, string> = {}): Promise<boolean> {
    const body = { content: `${JSON.stringify(value, null, 2)}\n` };
    const request = { body, headers, allow: [CHANGED], conversation: id };
    const { status } = await this.#client.send("PUT", this.#path(id), request);
    return status !== CHANGED;
  }

  #path(id: string): string {
    return urlOf(`${this.#folder}${fileStem(id)}.json`);
  }
}

/** Split a document into its value and its creation mark. */
function unmarked({ made, ...value }: Item): { value: Item; made: string | null } {
  return { value, made: typeof made === "string" ? made : null };
}

/** Return the page of a list that a query selects; as in VoltAgent, a limit of 0 means no limit. */
export function pageOf<T>(found: readonly T[], { offset = 0, limit }: { offset?: number; limit?: number }): T[] {
  return found.slice(offset, limit ? offset + limit : undefined);
}

/** Return the route for one of the agent's files. */
export function urlOf(file: string): string {
  return `/files/${file.split("/").map(encodeURIComponent).join("/")}`;
}
