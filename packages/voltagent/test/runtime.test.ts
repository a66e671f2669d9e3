/** VoltAgent's own runtime, with a mock model, on a real server. */
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { createTool, Memory } from "@voltagent/core";
import { simulateReadableStream } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";

import { MemoryAdapter } from "../src/index.js";
import { agentOf, type Content, type Model, model, says, stored, turn, usage } from "./agents.js";
import { runPython, sessionsOf } from "./places.js";
import { Server } from "./server.js";

const server = await Server.start();

test("a conversation of two turns survives a restart of everything", async () => {
  const server = await Server.start();
  const storage = await server.storage("coder");
  await agentOf(storage, model(says("Noted.")).model).generateText("I use pnpm", turn("c1"));
  await stored(storage, "c1", 2);
  await server.end("SIGKILL");
  await server.begin();
  const later = await server.storage("coder");
  const second = model(says("pnpm."));
  await agentOf(later, second.model).generateText("What do I use?", turn("c1"));
  assert.match(JSON.stringify(second.prompts[0]), /I use pnpm.*Noted\..*What do I use\?/);
  const found = await stored(later, "c1", 4);
  assert.deepEqual(found, ["user: I use pnpm", "assistant: Noted.", "user: What do I use?", "assistant: pnpm."]);
});

test("a turn that follows at once knows the question before it", async () => {
  const storage = await server.storage("quick");
  const ids = Array.from({ length: 5 }, (_, at) => `q${at}`);
  for (const id of ids) {
    const { model: instant, prompts } = model(says("Noted."), says("pnpm."));
    const agent = agentOf(storage, instant);
    await agent.generateText("I use pnpm", turn(id));
    await agent.generateText("What do I use?", turn(id));
    assert.match(JSON.stringify(prompts[1]), /I use pnpm.*Noted\..*What do I use\?/);
  }
});

test("a streamed answer is stored when it has been read to its end", async () => {
  const storage = await server.storage("streamed");
  const result = await agentOf(storage, streaming(["He", "llo"], 0)).streamText("Hi", turn("s"));
  for await (const _ of result.textStream) {
    // Reading it is what makes it go on.
  }
  assert.deepEqual((await stored(storage, "s", 2)).sort(), ["assistant: Hello", "user: Hi"]);
});

test("an aborted stream leaves the question and no broken answer", async () => {
  const storage = await server.storage("aborted");
  const abort = new AbortController();
  const words = Array.from({ length: 200 }, (_, at) => `w${at} `);
  const result = await agentOf(storage, streaming(words, 50)).streamText("Hi", { ...turn("s"), abortSignal: abort.signal });
  const reader = result.textStream[Symbol.asyncIterator]();
  await reader.next();
  abort.abort();
  await reader.next().catch(() => undefined);
  const [first, ...others] = await stored(storage, "s", 1);
  assert.equal(first, "user: Hi");
  assert.ok(others.length <= 1);
});

function streaming(words: string[], chunkDelayInMs: number): Model {
  type Part = Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;
  const chunks: Part[] = [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "t" },
    ...words.map((delta): Part => ({ type: "text-delta", id: "t", delta })),
    { type: "text-end", id: "t" },
    { type: "finish", usage, finishReason: { unified: "stop", raw: "stop" } },
  ];
  const doStream: Model["doStream"] = async () => ({ stream: simulateReadableStream({ chunks, chunkDelayInMs, initialDelayInMs: 0 }) });
  return new MockLanguageModelV3({ doStream });
}

test("a turn with a tool, which stores one message twice, reads back as one", async () => {
  const storage = await server.storage("tools");
  const look = createTool({
    name: "look",
    description: "Looks something up.",
    parameters: z.object({ q: z.string() }),
    execute: async ({ q }) => ({ found: q }),
  });
  const call: Content = [{ type: "tool-call", toolCallId: "t1", toolName: "look", input: '{"q":"pnpm"}' }];
  await agentOf(storage, model(call, says("It is pnpm.")).model, [look]).generateText("Look", turn("tool"));
  assert.deepEqual((await stored(storage, "tool", 2)).sort(), ["assistant: It is pnpm.", "user: Look"]);
  const found = await storage.getMessages("u1", "tool");
  const part = found.find(({ role }) => role === "assistant")?.parts.find(({ type }) => type === "tool-look");
  assert.match(JSON.stringify(part), /"found":"pnpm"/);
});

test("ten conversations at once do not mix", async () => {
  const storage = await server.storage("many");
  const ids = Array.from({ length: 10 }, (_, at) => `c${at}`);
  await Promise.all(ids.map((id) => agentOf(storage, model(says(`answer ${id}`)).model).generateText(`question ${id}`, turn(id))));
  for (const id of ids) {
    assert.deepEqual((await stored(storage, id, 2)).sort(), [`assistant: answer ${id}`, `user: question ${id}`]);
  }
  assert.equal(await storage.countConversations({ userId: "u1" }), 10);
});

test("an agent never reads another's, also with equal conversation ids", async () => {
  const [one, other] = [await server.storage("one"), await server.storage("other")];
  await agentOf(one, model(says("secret answer")).model).generateText("secret question", turn("same"));
  await stored(one, "same", 2);
  const spy = model(says("hello"));
  await agentOf(other, spy.model).generateText("What do you know?", turn("same"));
  assert.doesNotMatch(JSON.stringify(spy.prompts), /secret/);
  assert.deepEqual((await stored(other, "same", 2)).sort(), ["assistant: hello", "user: What do you know?"]);
  assert.deepEqual(await other.getConversations("one"), []);
});

test("a token of one agent does not open another's memory", async () => {
  const spy = await server.storage("one", { token: await server.token("other") });
  await assert.rejects(spy.getMessages("u1", "same"), { code: "access_denied" });
  await assert.rejects(spy.addMessage({ id: "x", role: "user", parts: [] }, "u1", "same"), { code: "access_denied" });
});

test("a server that is down for three seconds in mid-turn loses nothing", async () => {
  const server = await Server.start();
  const storage = await server.storage("coder");
  const doGenerate: Model["doGenerate"] = async () => {
    await server.end("SIGKILL");
    void sleep(3000).then(() => server.begin());
    return { content: says("still here"), usage, warnings: [], finishReason: { unified: "stop", raw: "stop" } };
  };
  await agentOf(storage, new MockLanguageModelV3({ doGenerate })).generateText("Are you there?", turn("down"));
  assert.deepEqual((await stored(storage, "down", 2)).sort(), ["assistant: still here", "user: Are you there?"]);
  assert.equal((await storage.getConversationSteps("u1", "down")).length, 1);
});

test("what VoltAgent wrote is listed, recalled and read by the Python adapter", async () => {
  const storage = await server.storage("listed");
  await agentOf(storage, model(says("Then pnpm it is.")).model).generateText("We settled on pnpm", turn("tools"));
  await stored(storage, "tools", 2);
  const listed = (await server.command("sessions", "list", "--agent", "listed")) as { sessions: { id: string }[] };
  assert.deepEqual(listed.sessions.map(({ id }) => id), ["tools"]);
  const hits = await server.command("recall", "what did we settle on", "--agent", "listed");
  assert.match(JSON.stringify(hits), /We settled on pnpm/);
  const program = `
import json, sys
from keepstone import MemoryAdapter
print(json.dumps([e["data"]["role"] + ": " + e["text"] for e in MemoryAdapter(sys.argv[1], "listed").load("tools")]))`;
  const read = JSON.parse(await runPython(program, server.home)) as string[];
  assert.deepEqual(read.sort(), ["assistant: Then pnpm it is.", "user: We settled on pnpm"]);
});

test("what Python and the file adapter saved is read as messages", async () => {
  const storage = await server.storage("mixed");
  await new MemoryAdapter({ root: server.home, agent: "mixed" }).save({ role: "user", content: "by file" }, "mixed");
  const program = "import sys; from keepstone import MemoryAdapter; MemoryAdapter(sys.argv[1], 'mixed').save({'role': 'assistant', 'content': 'by Python'}, 'mixed')";
  await runPython(program, server.home);
  assert.deepEqual(await stored(storage, "mixed", 2), ["user: by file", "assistant: by Python"]);
});

test("clearing truncates the log to zero bytes and is reported with agent, session and bytes", async () => {
  const reports: unknown[] = [];
  const logger = { info: (message: string, context?: object): unknown => reports.push([message, context]) };
  const storage = await server.storage("cleared", { logger });
  await agentOf(storage, model(says("ok")).model).generateText("Hi", turn("clear"));
  await stored(storage, "clear", 2);
  const log = join(sessionsOf(server.home, "cleared"), "clear.ndjson");
  const bytes = statSync(log).size;
  await new Memory({ storage }).clearMessages("u1", "clear");
  assert.equal(readFileSync(log, "utf8"), "");
  assert.deepEqual(reports, [["memory.clear", { event: "memory.clear", agent: "cleared", session: "clear", bytes }]]);
});

test("deleting a conversation removes its file and takes it from every list", async () => {
  const storage = await server.storage("deleted");
  await agentOf(storage, model(says("ok")).model).generateText("Hi", turn("gone"));
  await stored(storage, "gone", 2);
  await new Memory({ storage }).deleteConversation("gone");
  assert.throws(() => statSync(join(sessionsOf(server.home, "deleted"), "gone.ndjson")), { code: "ENOENT" });
  assert.deepEqual(await server.command("sessions", "list", "--agent", "deleted"), { sessions: [] });
  assert.deepEqual(await server.command("files", "list", "--agent", "deleted"), { files: [] });
  assert.equal(await storage.getConversation("gone"), null);
});
