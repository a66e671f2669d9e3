/** What VoltAgent expects of a storage: the same cases on its own in-memory one and on ours. */
import assert from "node:assert/strict";
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import {
  type ConversationStepRecord, InMemoryStorageAdapter, type OperationContext, type StorageAdapter, type WorkflowStateEntry,
} from "@voltagent/core";
import type { UIMessage } from "ai";

import { KeepstoneFileStorage, type KeepstoneStorage, MemoryAdapter } from "../src/index.js";
import { newFolder, runPython } from "./places.js";
import { Server } from "./server.js";

const server = await Server.start();
const keepstone = await server.storage("coder");
const filesHome = newFolder();
const onFiles = new KeepstoneFileStorage({ root: filesHome, agent: "coder", logger: { info: () => undefined } });
const STORAGES: [string, StorageAdapter][] = [
  ["in memory", new InMemoryStorageAdapter()],
  ["keepstone", keepstone],
  ["keepstone on files", onFiles],
];
/** Ours, each with its home. */
const OURS = [["keepstone", keepstone, server.home], ["keepstone on files", onFiles, filesHome]] as const;

/** Run a case on each storage, in a conversation of its own. */
function each(name: string, run: (storage: StorageAdapter, conversation: string) => Promise<void>): void {
  for (const [label, storage] of STORAGES) {
    test(`${label}: ${name}`, () => run(storage, name));
  }
}

/** Run a case on ours, with a server and without. */
function ours(name: string, run: (storage: KeepstoneStorage | KeepstoneFileStorage, home: string) => Promise<void>): void {
  for (const [label, storage, home] of OURS) {
    test(`${label}: ${name}`, () => run(storage, home));
  }
}

function message(id: string, text: string, role: UIMessage["role"] = "user"): UIMessage {
  return { id, role, parts: [{ type: "text", text }] };
}

function conversation(id: string, userId = "u1"): Parameters<StorageAdapter["createConversation"]>[0] {
  return { id, userId, resourceId: "coder", title: `Title of ${id}`, metadata: { a: 1 } };
}

async function texts(storage: StorageAdapter, id: string, options = {}): Promise<string[]> {
  const found = await storage.getMessages("u1", id, options);
  return found.map(({ parts: [part] }) => textIn(part));
}

function textIn(part: UIMessage["parts"][number] | undefined): string {
  return part?.type === "text" ? part.text : "";
}

each("a message with a known id takes its place and keeps its time", async (storage, id) => {
  await storage.addMessages([message("a", "one"), message("b", "two")], "u1", id);
  const [before] = await storage.getMessages("u1", id);
  await storage.addMessage(message("a", "one again"), "u1", id);
  const [after] = await storage.getMessages("u1", id);
  assert.deepEqual(await texts(storage, id), ["one again", "two"]);
  assert.deepEqual(after?.metadata?.createdAt, before?.metadata?.createdAt);
});

each("a limit keeps the newest and returns them oldest first", async (storage, id) => {
  for (const text of ["1", "2", "3", "4"]) {
    await storage.addMessage(message(text, text), "u1", id);
  }
  assert.deepEqual(await texts(storage, id, { limit: 2 }), ["3", "4"]);
  assert.deepEqual(await texts(storage, id, { limit: 0 }), ["1", "2", "3", "4"]);
});

each("a limit that is no positive number is none", async (storage, id) => {
  await storage.createConversation(conversation(id, "limits"));
  await storage.addMessages([message("a", "1"), message("b", "2")], "u1", id);
  await storage.saveConversationSteps?.([step(id, "a", "text", 0), step(id, "b", "text", 1)]);
  await storage.setWorkflowState(id, { ...run(id, 1), workflowId: id });
  assert.deepEqual(await texts(storage, id, { limit: -1 }), ["1", "2"]);
  assert.equal((await storage.getConversationSteps?.("u1", id, { limit: -1 }))?.length, 2);
  assert.equal((await storage.queryConversations({ userId: "limits", limit: 0 })).length, 1);
  assert.equal((await storage.queryWorkflowRuns({ workflowId: id, limit: 0 })).length, 1);
});

each("a message of any id is stored, replaced and deleted", async (storage, id) => {
  for (const odd of ["", ".", "..", "%2E", "a/b?#%", "日本", "x".repeat(500)]) {
    await storage.addMessage(message(odd, "old"), "u1", id);
    await storage.addMessage(message(odd, "new"), "u1", id);
    assert.deepEqual((await storage.getMessages("u1", id)).map((one) => [one.id, ...one.parts.map(textIn)]), [[odd, "new"]]);
    await storage.deleteMessages([odd], "u1", id);
    assert.deepEqual(await texts(storage, id), []);
  }
});

each("only messages of the roles asked for come back", async (storage, id) => {
  await storage.addMessages([message("a", "q"), message("b", "a", "assistant"), message("c", "q2")], "u1", id);
  assert.deepEqual(await texts(storage, id, { roles: ["assistant"], limit: 1 }), ["a"]);
});

each("before and after leave out the instant itself", async (storage, id) => {
  for (const text of ["1", "2", "3"]) {
    await storage.addMessage(message(text, text), "u1", id);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const at = (await storage.getMessages("u1", id))[1]?.metadata?.createdAt as Date;
  assert.ok(at instanceof Date);
  assert.deepEqual(await texts(storage, id, { before: at }), ["1"]);
  assert.deepEqual(await texts(storage, id, { after: at }), ["3"]);
});

each("a missing conversation has no messages", async (storage, id) => {
  assert.deepEqual(await storage.getMessages("u1", id), []);
});

each("parts and metadata come back as they were given, without whose they are", async (storage, id) => {
  const given: UIMessage = {
    id: "m",
    role: "assistant",
    metadata: { operationId: "op", nested: { list: [1, null] } },
    parts: [
      { type: "tool-look", toolCallId: "t", state: "output-available", input: { q: 1 }, output: { ok: true } },
      { type: "step-start" },
      { type: "text", text: "done 😀" },
    ],
  };
  await storage.addMessage(given, "u1", id);
  const [found] = await storage.getMessages("u1", id);
  const { createdAt, ...metadata } = found?.metadata as { createdAt: Date };
  assert.ok(createdAt instanceof Date);
  assert.deepEqual({ id: found?.id, role: found?.role, parts: found?.parts, metadata }, given);
});

each("one user does not read another's messages", async (storage, id) => {
  await storage.addMessage(message("a", "mine"), "u1", id);
  await storage.addMessage(message("b", "theirs"), "u2", id);
  assert.deepEqual(await texts(storage, id), ["mine"]);
});

each("clearing leaves another user's messages alone", async (storage, id) => {
  await storage.addMessage(message("a", "theirs"), "u2", id);
  await storage.addMessage(message("b", "mine"), "u1", id);
  await storage.clearMessages("u1", id);
  assert.deepEqual(await texts(storage, id), []);
  assert.equal((await storage.getMessages("u2", id)).length, 1);
});

each("clearing a conversation keeps its record and forgets its steps", async (storage, id) => {
  await storage.createConversation(conversation(id));
  await storage.addMessage(message("a", "gone"), "u1", id);
  await storage.saveConversationSteps?.([step(id, "s", "text", 0)]);
  await storage.clearMessages("u1", id);
  assert.deepEqual(await texts(storage, id), []);
  assert.deepEqual(await storage.getConversationSteps?.("u1", id), []);
  assert.equal((await storage.getConversation(id))?.title, `Title of ${id}`);
});

each("clearing without a conversation clears all of the user's", async (storage, id) => {
  for (const part of ["x", "y"]) {
    await storage.createConversation(conversation(id + part, "u9"));
    await storage.addMessage(message("a", "gone"), "u9", id + part);
  }
  await storage.clearMessages("u9");
  assert.deepEqual(await storage.getMessages("u9", `${id}x`), []);
  assert.deepEqual(await storage.getMessages("u9", `${id}y`), []);
});

each("clearing without a conversation reaches the user's messages in other users' and unrecorded conversations", async (storage, id) => {
  await storage.createConversation(conversation(`${id}theirs`, "u8"));
  for (const part of ["theirs", "unrecorded"]) {
    await storage.addMessages([message("a", "gone"), message("c", "gone")], "u7", id + part);
    await storage.addMessage(message("b", "kept"), "u8", id + part);
    await storage.saveConversationSteps?.(["u7", "u8"].map((userId) => ({ ...step(id + part, userId, "text", 0), userId })));
  }
  await storage.clearMessages("u7");
  for (const part of ["theirs", "unrecorded"]) {
    assert.deepEqual(await storage.getMessages("u7", id + part), []);
    assert.equal((await storage.getMessages("u8", id + part)).length, 1);
  }
});

each("deleting messages ignores ids that there are not", async (storage, id) => {
  await storage.addMessages([message("a", "1"), message("b", "2")], "u1", id);
  await storage.deleteMessages(["a", "nobody"], "u1", id);
  assert.deepEqual(await texts(storage, id), ["2"]);
});

each("of many that begin one conversation at once, one succeeds", async (storage, id) => {
  const tries = await Promise.allSettled(Array.from({ length: 8 }, () => storage.createConversation(conversation(id))));
  const refused = tries.filter((one) => one.status === "rejected");
  // The in-memory one lets nothing come between; over a network only a check and set does.
  assert.equal(refused.length, 7);
  assert.equal((refused[0]?.reason as { code: string }).code, "CONVERSATION_ALREADY_EXISTS");
});

each("an update without changes moves the time of the last change", async (storage, id) => {
  const made = await storage.createConversation(conversation(id));
  await new Promise((resolve) => setTimeout(resolve, 5));
  const updated = await storage.updateConversation(id, {});
  assert.ok(updated.updatedAt > made.updatedAt);
  assert.deepEqual({ ...updated, updatedAt: "" }, { ...made, updatedAt: "" });
});

each("changes of a missing conversation are refused with its code", async (storage, id) => {
  await assert.rejects(storage.updateConversation(id, { title: "x" }), { code: "CONVERSATION_NOT_FOUND" });
  await assert.rejects(storage.deleteConversation(id), { code: "CONVERSATION_NOT_FOUND" });
  assert.equal(await storage.getConversation(id), null);
});

each("conversations are ordered, paged, filtered and counted", async (storage, id) => {
  for (const part of ["b", "c", "a"]) {
    await storage.createConversation(conversation(id + part, "pager"));
  }
  const options = { userId: "pager", orderBy: "title", orderDirection: "ASC", limit: 2, offset: 1 } as const;
  const found = await storage.queryConversations(options);
  assert.deepEqual(found.map((one) => one.id), [`${id}b`, `${id}c`]);
  assert.equal(await storage.countConversations(options), 3);
  assert.equal((await storage.getConversationsByUserId("nobody")).length, 0);
  assert.ok((await storage.getConversations("coder")).length >= 3);
});

each("working memory is one text for a conversation and one for a user", async (storage, id) => {
  await storage.createConversation(conversation(id));
  const [here, user] = [{ conversationId: id, userId: "w", scope: "conversation" }, { userId: "w", scope: "user" }] as const;
  assert.equal(await storage.getWorkingMemory(here), null);
  await storage.setWorkingMemory({ ...here, content: "likes pnpm" });
  await storage.setWorkingMemory({ ...user, content: "is called Ada" });
  assert.equal(await storage.getWorkingMemory(here), "likes pnpm");
  assert.equal(await storage.getWorkingMemory(user), "is called Ada");
  await storage.deleteWorkingMemory(user);
  assert.equal(await storage.getWorkingMemory(user), null);
});

function step(conversationId: string, id: string, type: ConversationStepRecord["type"], stepIndex: number): ConversationStepRecord {
  const createdAt = new Date(0).toISOString();
  return { id, conversationId, userId: "u1", agentId: "coder", operationId: "op", stepIndex, type, role: "assistant", createdAt };
}

each("steps come back in their order, the newest of a limit", async (storage, id) => {
  await storage.createConversation(conversation(id));
  await storage.saveConversationSteps?.([step(id, "c", "text", 2), step(id, "a", "text", 0)]);
  await storage.saveConversationSteps?.([step(id, "b", "text", 1), step(id, "a", "text", 0)]);
  const found = (await storage.getConversationSteps?.("u1", id)) ?? [];
  assert.deepEqual(found.map((one) => one.id), ["a", "b", "c"]);
  const last = (await storage.getConversationSteps?.("u1", id, { limit: 1, operationId: "op" })) ?? [];
  assert.deepEqual(last.map((one) => one.id), ["c"]);
});

function run(id: string, day: number, status: WorkflowStateEntry["status"] = "running"): WorkflowStateEntry {
  const at = new Date(Date.UTC(2026, 0, day));
  return { id, workflowId: "w", workflowName: "W", status, createdAt: at, updatedAt: at, metadata: { tag: { deep: [1] } } };
}

each("a workflow's state comes back with its times as dates", async (storage, id) => {
  const state = { ...run(id, 1), suspension: { suspendedAt: new Date(5), stepIndex: 2, reason: "approval" } };
  await storage.setWorkflowState(id, state);
  assert.deepEqual(await storage.getWorkflowState(id), state);
  await storage.updateWorkflowState(id, { status: "completed", output: { ok: true } });
  const found = await storage.getWorkflowState(id);
  assert.deepEqual([found?.status, found?.output], ["completed", { ok: true }]);
  assert.ok((found?.updatedAt as Date) > state.updatedAt);
  await storage.updateWorkflowState(id, { updatedAt: new Date(0) });
  assert.ok(((await storage.getWorkflowState(id))?.updatedAt as Date) > state.updatedAt);
  await assert.rejects(storage.updateWorkflowState("missing", {}));
});

each("an update with an undefined value clears it", async (storage, id) => {
  await storage.setWorkflowState(id, { ...run(id, 1), suspension: { suspendedAt: new Date(5), stepIndex: 2 }, output: 1 });
  await storage.updateWorkflowState(id, { status: "running", suspension: undefined } as unknown as Partial<WorkflowStateEntry>);
  const found = await storage.getWorkflowState(id);
  assert.deepEqual([found?.status, found?.suspension, found?.output], ["running", undefined, 1]);
});

each("workflow runs are found by state, time and metadata, the newest first", async (storage) => {
  for (const [id, day] of [["r1", 11], ["r2", 12], ["r3", 13]] as const) {
    await storage.setWorkflowState(id, run(id, day, "suspended"));
  }
  const from = new Date(Date.UTC(2026, 0, 12));
  const query = { workflowId: "w", status: "suspended", from, metadata: { tag: { deep: [1] } } } as const;
  assert.deepEqual((await storage.queryWorkflowRuns(query)).map(({ id }) => id), ["r3", "r2"]);
  assert.deepEqual((await storage.getSuspendedWorkflowStates("w")).map(({ id }) => id).sort(), ["r1", "r2", "r3"]);
});

ours("a tool call and its result, which share an id, are both kept", async (keepstone) => {
  await keepstone.saveConversationSteps([step("tools", "t", "tool_call", 0), step("tools", "t", "tool_result", 0)]);
  assert.deepEqual((await keepstone.getConversationSteps("u1", "tools")).map(({ type }) => type), ["tool_call", "tool_result"]);
});

ours("a damaged line among the steps hides no other, and goes when they are cleared", async (keepstone, home) => {
  const file = join(home, "agents", "coder", "files", "voltagent", "steps", "damaged.ndjson");
  await keepstone.saveConversationSteps([step("damaged", "a", "text", 0)]);
  appendFileSync(file, '{"id":"torn\n');
  await keepstone.saveConversationSteps([step("damaged", "b", "text", 1), { ...step("damaged", "c", "text", 2), userId: "u2" }]);
  assert.deepEqual((await keepstone.getConversationSteps("u1", "damaged")).map(({ id }) => id), ["a", "b"]);
  await keepstone.clearMessages("u1", "damaged");
  assert.match(readFileSync(file, "utf8"), /^\{"id":"c".*\n$/);
});

test("keepstone: a damaged record is named", async () => {
  const storage = await server.storage("broken");
  await storage.createConversation(conversation("b"));
  writeFileSync(join(server.home, "agents", "broken", "files", "voltagent", "conversations", "b.json"), "{");
  await assert.rejects(storage.getConversation("b"), { code: "store", message: /voltagent\/conversations\/b\.json/ });
});

ours("any id names a conversation, however long or odd", async (keepstone) => {
  for (const id of ["../x", "user:7/日本 %2F", "x".repeat(500), "", ".", "..", "NUL", "CON", "\ud800"]) {
    await keepstone.createConversation(conversation(id));
    await keepstone.addMessage(message("a/b?#%", "here"), "u1", id);
    assert.deepEqual(await texts(keepstone, id), ["here"]);
    assert.equal((await keepstone.getConversation(id))?.id, id.toWellFormed());
    await keepstone.deleteConversation(id);
    assert.deepEqual(await texts(keepstone, id), []);
  }
});

ours("a text with half a character is stored with a mark in its place", async (keepstone) => {
  await keepstone.addMessage(message("a", "cut \ud83d"), "u1", "torn");
  assert.deepEqual(await texts(keepstone, "torn"), ["cut \ufffd"]);
});

ours("clearing a user leaves what no user said where the session is not theirs", async (keepstone, home) => {
  const files = new MemoryAdapter({ root: home, agent: "coder", logger: { info: () => undefined } });
  await files.save({ role: "user", content: "by a script" }, "script");
  await keepstone.addMessage(message("a", "gone"), "u6", "script");
  await keepstone.clearMessages("u6");
  assert.deepEqual((await files.load("script")).map(({ content }) => content), ["by a script"]);
});

test("keepstone: clearing takes the user's archived messages and leaves another user's", async () => {
  const storage = await server.storage("aged");
  await storage.addMessage(message("theirs", "t"), "u2", "c");
  await storage.addMessage(message("old", "o"), "u1", "c");
  const archiving = `
import sys
from datetime import UTC, datetime
import keepstone
from keepstone.store.decay import Decay
keepstone.open(sys.argv[1]).agent("aged").session("c").archive_faded(Decay(datetime.now(UTC), threshold=1))`;
  await runPython(archiving, server.home);
  await storage.addMessage(message("new", "n"), "u1", "c");
  await storage.clearMessages("u1", "c");
  const listing = "import keepstone, sys; print(*(e.id for e in keepstone.open(sys.argv[1]).agent('aged').session('c').entries(archived=True)))";
  assert.equal(await runPython(listing, server.home), "theirs\n");
});

test("keepstone: one damaged record hides no other, and lists tell which it is", async () => {
  const told: unknown[] = [];
  const storage = await server.storage("listed", { logger: { info: (_, context) => told.push(context) } });
  const folder = join(server.home, "agents", "listed", "files", "voltagent");
  for (const id of ["a", "b"]) {
    await storage.createConversation(conversation(id));
    await storage.setWorkflowState(id, run(id, 1));
  }
  writeFileSync(join(folder, "conversations", "a.json"), "not json");
  writeFileSync(join(folder, "workflows", "a.json"), Buffer.from([0xff]));
  assert.deepEqual((await storage.queryConversations({ userId: "u1" })).map(({ id }) => id), ["b"]);
  assert.deepEqual((await storage.queryWorkflowRuns({})).map(({ id }) => id), ["b"]);
  const files = ["voltagent/conversations/a.json", "voltagent/workflows/a.json"];
  assert.deepEqual(told, files.map((file) => ({ event: "memory.damaged", agent: "listed", file })));
});

test("keepstone: a record without its times is listed and can be changed", async () => {
  const storage = await server.storage("timeless");
  const file = (kind: string): string => join(server.home, "agents", "timeless", "files", "voltagent", kind, "c.json");
  await storage.createConversation(conversation("c"));
  await storage.setWorkflowState("c", run("c", 1));
  for (const kind of ["conversations", "workflows"]) {
    const { updatedAt: _, createdAt: __, ...rest } = JSON.parse(readFileSync(file(kind), "utf8")) as Record<string, unknown>;
    writeFileSync(file(kind), JSON.stringify({ ...rest, updatedAt: "soon" }));
  }
  assert.equal((await storage.queryConversations({}))[0]?.updatedAt, new Date(0).toISOString());
  assert.equal((await storage.queryWorkflowRuns({}))[0]?.createdAt.getTime(), 0);
  assert.ok((await storage.updateConversation("c", { title: "New" })).updatedAt > new Date(0).toISOString());
});

ours("what a tool returned that has no JSON form leaves a marker, and the message is kept", async (keepstone) => {
  const circle: { name: string; self?: object } = { name: "loop" };
  circle.self = circle;
  let deep: object = {};
  for (let level = 0; level < 300; level += 1) {
    deep = { deep };
  }
  const broken = { get value(): never { throw new Error("gone"); } };
  const outputs = [circle, { count: 10n }, broken, { at: new Date(0), f: () => 1, n: NaN, half: "\ud800" }];
  const parts = outputs.map((output, at) => ({ type: "tool-look" as const, toolCallId: `t${at}`, state: "output-available" as const, input: {}, output }));
  await keepstone.addMessage({ id: "m", role: "assistant", parts: [...parts, { ...parts[0], output: deep } as never, { type: "text", text: "done" }] }, "u1", "marked");
  const [found] = await keepstone.getMessages("u1", "marked");
  const stored = (found?.parts ?? []).map((part) => ("output" in part ? part.output : part));
  assert.deepEqual(stored.slice(0, 4), [
    { name: "loop", self: "[Circular]" }, { count: "[BigInt: 10]" }, { value: "[Unreadable: gone]" },
    { at: new Date(0).toISOString(), n: null, half: "\ufffd" },
  ]);
  assert.match(JSON.stringify(stored[4]), /\{"deep":"\[Too deep\]"\}/);
  assert.deepEqual(stored[5], { type: "text", text: "done" });
});

ours("a part that is larger than a line leaves a marker, and the rest of the message is kept", async (keepstone) => {
  const huge = "x".repeat(17 * 1024 * 1024);
  const tool = { type: "tool-look" as const, toolCallId: "t", state: "output-available" as const, input: { q: 1 }, output: { rows: [huge] } };
  const file = { type: "file" as const, mediaType: "image/png", url: `data:image/png;base64,${huge}` };
  const metadata = { operationId: "op", trace: huge };
  await keepstone.addMessage({ id: "m", role: "assistant", metadata, parts: [tool, file, { type: "text", text: "done" }] }, "u1", "huge");
  const [found] = await keepstone.getMessages("u1", "huge");
  const large = /^\[Too large: 178\d{5} bytes\]$/;
  const [first, second, third] = found?.parts ?? [];
  assert.ok(first?.type === "tool-look" && "output" in first && second?.type === "text");
  assert.deepEqual([first.toolCallId, first.input], ["t", { q: 1 }]);
  assert.match(String(first.output), large);
  assert.match(second.text, large);
  assert.deepEqual(third, { type: "text", text: "done" });
  assert.equal((found?.metadata as { operationId?: string }).operationId, "op");
});

ours("a text that fits into a line once is stored whole", async (keepstone) => {
  const text = "word ".repeat(2 * 1024 * 1024);
  await keepstone.addMessage(message("m", text), "u1", "long");
  assert.deepEqual(await texts(keepstone, "long"), [text]);
});

ours("a turn whose beginning is no time stores its question all the same", async (keepstone) => {
  const context = { startTime: new Date(NaN) } as OperationContext;
  await keepstone.addMessage(message("m", "here"), "u1", "odd-turn", context);
  assert.deepEqual(await texts(keepstone, "odd-turn"), ["here"]);
});

ours("steps that no request can hold are stored, cleared for one user and kept for others", async (keepstone, home) => {
  const large = (id: string, userId: string, bytes: number): ConversationStepRecord => ({ ...step("big", id, "text", 0), userId, content: "x".repeat(bytes) });
  await keepstone.saveConversationSteps([1, 2, 3, 4].map((at) => large(`b${at}`, "u2", 9_000_000)));
  await keepstone.saveConversationSteps([large("a", "u1", 100), large("c", "u2", 40_000_000)]);
  const ids = async (userId: string): Promise<string[]> => (await keepstone.getConversationSteps(userId, "big")).map(({ id }) => id);
  await keepstone.clearMessages("u1", "big");
  assert.deepEqual([await ids("u1"), (await ids("u2")).sort()], [[], ["b1", "b2", "b3", "b4", "c"]]);
  await keepstone.saveConversationSteps([large("d", "u1", 100), large("e", "u2", 100)]);
  await keepstone.clearMessages("u1", "big");
  assert.deepEqual([await ids("u1"), (await ids("u2")).sort()], [[], ["b1", "b2", "b3", "b4", "c", "e"]]);
  await keepstone.clearMessages("u2", "big");
  const left = readdirSync(join(home, "agents", "coder", "files", "voltagent", "steps"), { recursive: true });
  assert.deepEqual(left.map(String).filter((name) => name.startsWith("big") && name.endsWith("ndjson")), []);
});

/** Return a storage and a list to which the methods and paths of its requests are added. */
async function counted(agent: string): Promise<{ storage: KeepstoneStorage; requests: string[] }> {
  const requests: string[] = [];
  const counting: typeof fetch = (input, init) => {
    requests.push(`${init?.method} ${new URL(String(input)).pathname.split(agent)[1]}`);
    return fetch(input, init);
  };
  return { storage: await server.storage(agent, { fetch: counting }), requests };
}

test("keepstone: many messages are stored, replaced and added with one request", async () => {
  const { storage, requests } = await counted("batches");
  const many = (text: string, count: number): UIMessage[] => Array.from({ length: count }, (_, at) => message(`m${at}`, `${text} ${at}`));
  await storage.addMessages(many("old", 1000), "u1", "c");
  await storage.addMessages(many("new", 1001), "u1", "c");
  assert.deepEqual(requests, Array.from({ length: 2 }, () => "PUT /sessions/c/entries"));
  assert.deepEqual(await texts(storage, "c"), Array.from({ length: 1001 }, (_, at) => `new ${at}`));
});

test("keepstone: a user with over 10,000 messages can be cleared, and no request has more", async () => {
  const counts: number[] = [];
  const counted: typeof fetch = (input, init) => {
    const { items, ids } = JSON.parse(String(init?.body ?? "{}")) as { items?: unknown[]; ids?: unknown[] };
    counts.push(...[items, ids].flatMap((some) => some?.length ?? []));
    return fetch(input, init);
  };
  const storage = await server.storage("talkative", { fetch: counted });
  await storage.addMessage(message("theirs", "kept"), "u2", "c");
  await storage.addMessages(Array.from({ length: 10_001 }, (_, at) => message(`m${at}`, "said")), "u1", "c");
  await storage.clearMessages("u1", "c");
  assert.deepEqual(await texts(storage, "c"), []);
  assert.deepEqual((await storage.getMessages("u2", "c")).map(({ id }) => id), ["theirs"]);
  assert.deepEqual(counts, [1, 10_000, 1, 10_000, 1]);
});

test("keepstone: a rare role is found with one request, however long the conversation is", async () => {
  const { storage, requests } = await counted("roles");
  const many = Array.from({ length: 3000 }, (_, at) => message(`m${at}`, `${at}`));
  await storage.addMessages([message("s", "rules", "system"), ...many], "u1", "c");
  requests.length = 0;
  assert.deepEqual(await texts(storage, "c", { roles: ["system"], limit: 10 }), ["rules"]);
  assert.equal(requests.length, 1);
});

test("keepstone: another user's many messages cost few requests", async () => {
  const { storage, requests } = await counted("users");
  await storage.addMessage(message("s", "mine"), "u1", "c");
  await storage.addMessages(Array.from({ length: 3000 }, (_, at) => message(`m${at}`, `${at}`)), "u2", "c");
  requests.length = 0;
  assert.deepEqual(await texts(storage, "c", { limit: 10 }), ["mine"]);
  assert.ok(requests.length <= 4, String(requests.length));
});

test("keepstone: single messages are deleted without reading the conversation, and only one's own", async () => {
  const { storage, requests } = await counted("deletes");
  await storage.addMessages(["a", "b"].map((id) => message(id, id)), "u1", "c");
  await storage.addMessage(message("theirs", "t"), "u2", "c");
  requests.length = 0;
  await storage.deleteMessages(["a", "theirs", "nobody"], "u1", "c");
  assert.deepEqual(requests.sort(), ["DELETE /entries/a", "GET /entries/a", "GET /entries/nobody", "GET /entries/theirs"]);
  assert.deepEqual(await texts(storage, "c"), ["b"]);
  assert.equal((await storage.getMessages("u2", "c")).length, 1);
});

test("keepstone: conversations and runs are listed without a request for each", async () => {
  const { storage, requests } = await counted("lists");
  await Promise.all(Array.from({ length: 30 }, (_, at) => storage.createConversation(conversation(`c${at}`))));
  await Promise.all(Array.from({ length: 30 }, (_, at) => storage.setWorkflowState(`r${at}`, run(`r${at}`, 1))));
  requests.length = 0;
  assert.equal((await storage.queryConversations({ limit: 5 })).length, 5);
  assert.equal(await storage.countConversations({}), 30);
  assert.equal((await storage.queryWorkflowRuns({})).length, 30);
  assert.deepEqual(requests, Array.from({ length: 3 }, () => "GET /file-contents"));
});
