/**
 * One agent's part of a home, in this process: handles a storage's requests on the files as `keepstone serve` does.
 */
import { setTimeout as sleep } from "node:timers/promises";

import type { Answer, Request, Sender } from "./client.js";
import { LockTimeoutError, StoreError } from "./errors.js";
import { itemsIn } from "./fitting.js";
import { isItem, type Item, type Json } from "./json.js";
import { checkAgent } from "./layout.js";
import type { Log } from "./log.js";
import { withOrigin } from "./origin.js";
import { SessionLogs } from "./session-logs.js";
import { TextFiles } from "./text-files.js";
import { formatTime, ofDate, readTime } from "./time.js";

const [NOT_FOUND, CHANGED] = [404, 412];
/** Size of the file contents, in bytes, after which a response ends. */
const PAGE_BYTES = 16 * 1024 * 1024;
const PAUSE = 100;

export interface LocalHomeOptions {
  /** The home's folder. Default `.work-agent`. */
  root?: string;
  /** The agent whose memory this is. Other agents' memories cannot be reached. Default `default`. */
  agent?: string;
  /** Milliseconds for which a write is retried while another writer holds the lock. Default 30,000. */
  retryMs?: number;
}

/** The condition of a request does not hold; nothing was changed. */
class ChangedError extends Error {}

type Handler = (names: string[], request: Request) => Promise<Partial<Answer>> | Partial<Answer>;

/** Carries out the requests of `Client` directly on the files, without a server and without Python. */
export class LocalHome implements Sender {
  readonly agent: string;
  readonly #logs: SessionLogs;
  readonly #files: TextFiles;
  readonly #retryMs: number;
  readonly #handlers: [method: string, path: RegExp, handle: Handler][];

  constructor({ root = ".work-agent", agent = "default", retryMs = 30_000 }: LocalHomeOptions) {
    this.agent = checkAgent(agent);
    this.#logs = new SessionLogs(root, this.agent);
    this.#files = new TextFiles(root, this.agent);
    this.#retryMs = retryMs;
    const entries = /^\/sessions\/([^/]+)\/entries$/;
    const session = /^\/sessions\/([^/]+)$/;
    const file = /^\/files\/(.+)$/;
    this.#handlers = [
      ["PUT", entries, ([id = ""], { body }) => this.#put(id, itemsIn(partOf(body, "items")))],
      ["GET", entries, ([id = ""], { query }) => this.#page(this.#logs.of(id), query)],
      ["GET", session, ([id = ""]) => stateOf(this.#logs.of(id))],
      ["DELETE", session, ([id = ""], { headers }) => this.#remove(id, headers)],
      ["POST", /^\/sessions\/([^/]+)\/clear$/, ([id = ""], { headers }) => this.#clear(id, headers)],
      ["POST", /^\/sessions\/([^/]+)\/purge$/, ([id = ""], { body }) => this.#purge(id, partOf(body, "ids"))],
      ["GET", /^\/sessions$/, () => ({ body: { sessions: this.#logs.list().map(({ id }) => ({ id })) } })],
      ["GET", /^\/entries\/([^/]+)$/, ([id = ""], { query }) => found(this.#logs.of(String(query?.session)).get(id))],
      ["DELETE", /^\/entries\/([^/]+)$/, ([id = ""], { query }) => this.#hide(String(query?.session), id)],
      ["GET", file, ([path = ""]) => this.#read(path)],
      ["PUT", file, ([path = ""], { body, headers }) => this.#write(path, String(partOf(body, "content")), headers)],
      ["POST", file, ([path = ""], { body }) => this.#append(path, String(partOf(body, "content")))],
      ["DELETE", file, ([path = ""], { headers }) => this.#delete(path, headers)],
      ["GET", /^\/file-contents$/, (_, { query }) => this.#contents(String(query?.folder), query?.cursor)],
    ];
  }

  /** Carry out a request; throw LockTimeoutError if another writer holds the lock for all of `retryMs`. */
  async send(method: string, path: string, request: Request = {}): Promise<Answer> {
    for (const [wanted, pattern, handle] of this.#handlers) {
      const names = wanted === method ? pattern.exec(path) : null;
      if (names !== null) {
        // The storage encodes each part of a path, as for the server.
        const answer = await this.#patiently(() => handle(names.slice(1).map(decodeURIComponent), request));
        return { status: 200, body: {}, etag: null, repeated: false, ...answer };
      }
    }
    throw new StoreError(`${method} ${path} is not a request of a storage`);
  }

  /** Retry while another writer holds the lock, as VoltAgent drops data that its storage refuses. */
  async #patiently(act: () => Promise<Partial<Answer>> | Partial<Answer>): Promise<Partial<Answer>> {
    for (const end = performance.now() + this.#retryMs; ; await sleep(PAUSE)) {
      try {
        return await act();
      } catch (error) {
        if (error instanceof ChangedError) {
          return { status: CHANGED };
        }
        if (!(error instanceof LockTimeoutError) || performance.now() + PAUSE > end) {
          throw error;
        }
      }
    }
  }

  async #put(session: string, items: Item[]): Promise<Partial<Answer>> {
    if (items.length > 0) {
      await this.#logs.of(session).put(() => items.map(withOrigin));
    }
    return {};
  }

  #page(log: Log, query: Request["query"] = {}): Partial<Answer> {
    if (log.size() === null) {
      return { status: NOT_FOUND };
    }
    const { role, cursor, limit, archived } = query;
    const all = [...(archived ? log.archived() : []), ...log.entries()];
    const wanted = Array.isArray(role) && role.length > 0 ? all.filter((entry) => role.includes(roleOf(entry))) : all;
    const end = typeof cursor === "string" ? placeOf(wanted, cursor) : wanted.length;
    const page = wanted.slice(Math.max(end - Number(limit), 0), end);
    // The cursor names an entry, not a position, so entries added or removed between two pages do not shift it.
    const next = page.length < end ? JSON.stringify([page[0]?.id, page[0]?.ts]) : null;
    return { body: { entries: structuredClone(page), next } };
  }

  async #remove(session: string, headers: Request["headers"]): Promise<Partial<Answer>> {
    await this.#logs.removeHidden(session);
    const log = this.#logs.of(session);
    return (await this.#logs.remove(session, () => check(log.tag(), headers))) ? {} : { status: NOT_FOUND };
  }

  async #clear(session: string, headers: Request["headers"]): Promise<Partial<Answer>> {
    await this.#logs.removeHidden(session);
    const log = this.#logs.of(session);
    return (await log.clear(() => check(log.tag(), headers))) === null ? { status: NOT_FOUND } : {};
  }

  async #purge(session: string, ids: Json | undefined): Promise<Partial<Answer>> {
    await this.#logs.of(session).purge(new Set(Array.isArray(ids) ? ids.map(String) : []));
    return {};
  }

  async #hide(session: string, id: string): Promise<Partial<Answer>> {
    return (await this.#logs.of(session).delete(id, formatTime(ofDate(new Date())))) ? {} : { status: NOT_FOUND };
  }

  #read(path: string): Partial<Answer> {
    const file = this.#files.read(path);
    return file === null ? { status: NOT_FOUND } : { body: { path, content: file.content }, etag: file.tag };
  }

  async #write(path: string, content: string, headers: Request["headers"]): Promise<Partial<Answer>> {
    await this.#files.write(path, content, (tag) => check(tag, headers));
    return {};
  }

  async #append(path: string, content: string): Promise<Partial<Answer>> {
    await this.#files.append(path, content);
    return {};
  }

  async #delete(path: string, headers: Request["headers"]): Promise<Partial<Answer>> {
    return (await this.#files.remove(path, (tag) => check(tag, headers))) ? {} : { status: NOT_FOUND };
  }

  /** Return the files below a folder after the cursor's path, until the response is full. */
  #contents(folder: string, cursor: unknown): Partial<Answer> {
    const all = this.#files.list(folder.replace(/\/$/, ""));
    // The file of the cursor may have been removed, so compare paths instead of searching for it.
    const paths = typeof cursor === "string" ? all.slice(all.findLastIndex((path) => path <= cursor) + 1) : all;
    const files: Item[] = [];
    for (let bytes = 0; files.length < paths.length && bytes < PAGE_BYTES; ) {
      const path = String(paths[files.length]);
      const content = this.#textOf(path);
      bytes += content?.length ?? 0;
      files.push({ path, content });
    }
    return { body: { files, next: files.length < paths.length ? (files.at(-1)?.path ?? null) : null } };
  }

  /** Return the text of a file for a list, null if it is not a text. */
  #textOf(path: string): string | null {
    try {
      return this.#files.read(path)?.content ?? null;
    } catch (error) {
      if (error instanceof StoreError) {
        return null;
      }
      throw error;
    }
  }
}

function partOf(body: Json | undefined, key: string): Json | undefined {
  return isItem(body) ? body[key] : undefined;
}

function found(entry: Item | undefined): Partial<Answer> {
  return entry === undefined ? { status: NOT_FOUND } : { body: structuredClone(entry) };
}

function stateOf(log: Log): Partial<Answer> {
  const size = log.size();
  return size === null ? { status: NOT_FOUND } : { body: { size }, etag: log.tag() };
}

/** Throw ChangedError unless a request's condition holds for this tag, which is null for a missing file or log. */
function check(tag: string | null, headers: Request["headers"] = {}): void {
  const wanted = headers["if-match"];
  const isChanged = wanted !== undefined && (tag === null || (wanted !== "*" && wanted !== tag));
  if (isChanged || (headers["if-none-match"] === "*" && tag !== null)) {
    throw new ChangedError("changed by others");
  }
}

function roleOf(entry: Item): string {
  const { role } = isItem(entry.data) ? entry.data : entry;
  return typeof role === "string" ? role : "";
}

/** Return the index of a cursor's entry; if the entry was removed, the index for its time. */
function placeOf(entries: readonly Item[], cursor: string): number {
  const [id, ts] = JSON.parse(cursor) as [string, string];
  const at = entries.findIndex((entry) => entry.id === id);
  const [time, later] = [readTime(ts) ?? 0n, (entry: Item): boolean => (readTime(entry.ts) ?? 0n) >= time];
  const behind = at >= 0 ? at : entries.findIndex(later);
  return behind >= 0 ? behind : entries.length;
}
