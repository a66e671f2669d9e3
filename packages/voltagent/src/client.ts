/** Speaking to `keepstone serve`: one agent's part of the HTTP API, with patience while the server is away. */
import { setTimeout as sleep } from "node:timers/promises";

import { AccessDeniedError, StoreError } from "./errors.js";
import { type Item, type Json, objectOf } from "./json.js";
import { checkAgent, shown } from "./layout.js";

const DEFAULT_URL = "http://127.0.0.1:8765";
const [FIRST_PAUSE, LONGEST_PAUSE] = [50, 1000];
const COME_AGAIN = new Set([502, 503, 504]);

export interface ClientOptions {
  /** The agent whose memory this is. Nothing that is passed later reaches another agent's. */
  agent: string;
  /** Where the server is, as it prints that; `KEEPSTONE_URL` if not given, else `http://127.0.0.1:8765`. */
  url?: string;
  /** What opens it (`keepstone token create`); `KEEPSTONE_TOKEN` if not given. */
  token?: string;
  /** Milliseconds to wait for one answer. Default 10,000. */
  timeoutMs?: number;
  /** Milliseconds for which a call is tried again while the server is away or busy. Default 30,000. */
  retryMs?: number;
  /** What sends requests; the global `fetch` if not given. */
  fetch?: typeof fetch;
}

/** What a request carries. */
export interface Request {
  query?: Record<string, string | number | boolean | undefined>;
  body?: Json;
  headers?: Record<string, string>;
  /** Statuses, beside those of success, that are answers and no errors. */
  allow?: readonly number[];
}

export interface Answer {
  status: number;
  body: Item;
  etag: string | null;
}

/** An answer as it came, from whatever answers at that address. */
interface Reply {
  status: number;
  text: string;
  etag: string | null;
}

/** Sends requests below `/v1/agents/{agent}`. Every request that is sent here may be sent twice. */
export class Client {
  readonly agent: string;
  readonly #base: string;
  readonly #headers: Headers;
  readonly #timeoutMs: number;
  readonly #retryMs: number;
  readonly #fetch: typeof fetch;

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
    const deadline = performance.now() + this.#retryMs;
    for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      const tried = await this.#once(method, url, request);
      if (!(tried instanceof Error) && !COME_AGAIN.has(tried.status)) {
        return this.#checked(`${method} ${url}`, tried, request.allow ?? []);
      }
      if (performance.now() + pause > deadline) {
        const why = tried instanceof Error ? reason(tried) : detailOf(objectOf(tried.text), tried.status);
        throw new StoreError(`${method} ${url} was not carried out: ${why}; is keepstone serve running there?`, {
          cause: tried,
        });
      }
      await sleep(pause * (0.5 + Math.random() / 2));
    }
  }

  /** Send one request; an error, not thrown, if no answer came. */
  async #once(method: string, url: string, { body, headers = {} }: Request): Promise<Reply | Error> {
    try {
      const response = await this.#fetch(url, {
        method,
        headers: [...this.#headers, ...Object.entries(headers), ["content-type", "application/json"]],
        signal: AbortSignal.timeout(this.#timeoutMs),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, text: await response.text(), etag: response.headers.get("etag") };
    } catch (error) {
      if (error instanceof Error) {
        return error;
      }
      throw error;
    }
  }

  #checked(request: string, { status, text, etag }: Reply, allow: readonly number[]): Answer {
    const body = objectOf(text);
    const code = body?.code;
    // The server says the same of an agent that is out of the token's reach and of one that is not there.
    if ([401, 403, 429].includes(status) || code === "agent_not_found") {
      throw new AccessDeniedError(`agent ${this.agent}: ${detailOf(body, status)}; see keepstone token create`);
    }
    // A page that is not found is no answer: something else is at this address.
    const isAnswer = status < 300 || (allow.includes(status) && typeof code === "string" && code !== "not_found");
    if (body !== null && isAnswer) {
      return { status, body, etag };
    }
    throw new StoreError(`${request}: ${detailOf(body, status)}`);
  }
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
  return origin + pathname.replace(/(\/v1)?\/*$/, "");
}

function queryOf(query: Request["query"] = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(Object.fromEntries(given.map(([key, value]) => [key, String(value)]))).toString();
  return text && `?${text}`;
}

function reason(error: Error): string {
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}
