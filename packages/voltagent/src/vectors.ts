/** Semantic search for VoltAgent on a running `keepstone serve`: the home's embedder, and a vector store. */
import type { EmbeddingAdapter, SearchResult, VectorAdapter, VectorItem } from "@voltagent/core";

import { Client, type ClientOptions } from "./client.js";
import { groupsOf, itemsIn } from "./fitting.js";
import { isItem, type Item, type Json, jsonOf } from "./json.js";
import { sessionFor } from "./layout.js";

/** Maximum number of texts that the server embeds with one request, and characters that embedders read of a text. */
const [TEXTS_AT_ONCE, LONGEST_TEXT] = [64, 32_768];
/** Maximum number of vectors in one request, and of hits in a search. */
const [VECTORS_AT_ONCE, MOST_HITS] = [1000, 1000];
const NOT_FOUND = 404;
const TYPE = "vector";
/** Vectors expire at once, so that recall and context, which leave out expired entries, never show them. */
const EXPIRED = "1970-01-01T00:00:00Z";

/**
 * Embeds texts with the embedder of the server's home.
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
      // The home chooses its embedder, so only the server's response names the model.
      [this.#model, this.#dimensions] = [String(body.space), Number(body.dim)];
      vectors.push(...(body.vectors as number[][]));
    }
    return vectors;
  }

  /** Return the dimension of the vectors; like VoltAgent's own embedding, 0 before the first vector. */
  getDimensions(): number {
    return this.#dimensions;
  }

  /** Return the id of the embedder's vector space; `keepstone` before the first vector. */
  getModelName(): string {
    return this.#model;
  }
}

export interface KeepstoneVectorsOptions extends ClientOptions {
  /** The session that holds the vectors. Default `voltagent-vectors`. */
  session?: string;
}

/**
 * Stores vectors in a session of the agent, as one entry each. Recall and context never show these entries.
 *
 * Vectors are returned with unit length. All must have the dimension of the home's embedder or, without an embedder,
 * of the first vector.
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

  /** Return the nearest vectors, the best first; `score` is 1 for the same direction, 0.5 for a right angle. */
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

  /** Erase vectors; ignore unknown ids. */
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

  /** Return the vector with this id, null if it is missing. */
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

/** Decode an entry's vector, which is base64 of little-endian float32. */
function vectorOf(embedding: Json | undefined): number[] {
  const bytes = Buffer.from(isItem(embedding) ? String(embedding.f32) : "", "base64");
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
}
