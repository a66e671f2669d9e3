/** Speaking to `keepstone serve`: one agent's part of the HTTP API, with patience while the server is away. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { AccessDeniedError, StoreError } from "./errors.js";
import { type Item, type Json, objectOf } from "./json.js";
import { checkAgent, shown } from "./layout.js";

const DEFAULT_URL = "http://127.0.0.1:8765";
const [FIRST_PAUSE, LONGEST_PAUSE] = [50, 1000];
// What a turn waits for at most, in milliseconds, so that it answers within 5 seconds without a server:
/** for its messages, while the server is away; */
const BEFORE_A_TURN = 2000;
/** for its messages, from a server that takes the request and does not answer; */
const SLOWEST_BEFORE_A_TURN = 4000;
/** for all calls of a turn that began without its messages, from when the server was first found away; */
const WITHIN_A_TURN = 3500;
/** for the answer to each try after that, before the next turn and within this one. */
const [LATER_BEFORE_A_TURN, LATER_WITHIN_IT] = [1000, 500];
/** How often a change is tried when others come first each time. */
const MOST_TRIES = 20;
/** Bytes that the server takes as the body of one request. */
export const MAX_BODY = 32 * 1024 * 1024;
// A proxy answers so while its server restarts, and the server itself while it is busy.
const COME_AGAIN = new Set([502, 503, 504]);
/** Codes by which the server says that it did nothing, and errors of a connection that there never was. */
const NOT_BEGUN = new Set(["lock_timeout", "busy", "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"]);

export interface ClientOptions {
  /** The agent whose memory this is. Nothing that is passed later reaches another agent's. */
  agent: string;
  /** The server's address, as the server prints it; `KEEPSTONE_URL` if not given, else `http://127.0.0.1:8765`. */
  url?: string;
  /** An access token (`keepstone token create`); `KEEPSTONE_TOKEN` if not given. */
  token?: string;
  /** Milliseconds to wait for one answer. Default 10,000. */
  timeoutMs?: number;
  /**
   * Milliseconds for which a call is tried again while the server is away or busy. Default 30,000.
   * A turn waits 2 seconds at most for the messages that it begins with, and answers without them.
   */
  retryMs?: number;
  /** The function that sends requests; the global `fetch` if not given. */
  fetch?: typeof fetch;
}

/** The content of a request. */
export interface Request {
  query?: Record<string, string | number | boolean | readonly string[] | undefined>;
  body?: Json;
  headers?: Record<string, string>;
  /** Statuses, beside those of success, that are answers and no errors. */
  allow?: readonly number[];
  /** The conversation whose turn this call is part of. */
  conversation?: string;
  /** Whether a turn waits for this call before it asks its model. */
  begins?: boolean;
}

export interface Answer {
  status: number;
  body: Item;
  /** The strong tag: a proxy that compresses makes it weak, and a weak tag never matches. */
  etag: string | null;
  /** Whether an earlier try, whose answer was lost, may have been carried out. */
  repeated: boolean;
}

/** Carries out the requests of a storage: a server, or this process on the files. */
export interface Sender {
  /** The agent's slug. */
  readonly agent: string;
  send(method: string, path: string, request?: Request): Promise<Answer>;
}

/** An answer as it came, from whatever answers at that address. */
interface Reply {
  status: number;
  text: string;
  etag: string | null;
}

/**
 * Sends requests below `/v1/agents/{agent}`. A request that is sent again has the key of the first one, by
 * which the server knows it and answers as before instead of carrying it out twice.
 */
export class Client implements Sender {
  readonly agent: string;
  readonly #base: string;
  readonly #headers: Headers;
  readonly #timeoutMs: number;
  readonly #retryMs: number;
  readonly #fetch: typeof fetch;
  /** When the server was first found away; null while it answers. */
  #away: number | null = null;
  /** Conversations with a turn that began without its messages while the server is away. */
  readonly #givenUp = new Set<string>();

  constructor(options: ClientOptions) {
    this.agent = checkAgent(options.agent);
    this.#base = `${rootOf(options.url || process.env.KEEPSTONE_URL || DEFAULT_URL)}/v1/agents/${this.agent}`;
    const token = options.token || process.env.KEEPSTONE_TOKEN;
    this.#headers = new Headers(token ? { authorization: `Bearer ${token}` } : {});
    this.#timeoutMs = options.timeoutMs ?? 10_000;
    this.#retryMs = options.retryMs ?? 30_000;
    this.#fetch = options.fetch ?? fetch;
  }

  /**
   * Send a request until it is answered. `path` has parts that are already encoded.
   *
   * Throws AccessDeniedError for a token that does not open this agent's memory, and StoreError if the
   * server refused the request or did not answer in time.
   */
  async send(method: string, path: string, request: Request = {}): Promise<Answer> {
    const url = this.#base + path + queryOf(request.query);
    // One key for all tries of a request: see the class.
    const headers = { ...request.headers, ...(method === "GET" ? {} : { "idempotency-key": randomUUID() }) };
    const begin = performance.now();
    let repeated = false;
    for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      const tried = await this.#once(method, url, { ...request, headers });
      if (!(tried instanceof Error) && !COME_AGAIN.has(tried.status)) {
        return { ...this.#checked(`${method} ${url}`, tried, request.allow ?? []), repeated };
      }
      // Once an answer was lost, the state on the server is unknown, and later tries do not make it known.
      repeated ||= !NOT_BEGUN.has(codeOf(tried));
      if (performance.now() + pause > this.#deadline(request, begin)) {
        throw this.#failed(`${method} ${url}`, tried, request);
      }
      // Clients that lost the same server do not come back at the same moment.
      await sleep(pause * (0.5 + Math.random() / 2));
    }
  }

  /** Return until when a call is tried again. */
  #deadline({ conversation, begins }: Request, begin: number): number {
    if (!this.#isGivenUp(conversation)) {
      return begin + Math.min(this.#retryMs, begins ? BEFORE_A_TURN : Infinity);
    }
    return begins ? begin : (this.#away ?? begin) + Math.min(this.#retryMs, WITHIN_A_TURN);
  }

  #isGivenUp(conversation: string | undefined): boolean {
    return conversation !== undefined && this.#givenUp.has(conversation);
  }

  #failed(request: string, tried: Reply | Error, { conversation, begins }: Request): StoreError {
    if (begins && conversation !== undefined && this.#away !== null) {
      // The turn goes on without its messages, and its later calls have to share what is left of the turn's time.
      this.#givenUp.add(conversation);
    }
    const why = tried instanceof Error ? reason(tried) : detailOf(objectOf(tried.text), tried.status);
    const message = `${request} was not carried out: ${why}; is keepstone serve running there?`;
    return new StoreError(message, { cause: tried });
  }

  /** Send one request; an error, not thrown, if no answer came. */
  async #once(method: string, url: string, request: Request): Promise<Reply | Error> {
    const began = performance.now();
    const reply = await this.#sent(method, url, request, this.#wait(request, began));
    if (isAway(reply)) {
      this.#away ??= began;
    } else {
      this.#away = null;
      this.#givenUp.clear();
    }
    return reply;
  }

  /** Return how long to wait for one answer: a server that is only slow gets its time, unless a turn waits. */
  #wait(request: Request, now: number): number {
    const isGivenUp = this.#isGivenUp(request.conversation);
    if (request.begins) {
      return Math.min(this.#timeoutMs, isGivenUp ? LATER_BEFORE_A_TURN : SLOWEST_BEFORE_A_TURN);
    }
    const left = isGivenUp ? Math.max(this.#deadline(request, now) - now, LATER_WITHIN_IT) : Infinity;
    return Math.min(this.#timeoutMs, left);
  }

  async #sent(method: string, url: string, { body, headers = {} }: Request, wait: number): Promise<Reply | Error> {
    try {
      const response = await this.#fetch(url, {
        method,
        headers: [...this.#headers, ...Object.entries(headers), ["content-type", "application/json"]],
        // Node refuses a timeout that is no whole number.
        signal: AbortSignal.timeout(Math.ceil(wait)),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, text: await response.text(), etag: response.headers.get("etag") };
    } catch (error) {
      // `fetch` throws errors of connections as a TypeError with a cause, and the timeout as a DOMException, which is
      // an Error in Node.
      if (error instanceof Error) {
        return error;
      }
      throw error;
    }
  }

  #checked(request: string, { status, text, etag }: Reply, allow: readonly number[]): Omit<Answer, "repeated"> {
    const body = objectOf(text);
    const code = body?.code;
    // The server says the same of an agent that is out of the token's reach and of one that is not there.
    if ([401, 403, 429].includes(status) || code === "agent_not_found") {
      throw new AccessDeniedError(`agent ${this.agent}: ${detailOf(body, status)}; see keepstone token create`);
    }
    if (code === "answer_forgotten") {
      return { status: 200, body: {}, etag: null }; // It was carried out when it was sent before.
    }
    // A page that is not found is no answer: something else is at this address.
    const isAnswer = status < 300 || (allow.includes(status) && typeof code === "string" && code !== "not_found");
    if (body !== null && isAnswer) {
      return { status, body, etag: etag && etag.replace(/^W\//, "") };
    }
    throw new StoreError(`${request}: ${detailOf(body, status)}`);
  }
}

/** Return whether nobody answered, or only a proxy that reaches no server. */
function isAway(reply: Reply | Error): boolean {
  return reply instanceof Error || (COME_AGAIN.has(reply.status) && typeof objectOf(reply.text)?.code !== "string");
}

/** Return the code of a try without an answer: the server's reason to do nothing, or the system's error; else "". */
function codeOf(tried: Reply | Error): string {
  const from: unknown = tried instanceof Error ? tried.cause : objectOf(tried.text);
  return typeof from === "object" && from !== null && "code" in from ? String(from.code) : "";
}

/** Wait before a change is tried again because others came first; StoreError after too many tries. */
export async function pauseAfter(tries: number, what: string): Promise<void> {
  if (tries + 1 >= MOST_TRIES) {
    throw new StoreError(`${what} was changed by others ${MOST_TRIES} times in a row; nothing was stored: try again`);
  }
  const pause = Math.min(FIRST_PAUSE * 2 ** Math.floor(tries / 4), LONGEST_PAUSE);
  await sleep(tries === 0 ? 0 : pause * Math.random());
}

function detailOf(body: Item | null, status: number): string {
  return typeof body?.detail === "string" && body.code !== "not_found"
    ? body.detail
    : `what answers there (${status}) is not keepstone serve; look at the url`;
}

/** Return the address below which `/v1` is; TypeError for one that cannot be fetched. */
function rootOf(url: string): string {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new TypeError(`${shown(url)} is no url of keepstone serve; one is ${DEFAULT_URL}`);
  }
  const { origin, pathname } = new URL(url);
  // People copy the address with and without the version, and behind a proxy it may have a path.
  return origin + pathname.replace(/(\/v1)?\/*$/, "");
}

function queryOf(query: Request["query"] = {}): string {
  const given = Object.entries(query).flatMap(([key, value]) =>
    value === undefined ? [] : [value].flat().map((item) => [key, String(item)] as [string, string]),
  );
  const text = new URLSearchParams(given).toString();
  return text && `?${text}`;
}

function reason(error: Error): string {
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}
