/** A conversation's messages: entries of the session that has the conversation's id. */
import type { GetMessagesOptions, OperationContext } from "@voltagent/core";
import type { UIMessage } from "ai";

import type { Client } from "./client.js";
import { isItem, type Item, jsonOf } from "./json.js";
import { entryFor, sessionFor } from "./layout.js";
import { formatTime, type Microseconds, ofDate, readTime } from "./time.js";

/** A message as VoltAgent reads it back. */
export type StoredMessage = UIMessage<{ createdAt: Date }>;

const PAGE = 1000;
const NOT_FOUND = 404;
const ROLES = new Set(["user", "assistant", "system"]);

/** One agent's messages. */
export class Messages {
  readonly #client: Client;
  readonly #asked = new WeakMap<OperationContext, bigint>();
  #last: Microseconds = 0n;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Store a message, or replace the one with its id, which keeps its place and time. */
  async put(message: UIMessage, userId: string, conversation: string, turn?: OperationContext): Promise<void> {
    const path = `${pathOf(conversation)}/entries/${encodeURIComponent(entryFor(message.id))}`;
    const ts = formatTime(this.#time(message, turn));
    await this.#client.send("PUT", path, { body: entryOf(message, userId, ts) });
  }

  /** Return the newest messages that a user may see, oldest first. A missing conversation has none. */
  async list(userId: string, conversation: string, options: GetMessagesOptions = {}): Promise<StoredMessage[]> {
    const limit = Math.max(options.limit ?? 0, 0);
    const found: StoredMessage[] = [];
    for await (const page of this.#pages(conversation, limit || PAGE)) {
      const shown = page.filter((entry) => isFor(entry, userId)).flatMap(messageOf);
      found.unshift(...shown.filter((message) => isWanted(message, options)));
      const oldest = page[0]?.ts;
      const isPast = options.after && typeof oldest === "string" && new Date(oldest) <= options.after;
      if ((limit && found.length >= limit) || isPast) {
        break;
      }
    }
    return limit ? found.slice(-limit) : found;
  }

  /** Hide messages; ids that there are not are fine. */
  async delete(ids: readonly string[], userId: string, conversation: string): Promise<void> {
    const known = new Set((await this.list(userId, conversation)).map(({ id }) => id));
    for (const id of ids) {
      if (known.has(id)) {
        await this.#entry("DELETE", entryFor(id), "", conversation);
      }
    }
  }

  /** Remove every byte of a user's messages; return how many bytes the log has lost, null if it is missing. */
  async clear(userId: string, conversation: string): Promise<number | null> {
    const before = await this.#size(conversation);
    if (before === null) {
      return null;
    }
    const entries: Item[] = [];
    for await (const page of this.#pages(conversation, PAGE)) {
      entries.push(...page);
    }
    const own = entries.filter((entry) => isFor(entry, userId));
    if (own.length === entries.length) {
      await this.#client.send("POST", `${pathOf(conversation)}/clear`, { allow: [NOT_FOUND] });
      return before;
    }
    for (const entry of own) {
      await this.#entry("POST", String(entry.id), "/purge", conversation);
    }
    return before - ((await this.#size(conversation)) ?? 0);
  }

  /** Remove a conversation's session; false if it is missing. */
  async remove(conversation: string): Promise<boolean> {
    const size = await this.#size(conversation);
    await this.#client.send("DELETE", pathOf(conversation), { allow: [NOT_FOUND] });
    return size !== null;
  }

  async #entry(method: string, id: string, verb: string, conversation: string): Promise<void> {
    const query = { session: sessionFor(conversation) };
    await this.#client.send(method, `/entries/${encodeURIComponent(id)}${verb}`, { query, allow: [NOT_FOUND] });
  }

  async #size(conversation: string): Promise<number | null> {
    const { status, body } = await this.#client.send("GET", pathOf(conversation), { allow: [NOT_FOUND] });
    return status === NOT_FOUND ? null : Number(body.size);
  }

  /** Yield a session's entries page by page, the newest page first, each with the oldest entry first. */
  async *#pages(conversation: string, size: number): AsyncGenerator<Item[]> {
    let cursor: string | undefined;
    do {
      const query = { newest: true, limit: Math.min(size, PAGE), cursor };
      const { body, status } = await this.#client.send("GET", `${pathOf(conversation)}/entries`, {
        query,
        allow: [NOT_FOUND],
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
    if (message.role !== "user" || turn === undefined) {
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

function entryOf(message: UIMessage, userId: string, ts: string): Item {
  const { id, metadata, ...rest } = jsonOf(message);
  const own = id === entryFor(message.id) ? {} : { id: String(id) };
  const { createdAt: __, ...kept } = isItem(metadata) ? metadata : {};
  const text = message.parts.flatMap((part) => (part.type === "text" ? [part.text.toWellFormed()] : [])).join("\n");
  return {
    type: "message",
    ts,
    ...(text ? { text } : {}),
    data: { ...own, ...rest, ...(Object.keys(kept).length > 0 ? { metadata: kept } : {}), user: userId.toWellFormed() },
  };
}

function isFor(entry: Item, userId: string): boolean {
  const user = isItem(entry.data) && Array.isArray(entry.data.parts) ? entry.data.user : undefined;
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
