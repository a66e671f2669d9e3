/** VoltAgent's semantic search on a running `keepstone serve`: the home's embedder, and vectors beside the messages. */
import type { EmbeddingAdapter, SearchResult, VectorAdapter, VectorItem } from "@voltagent/core";

import { Client, type ClientOptions } from "./client.js";
import { groupsOf, itemsIn } from "./fitting.js";
import { isItem, type Item, type Json, jsonOf } from "./json.js";
import { sessionFor } from "./layout.js";

/** Texts that the server embeds with one request, and characters of each; embedders read no more. */
const [TEXTS_AT_ONCE, LONGEST_TEXT] = [64, 32_768];
/** Vectors of one request, and the most hits of a search. */
const [VECTORS_AT_ONCE, MOST_HITS] = [1000, 1000];
const NOT_FOUND = 404;
const TYPE = "vector";
/** Expired from the beginning, so that recall and context, which leave out what has expired, never show a vector. */
const EXPIRED = "1970-01-01T00:00:00Z";

/**
 * Makes vectors with the embedder of the server's home.
 *
 * @example
 * const memory = new Memory({ storage, embedding: new KeepstoneEmbedding(options), vector: new KeepstoneVectors(options) });
 */
export class KeepstoneEmbedding implements EmbeddingAdapter {
  readonly #client: Client;
  #model = "keepstone";
  #dimensions = 0;

  constructor(options: ClientOptions) {
    this.#client = new Client(options);
  }

  async embed(text: string): Promise<number[]> {
    const [vector] = await this.embedBatch([text]);
    return vector as number[];
  }

  async embedBatch(texts: string[]): Promise<number[][]> {
    const vectors: number[][] = [];
    for (let at = 0; at < texts.length; at += TEXTS_AT_ONCE) {
      const group = texts.slice(at, at + TEXTS_AT_ONCE).map((text) => text.slice(0, LONGEST_TEXT).toWellFormed());
      const { body } = await this.#client.send("POST", "/embed", { body: { texts: group }, begins: true });
      // The home chooses its embedder, so the server's answer is the first to tell.
      [this.#model, this.#dimensions] = [String(body.space), Number(body.dim)];
      vectors.push(...(body.vectors as number[][]));
    }
    return vectors;
  }

  /** Return the dimension of the vectors; 0 before the first of them, as VoltAgent's own embedding does. */
  getDimensions(): number {
    return this.#dimensions;
  }

  /** Return the id of the embedder's vector space; `keepstone` before the first vector. */
  getModelName(): string {
    return this.#model;
  }
}

export interface KeepstoneVectorsOptions extends ClientOptions {
  /** The session that holds the vectors; `voltagent-vectors` if not given. */
  session?: string;
}

/**
 * Keeps vectors in a session of the agent, one entry each. Recall and context never show these entries.
 *
 * Vectors come back with unit length. All have one dimension: that of the home's embedder, else of the first.
 */
export class KeepstoneVectors implements VectorAdapter {
  readonly #client: Client;
  readonly #session: string;

  constructor({ session = "voltagent-vectors", ...options }: KeepstoneVectorsOptions) {
    this.#client = new Client(options);
    this.#session = sessionFor(session);
  }

  async store(id: string, vector: number[], metadata?: Record<string, unknown>): Promise<void> {
    await this.storeBatch([{ id, vector, ...(metadata === undefined ? {} : { metadata }) }]);
  }

  async storeBatch(items: VectorItem[]): Promise<void> {
    for (let at = 0; at < items.length; at += VECTORS_AT_ONCE) {
      const body = { items: items.slice(at, at + VECTORS_AT_ONCE).map(entryOf) };
      await this.#client.send("PUT", `${this.#path}/entries`, { body });
    }
  }

  /** Return the nearest vectors, best first; `score` is 1 for the same direction, 0.5 for a right angle. */
  async search(
    vector: number[],
    { limit = 10, filter = {}, threshold = 0 }: { limit?: number; filter?: Record<string, unknown>; threshold?: number } = {},
  ): Promise<SearchResult[]> {
    const conditions = Object.entries(filter).map(([key, value]) => [key, value === undefined ? { exists: false } : { eq: value }]);
    const body = jsonOf({
      vector,
      limit: Math.min(Math.max(limit, 0), MOST_HITS),
      sessions: [this.#session],
      types: [TYPE],
      where: Object.fromEntries(conditions),
      include_superseded: true,
    });
    const answer = await this.#client.send("POST", "/recall", { body, begins: true });
    const found = itemsIn(answer.body.hits).flatMap(resultOf);
    return found.filter(({ score }) => score >= threshold).sort((one, other) => other.score - one.score);
  }

  async delete(id: string): Promise<void> {
    await this.deleteBatch([id]);
  }

  /** Remove every byte of some vectors; ids that there are not are fine. */
  async deleteBatch(ids: string[]): Promise<void> {
    for (const group of groupsOf(ids.map((id) => id.toWellFormed()), Infinity, 10 * VECTORS_AT_ONCE)) {
      await this.#client.send("POST", `${this.#path}/purge`, { body: { ids: group }, allow: [NOT_FOUND] });
    }
  }

  async clear(): Promise<void> {
    await this.#client.send("DELETE", this.#path, { allow: [NOT_FOUND] });
  }

  async count(): Promise<number> {
    const { status, body } = await this.#client.send("GET", this.#path, { allow: [NOT_FOUND] });
    return status === NOT_FOUND ? 0 : Number(body.entries);
  }

  /** Return a vector, null if there is none of this id. */
  async get(id: string): Promise<VectorItem | null> {
    const body = { ids: [id.toWellFormed()], types: [TYPE], include_superseded: true };
    const { body: page } = await this.#client.send("POST", "/entries/list", { body });
    const entry = itemsIn(page.entries).find(({ session }) => session === this.#session);
    return entry === undefined ? null : itemOf(entry);
  }

  get #path(): string {
    return `/sessions/${encodeURIComponent(this.#session)}`;
  }
}

function entryOf({ id, vector, metadata }: VectorItem): Item {
  const name = id.toWellFormed();
  return { id: name, type: TYPE, text: name, data: jsonOf(metadata ?? {}), embedding: vector, expires: EXPIRED };
}

function itemOf(entry: Item): VectorItem {
  const metadata = isItem(entry.data) && Object.keys(entry.data).length > 0 ? { metadata: entry.data } : {};
  return { id: String(entry.id), vector: vectorOf(entry.embedding), ...metadata };
}

function resultOf({ entry, why }: Item): SearchResult[] {
  const cosine = isItem(why) ? why.cosine : null;
  if (!isItem(entry) || typeof cosine !== "number") {
    return [];
  }
  return [{ ...itemOf(entry), score: (cosine + 1) / 2, distance: 1 - cosine }];
}

/** Return the numbers of a vector as entries have it: base64 of little-endian float32. */
function vectorOf(embedding: Json | undefined): number[] {
  const bytes = Buffer.from(isItem(embedding) ? String(embedding.f32) : "", "base64");
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
}
