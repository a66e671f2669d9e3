/** Speaking to `recollect serve`: one agent's part of the HTTP API, with patience while the server is away. */
import { setTimeout as sleep } from "node:timers/promises";

import { AccessDeniedError, StoreError } from "./errors.js";
import type { Item, Json } from "./json.js";
import { checkAgent } from "./layout.js";

const DEFAULT_URL = "http://127.0.0.1:8765";
const [FIRST_PAUSE, LONGEST_PAUSE] = [50, 1000];
const COME_AGAIN = new Set([502, 503, 504]);

export interface ClientOptions {
  /** The agent whose memory this is. Nothing that is passed later reaches another agent's. */
  agent: string;
  /** Where the server is; `RECOLLECT_URL` if not given, else `http://127.0.0.1:8765`. */
  url?: string;
  /** What opens it (`recollect token create`); `RECOLLECT_TOKEN` if not given. */
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

/** Sends requests below `/v1/agents/{agent}`. Every request that is sent here may be sent twice. */
export class Client {
  readonly agent: string;
  readonly #base: string;
  readonly #headers: Record<string, string>;
  readonly #timeoutMs: number;
  readonly #retryMs: number;
  readonly #fetch: typeof fetch;

  constructor(options: ClientOptions) {
    this.agent = checkAgent(options.agent);
    const url = options.url ?? process.env.RECOLLECT_URL ?? DEFAULT_URL;
    this.#base = `${url.replace(/\/+$/, "")}/v1/agents/${encodeURIComponent(this.agent)}`;
    const token = options.token ?? process.env.RECOLLECT_TOKEN;
    this.#headers = token ? { authorization: `Bearer ${token}` } : {};
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
        return this.#checked(method, tried, request.allow ?? []);
      }
      if (performance.now() + pause > deadline) {
        const why = tried instanceof Error ? reason(tried) : `it answers ${tried.status}`;
        throw new StoreError(`${method} ${url} was not carried out: ${why}; is recollect serve running there?`, {
          cause: tried,
        });
      }
      await sleep(pause * (0.5 + Math.random() / 2));
    }
  }

  /** Send one request; an error, not thrown, if no answer came. */
  async #once(method: string, url: string, { body, headers }: Request): Promise<Answer | Error> {
    try {
      const response = await this.#fetch(url, {
        method,
        headers: {
          ...this.#headers,
          ...headers,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        signal: AbortSignal.timeout(this.#timeoutMs),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, body: itemOf(text), etag: response.headers.get("etag") };
    } catch (error) {
      if (error instanceof Error) {
        return error;
      }
      throw error;
    }
  }

  #checked(method: string, answer: Answer, allow: readonly number[]): Answer {
    const { status, body } = answer;
    // The server says the same of an agent that is out of the token's reach and of one that is not there.
    const isDenied = [401, 403, 429].includes(status) || body.code === "agent_not_found";
    if (!isDenied && (status < 300 || allow.includes(status))) {
      return answer;
    }
    const detail = typeof body.detail === "string" ? body.detail : `the server answers ${status}`;
    if (isDenied) {
      throw new AccessDeniedError(`agent ${this.agent}: ${detail}; see recollect token create`);
    }
    throw new StoreError(`${method}: ${detail}`);
  }
}

function queryOf(query: Request["query"] = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(Object.fromEntries(given.map(([key, value]) => [key, String(value)]))).toString();
  return text && `?${text}`;
}

function itemOf(text: string): Item {
  try {
    return JSON.parse(text) as Item;
  } catch (error) {
    if (error instanceof SyntaxError) {
      return { detail: text.slice(0, 200) }; // What a proxy before the server says is no JSON.
    }
    throw error;
  }
}

function reason(error: Error): string {
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}
