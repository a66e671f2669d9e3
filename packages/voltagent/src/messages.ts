/** A conversation's messages: entries of the session that has the conversation's id. */
import type { GetMessagesOptions, OperationContext } from "@voltagent/core";
import type { UIMessage } from "ai";

import { type Sender, MAX_BODY, pauseAfter } from "./client.js";
import { groupsOf, itemsIn, shrink } from "./fitting.js";
import { bytesOf, isItem, type Item, type Json, jsonOf } from "./json.js";
import { entryFor, sessionFor } from "./layout.js";
import { MAX_LINE } from "./line.js";
import { formatTime, type Microseconds, ofDate, readTime } from "./time.js";

/** A message as VoltAgent reads it back. */
export type StoredMessage = UIMessage<{ createdAt: Date }>;

const PAGE = 1000;
const AT_ONCE = 16;
/** Bytes of a message, which the log has to write as one line, and of the messages of one request. */
const [LARGEST_MESSAGE, LARGEST_REQUEST] = [MAX_LINE - 64 * 1024, MAX_BODY - 64 * 1024];
/** Entries that the server stores or removes with one request. */
const MOST_ENTRIES = 10_000;
/** Characters of a message by which it is found where the whole of it does not fit twice into a line. */
const LONGEST_TEXT = 100_000;
const [NOT_FOUND, CHANGED] = [404, 412];
const ROLES = new Set(["user", "assistant", "system"]);

/** A session's log, and the mark of what is in it. */
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
   * Store messages, or replace those with their ids, which keep their places and times.
   *
   * One request is stored as a whole or not at all. Only messages that are too large, or too many, for one
   * take several.
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

  /** Return the newest messages that a user may see, oldest first. A missing conversation has none. */
  async list(userId: string, conversation: string, options: GetMessagesOptions = {}): Promise<StoredMessage[]> {
    const limit = Math.max(options.limit ?? 0, 0);
    const found: StoredMessage[][] = [];
    let count = 0;
    for await (const page of this.#pages(conversation, limit || PAGE, { begins: true, roles: options.roles })) {
      const shown = page.filter((entry) => isFor(entry, userId)).flatMap(messageOf);
      const wanted = shown.filter((message) => isWanted(message, options));
      // Pages come the newest first, and each is in order.
      found.unshift(wanted);
      count += wanted.length;
      const oldest = page[0]?.ts;
      // All further pages are older still, so none of their messages is wanted.
      const isPast = options.after && typeof oldest === "string" && new Date(oldest) <= options.after;
      if ((limit && count >= limit) || isPast) {
        break;
      }
    }
    return limit ? found.flat().slice(-limit) : found.flat();
  }

  /** Hide messages of a user; ids that there are not are fine. */
  async delete(ids: readonly string[], userId: string, conversation: string): Promise<void> {
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      // In groups, so that a long list does not open as many connections at once.
      await Promise.all(ids.slice(at, at + AT_ONCE).map((id) => this.#hide(entryFor(id), userId, conversation)));
    }
  }

  /**
   * Remove every byte of a user's messages; return how many bytes the log has lost, null if there are none.
   *
   * What other programs saved names no user. It goes with them, unless the session may be anybody's.
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
    // By their ids, so that what was stored after they were read stays, also if this is sent again.
    await this.#purge(own, conversation);
    return Math.max(state.size - ((await this.#state(conversation))?.size ?? 0), 0); // Others may have added more.
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

  /** Remove a conversation's session; false if it is missing. */
  async remove(conversation: string): Promise<boolean> {
    for (let tries = 0; ; tries += 1) {
      const state = await this.#state(conversation);
      if (state === null) {
        return tries > 0;
      }
      const headers = conditionOf(state);
      const allow = [NOT_FOUND, CHANGED];
      const { status, repeated } = await this.#client.send("DELETE", pathOf(conversation), { headers, allow });
      // Changed since an earlier try whose answer was lost: that one removed it, and this is another session.
      if (status !== CHANGED || repeated) {
        return true;
      }
      await pauseAfter(tries, `session ${conversation}`);
    }
  }

  /** Empty a session to zero bytes; false, and nothing is removed, if it has changed since. */
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

  /** Return all entries of a session, archived ones too. */
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
   * The first page has the size that was asked for, and those behind it are as large as they may be: who
   * goes on looks for what is rare, such as the messages of one user among many.
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
   * Return when a message was said. VoltAgent stores a turn's question in the background, often after the
   * answer; it was asked when the turn began.
   */
  #time(message: UIMessage, turn: OperationContext | undefined): Microseconds {
    if (message.role !== "user" || turn === undefined || Number.isNaN(turn.startTime.getTime())) {
      return this.#now();
    }
    const count = this.#asked.get(turn) ?? 0n;
    this.#asked.set(turn, count + 1n);
    return ofDate(turn.startTime) + count;
  }

  /** Return the time now, and never the same twice: what was stored later is read back later. */
  #now(): Microseconds {
    const now = ofDate(new Date());
    this.#last = now > this.#last ? now : this.#last + 1n;
    return this.#last;
  }
}

function pathOf(conversation: string): string {
  return `/sessions/${encodeURIComponent(sessionFor(conversation))}`;
}

/** Return what the condition of a request says, so that it is carried out only on this state of a session. */
function conditionOf({ etag }: State): Record<string, string> {
  return etag === null ? {} : { "if-match": etag };
}

function entryOf(message: UIMessage, userId: string, ts: string): Item {
  const { id, metadata, ...rest } = jsonOf(message);
  // Not every id can be named by an address. The entry then has another one, and the message's own is in the payload.
  const own = id === entryFor(message.id) ? {} : { id: String(id) };
  // VoltAgent passes back what `list` gave. The time is the entry's own and not part of the message.
  const { createdAt: __, ...kept } = isItem(metadata) ? metadata : {};
  const named = Object.keys(kept).length > 0 ? { metadata: kept } : {};
  const data = { ...own, ...rest, ...named, user: userId.toWellFormed() };
  const text = textIn(data);
  const entry = { id: entryFor(message.id), type: "message", ts, ...(text ? { text } : {}), data };
  const excess = bytesOf(entry) - LARGEST_MESSAGE;
  return excess > 0 ? shortened(entry, excess) : entry;
}

/** Return an entry that fits into a line: with less text to find it by, and markers where that is not enough. */
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

/** Return the user whose message an entry is, undefined for what another program has saved. */
function userOf(entry: Item): Json | undefined {
  return isItem(entry.data) && Array.isArray(entry.data.parts) ? entry.data.user : undefined;
}

function isFor(entry: Item, userId: string): boolean {
  const user = userOf(entry);
  return user === undefined || user === userId.toWellFormed();
}

/** Return the message that an entry holds: VoltAgent's own, or one that another program wrote as role and text. */
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
