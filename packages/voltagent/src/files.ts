/** VoltAgent memory directly on the session files, without a server: save, load, clear, list. */
import { randomBytes } from "node:crypto";

import { isItem, type Item, plain } from "./json.js";
import { checkAgent } from "./layout.js";
import { recordOf, unwrapped, wrapped } from "./line.js";
import { SessionLogs } from "./session-logs.js";
import { formatTime, type Microseconds, ofDate } from "./time.js";
import { type InfoLogger, voltAgentLogger } from "./voltagent.js";

const MILLISECOND = 1000n;

/** A session in a list. */
export interface SessionInfo {
  id: string;
  /** The time of the log's last change. */
  modified: Date;
  /** The size of the log in bytes. */
  size: number;
}

export interface MemoryAdapterOptions {
  /** The home's folder; logs are in `agents/<slug>/memory/sessions` below it. Default `.work-agent`. */
  root?: string;
  /** The agent whose memory this is. Other agents' memories cannot be reached. Default `default`. */
  agent?: string;
  /** Logs every clear. Default: VoltAgent's own logger. */
  logger?: InfoLogger;
  /** Returns the time for saved events; for tests. */
  clock?: () => Date;
}

/**
 * One agent's session logs. Each event is one line of its session's NDJSON file.
 *
 * Any number of processes, in JavaScript or Python, may use the same files at once.
 *
 * @example
 * const memory = new MemoryAdapter({ agent: "coder" });
 * const session = await memory.newSession();
 * await memory.save({ role: "user", content: "Hi" });
 * const [event] = await memory.load(session, { limit: 1 });
 */
export class MemoryAdapter {
  /** The agent's slug. */
  readonly agent: string;
  readonly #options: MemoryAdapterOptions;
  readonly #logs: SessionLogs;
  readonly #clock: () => Date;
  #current: string | null = null;

  /** Nothing is written before the first save. */
  constructor(options: MemoryAdapterOptions = {}) {
    this.#options = options;
    this.agent = checkAgent(options.agent ?? "default");
    this.#logs = new SessionLogs(options.root ?? ".work-agent", this.agent);
    this.#clock = options.clock ?? (() => new Date());
  }

  /** Return an adapter for another agent of the same home, without a current session. */
  forAgent(slug: string): MemoryAdapter {
    return new MemoryAdapter({ ...this.#options, agent: slug });
  }

  /** Create a session with an empty log, make it the current session, which `save` uses, and return its id. */
  async newSession(): Promise<string> {
    const session = this.#newId();
    this.#current = session;
    await this.#logs.of(session).create();
    return session;
  }

  /**
   * Append an event to a session's log and return it as `load` will. The event is on disk when this resolves.
   *
   * Without `sessionId` the current session is used, or a new one. An event keeps its own `id`, `type` and `ts`. It
   * replaces an event of the session with the same id.
   */
  async save(event: object, sessionId?: string): Promise<Item> {
    const [saved] = await this.saveAll([event], sessionId);
    return saved as Item;
  }

  /** Save several events atomically, with one write and one sync. */
  async saveAll(events: readonly object[], sessionId?: string): Promise<Item[]> {
    const items = events.map(itemOf);
    const session = sessionId ?? this.#current ?? (await this.newSession());
    const log = this.#logs.of(session);
    const saved = items.length === 0 ? [] : await log.put((newest) => this.#records(items, newest));
    return saved.map((entry) => structuredClone(unwrapped(entry)));
  }

  /** Return a session's events, the oldest first; `limit` keeps the newest ones. A missing session has none. */
  async load(sessionId: string, options: { limit?: number } = {}): Promise<Item[]> {
    const { limit } = options;
    if (limit !== undefined && (!Number.isInteger(limit) || limit < 0)) {
      throw new RangeError(`limit must be a whole number from 0, not ${limit}`);
    }
    return this.#logs.of(sessionId).entries(limit).map((entry) => structuredClone(unwrapped(entry)));
  }

  /** Return the id, last change and size of every session, the last changed session first. */
  async list(): Promise<SessionInfo[]> {
    const found = this.#logs.list();
    found.sort((one, other) => Number(other.mtime - one.mtime) || (one.id < other.id ? 1 : -1));
    return found.map(({ id, mtime, size }) => ({ id, modified: new Date(Number(mtime / 1_000_000n)), size }));
  }

  /** Empty a session's log to zero bytes and report it to the logger; return false if the session is missing. */
  async clear(sessionId: string): Promise<boolean> {
    await this.#logs.removeHidden(sessionId);
    const bytes = await this.#logs.of(sessionId).clear();
    if (bytes === null) {
      return false;
    }
    const logger = this.#options.logger ?? (await voltAgentLogger());
    logger.info("memory.clear", { event: "memory.clear", agent: this.agent, session: sessionId, bytes });
    return true;
  }

  /** Remove a session's log, archive and lock file; return false if the session is missing. */
  async delete(sessionId: string): Promise<boolean> {
    if (sessionId === this.#current) {
      this.#current = null;
    }
    await this.#logs.removeHidden(sessionId);
    return this.#logs.remove(sessionId);
  }

  /** Delete one event by writing a tombstone; return false if the session has no event with this id. */
  async deleteEvent(sessionId: string, id: string): Promise<boolean> {
    return this.#logs.of(sessionId).delete(id, formatTime(ofDate(this.#clock())));
  }

  #newId(): string {
    return uuid7(this.#clock());
  }

  #records(items: Item[], newest: Microseconds | null): Item[] {
    const now = ofDate(this.#clock());
    // This clock counts milliseconds, Python's clock microseconds: a later event must not get an earlier time.
    const ts = newest !== null && newest > now && newest - now < MILLISECOND ? newest : now;
    return items.map((item) => recordOf(item, () => this.#newId(), () => ts));
  }
}

function itemOf(event: unknown): Item {
  const item = plain(event);
  if (!isItem(item)) {
    throw new TypeError(`an event must be an object, not ${Array.isArray(event) ? "an array" : typeof event}`);
  }
  return wrapped(item);
}

/** Return a new id: a UUID of version 7, which sorts by time (RFC 9562). */
function uuid7(now: Date): string {
  const bytes = randomBytes(16);
  // The first 48 bits are the time in milliseconds, so ids sort by creation time.
  bytes.writeUIntBE(now.getTime(), 0, 6);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x70;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
