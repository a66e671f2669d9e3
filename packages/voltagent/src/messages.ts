/** Messages of conversations, stored as entries of the conversation's session. */
import type { GetMessagesOptions, OperationContext } from "@voltagent/core";
import type { UIMessage } from "ai";

import { type Sender, MAX_BODY, pauseAfter } from "./client.js";
import { groupsOf, itemsIn, shrink } from "./fitting.js";
import { bytesOf, isItem, type Item, type Json, jsonOf } from "./json.js";
import { entryFor, sessionFor } from "./layout.js";
import { MAX_LINE } from "./line.js";
import { formatTime, type Microseconds, ofDate, readTime } from "./time.js";

/** A message as VoltAgent reads it from the storage. */
export type StoredMessage = UIMessage<{ createdAt: Date }>;

const PAGE = 1000;
const AT_ONCE = 16;
/** Maximum size, in bytes, of a message, which must fit into one line of the log, and of a request's messages. */
const [LARGEST_MESSAGE, LARGEST_REQUEST] = [MAX_LINE - 64 * 1024, MAX_BODY - 64 * 1024];
/** Maximum number of entries that the server stores or removes with one request. */
const MOST_ENTRIES = 10_000;
/** Maximum length of a message's searchable text, in characters, if the message does not fit into a line twice. */
const LONGEST_TEXT = 100_000;
const [NOT_FOUND, CHANGED] = [404, 412];
const ROLES = new Set(["user", "assistant", "system"]);

/** The size of a session's log, and the tag of its content. */
interface State {
  size: number;
  etag: string | null;
}

/** One agent's messages. */
export class Messages {
  readonly #client: Sender;
  readonly #asked = new WeakMap<OperationContext, bigint>();
  #last: Microseconds = 0n;

  constructor(client: Sender) {
    this.#client = client;
  }

  /**
   * Store messages, or replace messages with the same ids, which keep their places and times.
   *
   * The messages of one request are stored atomically. Messages that are too large or too many for one request take
   * several.
   */
  async put(
    messages: readonly UIMessage[],
    userId: string,
    conversation: string,
    turn?: OperationContext,
  ): Promise<void> {
    const items: Item[] = messages.map((message) => entryOf(message, userId, formatTime(this.#time(message, turn))));
    for (const group of groupsOf(items, LARGEST_REQUEST, MOST_ENTRIES)) {
      await this.#client.send("PUT", `${pathOf(conversation)}/entries`, { body: { items: group }, conversation });
    }
  }

  /** Return the newest messages that a user may see, the oldest first. A missing conversation has none. */
  async list(userId: string, conversation: string, options: GetMessagesOptions = {}): Promise<StoredMessage[]> {
    const limit = Math.max(options.limit ?? 0, 0);
    const found: StoredMessage[][] = [];
    let count = 0;
    for await (const page of this.#pages(conversation, limit || PAGE, { begins: true, roles: options.roles })) {
      const shown = page.filter((entry) => isFor(entry, userId)).flatMap(messageOf);
      const wanted = shown.filter((message) => isWanted(message, options));
      // The newest page comes first; the messages in a page are in order.
      found.unshift(wanted);
      count += wanted.length;
      const oldest = page[0]?.ts;
      // All further pages are older, so none of their messages matches.
      const isPast = options.after && typeof oldest === "string" && new Date(oldest) <= options.after;
      if ((limit && count >= limit) || isPast) {
        break;
      }
    }
    return limit ? found.flat().slice(-limit) : found.flat();
  }

  /** Delete messages of a user; ignore unknown ids. */
  async delete(ids: readonly string[], userId: string, conversation: string): Promise<void> {
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      // Delete in groups, to limit the number of concurrent connections.
      await Promise.all(ids.slice(at, at + AT_ONCE).map((id) => this.#hide(entryFor(id), userId, conversation)));
    }
  }

  /**
   * Erase a user's messages; return the number of bytes by which the log shrank, null if there is nothing to erase.
   *
   * Entries that other programs saved have no user. They are erased, too, unless `anybodys` is set.
   */
  async clear(userId: string, conversation: string, anybodys = false): Promise<number | null> {
    const state = await this.#state(conversation);
    if (state === null) {
      return null;
    }
    const entries = await this.#all(conversation);
    const own = entries.filter((entry) => isFor(entry, userId) && !(anybodys && userOf(entry) === undefined));
    if (anybodys && own.length === 0) {
      return null;
    }
    if (own.length === entries.length && state.etag !== null && (await this.#empty(conversation, state))) {
      return state.size;
    }
    // Purge by ids, so that later messages stay, even if the request is repeated.
    await this.#purge(own, conversation);
    return Math.max(state.size - ((await this.#state(conversation))?.size ?? 0), 0); // Others may have added lines.
  }

  /** Return the ids of all sessions. */
  async sessions(): Promise<string[]> {
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const { body } = await this.#client.send("GET", "/sessions", { query: { order: "id", limit: PAGE, cursor } });
      ids.push(...(body.sessions as Item[]).map(({ id }) => String(id)));
      cursor = typeof body.next === "string" ? body.next : undefined;
    } while (cursor !== undefined);
    return ids;
  }

  /** Remove a conversation's session; return false if it is missing. */
  async remove(conversation: string): Promise<boolean> {
    for (let tries = 0; ; tries += 1) {
      const state = await this.#state(conversation);
      if (state === null) {
        return tries > 0;
      }
      const headers = conditionOf(state);
      const allow = [NOT_FOUND, CHANGED];
      const { status, repeated } = await this.#client.send("DELETE", pathOf(conversation), { headers, allow });
      // If a repeated request finds a changed session, an earlier try removed the session, and this is a new one.
      if (status !== CHANGED || repeated) {
        return true;
      }
      await pauseAfter(tries, `session ${conversation}`);
    }
  }

  /** Empty a session to zero bytes; return false, and remove nothing, if it has changed. */
  async #empty(conversation: string, state: State): Promise<boolean> {
    const request = { headers: conditionOf(state), allow: [NOT_FOUND, CHANGED] };
    const { status } = await this.#client.send("POST", `${pathOf(conversation)}/clear`, request);
    return status !== CHANGED;
  }

  async #purge(entries: readonly Item[], conversation: string): Promise<void> {
    const all = entries.map(({ id }) => String(id));
    for (const ids of groupsOf(all, LARGEST_REQUEST, MOST_ENTRIES)) {
      await this.#client.send("POST", `${pathOf(conversation)}/purge`, { body: { ids }, allow: [NOT_FOUND] });
    }
  }

  async #hide(id: string, userId: string, conversation: string): Promise<void> {
    const path = `/entries/${encodeURIComponent(id)}`;
    const request = { query: { session: sessionFor(conversation) }, allow: [NOT_FOUND] };
    const { status, body } = await this.#client.send("GET", path, request);
    if (status !== NOT_FOUND && isFor(body, userId)) {
      await this.#client.send("DELETE", path, request);
    }
  }

  /** Return all entries of a session, including archived ones. */
  async #all(conversation: string): Promise<Item[]> {
    const pages: Item[][] = [];
    for await (const page of this.#pages(conversation, PAGE, { archived: true })) {
      pages.unshift(page);
    }
    return pages.flat();
  }

  async #state(conversation: string): Promise<State | null> {
    const { status, body, etag } = await this.#client.send("GET", pathOf(conversation), { allow: [NOT_FOUND] });
    return status === NOT_FOUND ? null : { size: Number(body.size), etag };
  }

  /**
   * Yield a session's entries page by page, the newest page first, each with the oldest entry first.
   *
   * The first page has the requested size. Later pages have the maximum size: a caller that continues is looking for
   * rare messages, such as those of one user among many.
   */
  async *#pages(
    conversation: string,
    size: number,
    { begins = false, roles, archived }: { begins?: boolean; roles?: string[] | undefined; archived?: true } = {},
  ): AsyncGenerator<Item[]> {
    let cursor: string | undefined;
    do {
      const limit = cursor === undefined ? Math.min(size, PAGE) : PAGE;
      const query = { newest: true, limit, cursor, role: roles, archived, include_superseded: true };
      const { body, status } = await this.#client.send("GET", `${pathOf(conversation)}/entries`, {
        query,
        allow: [NOT_FOUND],
        conversation,
        begins,
      });
      if (status === NOT_FOUND) {
        return;
      }
      yield body.entries as Item[];
      cursor = typeof body.next === "string" ? body.next : undefined;
    } while (cursor !== undefined);
  }

  /**
   * Return the time of a message. VoltAgent stores a turn's question in the background, often after the answer, so
   * the question gets the time at which the turn began.
   */
  #time(message: UIMessage, turn: OperationContext | undefined): Microseconds {
    if (message.role !== "user" || turn === undefined || Number.isNaN(turn.startTime.getTime())) {
      return this.#now();
    }
    const count = this.#asked.get(turn) ?? 0n;
    this.#asked.set(turn, count + 1n);
    return ofDate(turn.startTime) + count;
  }

  /** Return the current time, but never the same time twice, so that messages keep their order. */
  #now(): Microseconds {
    const now = ofDate(new Date());
    this.#last = now > this.#last ? now : this.#last + 1n;
    return this.#last;
  }
}

function pathOf(conversation: string): string {
  return `/sessions/${encodeURIComponent(sessionFor(conversation))}`;
}

/** Return the headers that make a request conditional on this state of a session. */
function conditionOf({ etag }: State): Record<string, string> {
  return etag === null ? {} : { "if-match": etag };
}

function entryOf(message: UIMessage, userId: string, ts: string): Item {
  const { id, metadata, ...rest } = jsonOf(message);
  // If a message's id cannot be part of a URL, the entry gets another id, and the payload keeps the message's id.
  const own = id === entryFor(message.id) ? {} : { id: String(id) };
  // VoltAgent passes back messages from `list`. Their time belongs to the entry and not to the message.
  const { createdAt: __, ...kept } = isItem(metadata) ? metadata : {};
  const named = Object.keys(kept).length > 0 ? { metadata: kept } : {};
  const data = { ...own, ...rest, ...named, user: userId.toWellFormed() };
  const text = textIn(data);
  const entry = { id: entryFor(message.id), type: "message", ts, ...(text ? { text } : {}), data };
  const excess = bytesOf(entry) - LARGEST_MESSAGE;
  return excess > 0 ? shortened(entry, excess) : entry;
}

/** Shorten an entry to fit into a line: cut its searchable text, and replace large values if that is not enough. */
function shortened(entry: Item & { data: Item }, excess: number): Item {
  const text = textIn(entry.data).slice(0, LONGEST_TEXT).toWellFormed();
  const saved = bytesOf(entry.text ?? "") - bytesOf(text);
  shrink([...itemsIn(entry.data.parts), ...itemsIn([entry.data.metadata ?? null])], excess - saved);
  return text ? { ...entry, text } : entry;
}

function textIn({ parts }: Item): string {
  return itemsIn(parts)
    .flatMap(({ type, text }) => (type === "text" && typeof text === "string" ? [text] : []))
    .join("\n");
}

/** Return the user of a message, undefined for an entry that another program has saved. */
function userOf(entry: Item): Json | undefined {
  return isItem(entry.data) && Array.isArray(entry.data.parts) ? entry.data.user : undefined;
}

function isFor(entry: Item, userId: string): boolean {
  const user = userOf(entry);
  return user === undefined || user === userId.toWellFormed();
}

/**
 * Return an entry's message, which VoltAgent stored or another program wrote as role and text; empty if it is
 * neither.
 */
function messageOf(entry: Item): StoredMessage[] {
  const { user: _, ...data }: Item = isItem(entry.data) ? entry.data : entry;
  const metadata = {
    ...(isItem(data.metadata) ? data.metadata : {}),
    createdAt: new Date(Number((readTime(entry.ts) ?? 0n) / 1000n)),
  };
  const id = String(entry.id);
  if (typeof data.role !== "string" || !ROLES.has(data.role)) {
    return [];
  }
  if (Array.isArray(data.parts)) {
    return [{ id, ...data, metadata } as unknown as StoredMessage];
  }
  const text = [data.content, data.text, entry.text].find((value) => typeof value === "string");
  const role = data.role as UIMessage["role"];
  return typeof text === "string" ? [{ id, role, parts: [{ type: "text", text }], metadata }] : [];
}

function isWanted(message: StoredMessage, { roles, before, after }: GetMessagesOptions): boolean {
  const at = message.metadata?.createdAt ?? new Date(0);
  return (!roles?.length || roles.includes(message.role)) && (!before || at < before) && (!after || at > after);
}
