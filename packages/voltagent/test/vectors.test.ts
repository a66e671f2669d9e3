/** Semantic search: the same cases on VoltAgent's own vectors in memory and on ours, and in a real agent's memory. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { after, test } from "node:test";

import { InMemoryVectorAdapter, Memory, type VectorAdapter } from "@voltagent/core";
import type { UIMessage } from "ai";

import { KeepstoneEmbedding, KeepstoneVectors, StoreError } from "../src/index.js";
import { KeepstoneRetriever } from "../src/recall.js";
import { Server } from "./server.js";

/** An embedder that counts letters, behind the API that keepstone's home is told to use. */
const letters = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => parts.push(part));
  request.on("end", () => {
    const { input } = JSON.parse(Buffer.concat(parts).toString()) as { input: string[] };
    const data = input.map((text, index) => ({ object: "embedding", index, embedding: counted(text) }));
    response.setHeader("content-type", "application/json").end(JSON.stringify({ object: "list", model: "letters", data }));
  });
});
const counted = (text: string): number[] =>
  Array.from("aeiouprtx", (letter) => text.toLowerCase().split(letter).length - 1 + (letter === "x" ? 0.1 : 0));
await new Promise<void>((resolve) => letters.listen(0, "127.0.0.1", resolve));
after(() => letters.close());
process.env.KEEPSTONE_EMBEDDER = `http://127.0.0.1:${(letters.address() as AddressInfo).port}/v1?model=letters`;

const server = await Server.start();
const token = await server.token();
const options = (agent: string): { agent: string; url: string; token: string } => ({ agent, url: server.url, token });
const PLACES: [string, () => VectorAdapter][] = [
  ["in memory", () => new InMemoryVectorAdapter()],
  ["keepstone", () => new KeepstoneVectors({ ...options("coder"), session: `v${Math.random()}` })],
];
const [EAST, NORTH, WEST] = [1, 2, 3].map((quarter) => Array.from({ length: 9 }, (_, at) => (at === 0 ? 2 - quarter : Number(at === 1 && quarter === 2))));

/** Run a case on each adapter. */
function each(name: string, run: (vectors: VectorAdapter) => Promise<void>): void {
  for (const [label, make] of PLACES) {
    test(`${label}: ${name}`, () => run(make()));
  }
}

const ids = (found: { id: string }[]): string[] => found.map(({ id }) => id);

each("the nearest vectors come first, with a score of one for the same direction", async (vectors) => {
  await vectors.storeBatch([{ id: "north", vector: NORTH as number[] }, { id: "west", vector: WEST as number[] }]);
  await vectors.store("east", EAST as number[]);
  const found = await vectors.search(EAST as number[]);
  assert.deepEqual(found.map(({ id, score }) => [id, Math.round(score * 1000) / 1000]), [["east", 1], ["north", 0.5], ["west", 0]]);
  assert.deepEqual(ids(await vectors.search(EAST as number[], { limit: 1 })), ["east"]);
  assert.deepEqual(ids(await vectors.search(EAST as number[], { threshold: 0.4 })), ["east", "north"]);
});

each("a filter compares whole values, and metadata comes back", async (vectors) => {
  const metadata = { userId: "ada", "dotted.key": 1, type: "note", nested: { list: [null, "é"] } };
  await vectors.store("one", EAST as number[], metadata);
  await vectors.store("two", EAST as number[], { ...metadata, userId: "eve" });
  await vectors.store("bare", EAST as number[]);
  const [found, ...others] = await vectors.search(NORTH as number[], { filter: { userId: "ada", "dotted.key": 1, type: "note" } });
  assert.deepEqual([found?.id, found?.metadata, others], ["one", metadata, []]);
  assert.deepEqual(await vectors.search(NORTH as number[], { filter: { userId: "nobody" } }), []);
});

each("a vector of a known id takes the other's place", async (vectors) => {
  await vectors.store("a", EAST as number[], { n: 1 });
  await vectors.store("a", NORTH as number[], { n: 2 });
  assert.deepEqual(await vectors.get("a"), { id: "a", vector: NORTH, metadata: { n: 2 } });
  assert.equal(await vectors.count(), 1);
});

each("what is deleted or cleared is gone, and unknown ids are fine", async (vectors) => {
  const all = ["a", "b", "c/ü", "."].map((id) => ({ id, vector: EAST as number[] }));
  await vectors.deleteBatch(["nobody"]);
  await vectors.storeBatch(all);
  await vectors.delete("a");
  await vectors.deleteBatch(["c/ü", "nobody"]);
  assert.deepEqual(ids(await vectors.search(EAST as number[])).sort(), [".", "b"]);
  assert.equal(await vectors.get("a"), null);
  await vectors.clear();
  await vectors.clear();
  assert.deepEqual([await vectors.count(), await vectors.search(EAST as number[])], [0, []]);
});

each("a vector of another dimension is refused and changes nothing", async (vectors) => {
  await vectors.store("a", EAST as number[]);
  await assert.rejects(vectors.store("b", [1, 2]));
  await assert.rejects(vectors.search([1, 2]));
  assert.equal(await vectors.count(), 1);
});

test("texts get vectors of the home's embedder, many with few requests", async () => {
  const sent: string[] = [];
  const counting: typeof fetch = (input, init) => (sent.push(String(input)), fetch(input, init));
  const embedding = new KeepstoneEmbedding({ ...options("coder"), fetch: counting });
  assert.deepEqual([embedding.getDimensions(), embedding.getModelName()], [0, "keepstone"]);
  const texts = Array.from({ length: 100 }, (_, at) => "a".repeat(at + 1) + "\ud800");
  const made = await embedding.embedBatch([...texts, "e".repeat(50_000)]);
  assert.deepEqual([made.length, sent.length], [101, 2]);
  assert.ok(made.every((vector) => Math.abs(Math.hypot(...vector) - 1) < 1e-5));
  assert.equal(embedding.getDimensions(), 9);
  assert.match(embedding.getModelName(), /letters/);
  assert.deepEqual(await embedding.embedBatch([]), []);
});

test("a home without an embedder says so", async () => {
  const home = await Server.start({ KEEPSTONE_EMBEDDER: "none" });
  const embedding = new KeepstoneEmbedding({ agent: "coder", url: home.url, token: await home.token(), retryMs: 0 });
  await assert.rejects(embedding.embed("x"), (error) => error instanceof StoreError && /no embedder/.test(error.message));
});

test("a memory finds earlier messages by their meaning, and forgets them with the conversation", async () => {
  const storage = await server.storage("sailor");
  const vector = new KeepstoneVectors(options("sailor"));
  const memory = new Memory({ storage, embedding: new KeepstoneEmbedding(options("sailor")), vector });
  const message = (id: string, text: string): UIMessage => ({ id, role: "user", parts: [{ type: "text", text }] });
  await memory.createConversation({ id: "c", userId: "ada", resourceId: "sailor", title: "", metadata: {} });
  await memory.addMessages([message("m1", "Put up the proper paper."), ...["m2", "m3"].map((id) => message(id, "Aea aeaea."))], "ada", "c");
  const found = await memory.getMessagesWithSemanticSearch("ada", "c", "up, pupper", { limit: 1, semanticLimit: 1 });
  assert.deepEqual(ids(found), ["m3", "m1"]);
  const retriever = new KeepstoneRetriever(options("sailor"));
  assert.deepEqual([...new Set((await retriever.recall("proper paper msg_c_m1")).map(({ session }) => session))], ["c"]);
  assert.doesNotMatch(await retriever.context("msg_c_m1"), /msg_c_m1/);
  await memory.deleteConversation("c");
  assert.equal(await vector.count(), 0);
});
