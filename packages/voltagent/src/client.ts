/** HTTP client of `keepstone serve` for one agent, with retries while the server is away. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { AccessDeniedError, StoreError } from "./errors.js";
import { type Item, type Json, objectOf } from "./json.js";
import { checkAgent, shown } from "./layout.js";

const DEFAULT_URL = "http://127.0.0.1:8765";
const [FIRST_PAUSE, LONGEST_PAUSE] = [50, 1000];
// Maximum waits of a turn, in milliseconds, so that it answers within 5 seconds without a server:
/** for its messages, while the server is away; */
const BEFORE_A_TURN = 2000;
/** for its messages, if the server accepts the request but does not answer; */
const SLOWEST_BEFORE_A_TURN = 4000;
/** for all later calls of a turn that began without its messages, from when the server was first away; */
const WITHIN_A_TURN = 3500;
/** for each further answer after that: before the next turn, and within this turn. */
const [LATER_BEFORE_A_TURN, LATER_WITHIN_IT] = [1000, 500];
/** Maximum number of tries for a change while other writers come first. */
const MOST_TRIES = 20;
/** Maximum size of a request's body that the server accepts, in bytes. */
export const MAX_BODY = 32 * 1024 * 1024;
// A proxy sends these statuses while its server restarts, and the server itself while it is busy.
const COME_AGAIN = new Set([502, 503, 504]);
/** Codes for requests that had no effect: the server did nothing, or no connection was made. */
const NOT_BEGUN = new Set(["lock_timeout", "busy", "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"]);

export interface ClientOptions {
  /** The agent whose memory this is. No later argument can reach another agent's memory. */
  agent: string;
  /** The server's address, as the server prints it. Default: `KEEPSTONE_URL`, else `http://127.0.0.1:8765`. */
  url?: string;
  /** An access token (`keepstone token create`). Default: `KEEPSTONE_TOKEN`. */
  token?: string;
  /** Timeout for one response, in milliseconds. Default 10,000. */
  timeoutMs?: number;
  /**
   * Milliseconds for which a call is retried while the server is away or busy. Default 30,000. A turn waits at most 2
   * seconds for its messages while the server is away, and then answers without them.
   */
  retryMs?: number;
  /** The function that sends requests. Default: the global `fetch`. */
  fetch?: typeof fetch;
}

/** The content of a request. */
export interface Request {
  query?: Record<string, string | number | boolean | readonly string[] | undefined>;
  body?: Json;
  headers?: Record<string, string>;
  /** Statuses, other than success, that are not errors. */
  allow?: readonly number[];
  /** The conversation whose turn this call is part of. */
  conversation?: string;
  /** Whether a turn waits for this call before it asks its model. */
  begins?: boolean;
}

export interface Answer {
  status: number;
  body: Item;
  /** The ETag as a strong tag: a compressing proxy makes it weak, and a weak tag never matches. */
  etag: string | null;
  /** Whether an earlier try, whose response was lost, may have been carried out. */
  repeated: boolean;
}

/** Carries out the requests of a storage: by a server, or in this process on the files. */
export interface Sender {
  /** The agent's slug. */
  readonly agent: string;
  send(method: string, path: string, request?: Request): Promise<Answer>;
}

/** A raw response, possibly from another server at that address. */
interface Reply {
  status: number;
  text: string;
  etag: string | null;
}

/**
 * Sends requests below `/v1/agents/{agent}`. All tries of a request have the same idempotency key, so that the server
 * answers a repeated request as before instead of carrying it out twice.
 */
export class Client implements Sender {
  readonly agent: string;
  readonly #base: string;
  readonly #headers: Headers;
  readonly #timeoutMs: number;
  readonly #retryMs: number;
  readonly #fetch: typeof fetch;
  /** The time when the server was first away; null while it answers. */
  #away: number | null = null;
  /** Conversations with a turn that began without its messages because the server is away. */
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
   * Send a request, with retries, and return the answer. The parts of `path` must be encoded.
   *
   * Throws AccessDeniedError if the token does not give access to this agent, and StoreError if the server refused
   * the request or did not answer in time.
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
      // Once a response was lost, the state on the server stays unknown, whatever later tries return.
      repeated ||= !NOT_BEGUN.has(codeOf(tried));
      if (performance.now() + pause > this.#deadline(request, begin)) {
        throw this.#failed(`${method} ${url}`, tried, request);
      }
      // The random pause keeps clients of one server from retrying at the same moment.
      await sleep(pause * (0.5 + Math.random() / 2));
    }
  }

  /** Return the time until which a call is retried. */
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
      // The turn continues without its messages, and its later calls share the remaining time of the turn.
      this.#givenUp.add(conversation);
    }
    const why = tried instanceof Error ? reason(tried) : detailOf(objectOf(tried.text), tried.status);
    const message = `${request} was not carried out: ${why}; is keepstone serve running there?`;
    return new StoreError(message, { cause: tried });
  }

  /** Send one request; return, not throw, an error if there is no response. */
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

  /** Return the timeout for one response: a slow server gets the full timeout, unless a turn is waiting. */
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
        // Node requires the timeout to be an integer.
        signal: AbortSignal.timeout(Math.ceil(wait)),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, text: await response.text(), etag: response.headers.get("etag") };
    } catch (error) {
      // `fetch` throws connection errors as a TypeError with a cause, and the timeout as a DOMException, which is an
      // Error in Node.
      if (error instanceof Error) {
        return error;
      }
      throw error;
    }
  }

  #checked(request: string, { status, text, etag }: Reply, allow: readonly number[]): Omit<Answer, "repeated"> {
    const body = objectOf(text);
    const code = body?.code;
    // The server's response is the same for a missing agent and for an agent that the token may not access.
    if ([401, 403, 429].includes(status) || code === "agent_not_found") {
      throw new AccessDeniedError(`agent ${this.agent}: ${detailOf(body, status)}; see keepstone token create`);
    }
    if (code === "answer_forgotten") {
      return { status: 200, body: {}, etag: null }; // An earlier try carried it out.
    }
    // A status 404 for the route is not an answer: another server is at this address.
    const isAnswer = status < 300 || (allow.includes(status) && typeof code === "string" && code !== "not_found");
    if (body !== null && isAnswer) {
      return { status, body, etag: etag && etag.replace(/^W\//, "") };
    }
    throw new StoreError(`${request}: ${detailOf(body, status)}`);
  }
}

/** Return whether there was no response, or only one from a proxy without its server. */
function isAway(reply: Reply | Error): boolean {
  return reply instanceof Error || (COME_AGAIN.has(reply.status) && typeof objectOf(reply.text)?.code !== "string");
}

/** Return the code of a failed try: the server's reason to do nothing, or the system's error code; else "". */
function codeOf(tried: Reply | Error): string {
  const from: unknown = tried instanceof Error ? tried.cause : objectOf(tried.text);
  return typeof from === "object" && from !== null && "code" in from ? String(from.code) : "";
}

/** Wait before retrying a change because other writers came first; throw StoreError after too many tries. */
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

/** Return the base address, without `/v1`; throw TypeError for an address that cannot be fetched. */
function rootOf(url: string): string {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new TypeError(`${shown(url)} is no url of keepstone serve; one is ${DEFAULT_URL}`);
  }
  const { origin, pathname } = new URL(url);
  // The address may be given with or without the version, and behind a proxy it may have a path.
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
