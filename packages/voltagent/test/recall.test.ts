/** The retriever and the tools, on a real server. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Agent } from "@voltagent/core";

import { AccessDeniedError, StoreError } from "../src/index.js";
import { type Hit, KeepstoneRetriever, memoryTools } from "../src/recall.js";
import { model, says } from "./agents.js";
import { Server } from "./server.js";

const server = await Server.start();
const token = await server.token("coder");
const options = { agent: "coder", url: server.url, token };
const retriever = new KeepstoneRetriever(options);

async function add(type: string, text: string, session = "s1", ...more: string[]): Promise<void> {
  await server.command("add", text, "--type", type, "--session", session, "--agent", "coder", ...more);
}

await add("decision", "We use pnpm for the web shop");
await add("note", "The harbour gate opens at six", "harbour", "--tag", "port");

const texts = (hits: Hit[]): string[] => hits.map(({ text }) => text);

test("a recall finds what the command added, with its session and time", async () => {
  const [hit] = await retriever.recall("pnpm");
  assert.deepEqual([hit?.session, hit?.type, hit?.text], ["s1", "decision", "We use pnpm for the web shop"]);
  assert.ok(hit && Math.abs(Date.now() - hit.ts.getTime()) < 600_000 && hit.score > 0);
});

test("a recall is limited by types, tags, sessions and number", async () => {
  assert.deepEqual(texts(await retriever.recall("pnpm harbour", { types: ["decision"] })), ["We use pnpm for the web shop"]);
  assert.deepEqual(texts(await retriever.recall("pnpm harbour", { tags: ["port"] })), ["The harbour gate opens at six"]);
  assert.ok((await retriever.recall("pnpm", { sessions: ["harbour"] })).every(({ session }) => session === "harbour"));
  assert.deepEqual(await retriever.recall("pnpm", { limit: 0 }), []);
  assert.deepEqual(await retriever.recall("pnpm", { until: new Date(0) }), []);
});

test("the context has decisions and what matches, and leaves out what the prompt has", async () => {
  const context = await retriever.context("When does the gate open?");
  assert.match(context, /We use pnpm[\s\S]*The harbour gate opens at six/);
  const known = { window: ["The harbour gate opens at six"] };
  assert.doesNotMatch(await retriever.context("When does the gate open?", known), /opens at six/);
});

test("an agent's prompt has what the retriever finds for its question", async () => {
  const { model: scripted, prompts } = model(says("At six."));
  const agent = new Agent({ name: "coder", instructions: "Help.", model: scripted, retriever });
  await agent.generateText("When does the harbour gate open?");
  assert.match(JSON.stringify(prompts[0]), /The harbour gate opens at six/);
});

test("a retriever reads the newest question of a list of messages", async () => {
  const found = await retriever.retrieve([
    { role: "user", content: "Hello" },
    { role: "user", content: [{ type: "text", text: "harbour gate?" }] },
    { role: "assistant", content: "Let me see" },
  ]);
  assert.match(found, /opens at six/);
});

test("a model saves and searches with the tools", async () => {
  const call = (toolName: string, input: object) => [
    { type: "tool-call" as const, toolCallId: toolName, toolName, input: JSON.stringify(input) },
  ];
  const { model: scripted, prompts } = model(
    call("remember", { text: "Ada prefers green tea", tags: ["ada"] }),
    call("recall", { query: "tea" }),
    says("Green tea."),
  );
  const tools = memoryTools({ ...options, session: "from tools" });
  const agent = new Agent({ name: "coder", instructions: "Help.", model: scripted, tools });
  assert.equal((await agent.generateText("Which tea does Ada like?")).text, "Green tea.");
  assert.match(JSON.stringify(prompts[2]), /Ada prefers green tea/);
  assert.deepEqual(texts(await retriever.recall("tea", { tags: ["ada"] })), ["Ada prefers green tea"]);
});

test("a token for another agent is refused", async () => {
  const other = new KeepstoneRetriever({ ...options, agent: "other" });
  await assert.rejects(other.recall("pnpm"), AccessDeniedError);
});

test("a server that is away is an error after the time to try again", async () => {
  const away = new KeepstoneRetriever({ ...options, url: "http://127.0.0.1:9", retryMs: 100 });
  await assert.rejects(away.context("pnpm"), StoreError);
});
