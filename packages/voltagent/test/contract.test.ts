/** What VoltAgent expects of a storage: the same cases on its own in-memory one and on ours. */
import assert from "node:assert/strict";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import {
  type ConversationStepRecord, InMemoryStorageAdapter, type StorageAdapter, type WorkflowStateEntry,
} from "@voltagent/core";
import type { UIMessage } from "ai";

import { Server } from "./server.js";

const server = await Server.start();
const keepstone = await server.storage("coder");
const STORAGES: [string, StorageAdapter][] = [
  ["in memory", new InMemoryStorageAdapter()],
  ["keepstone", keepstone],
];

/** Run a case on each storage, in a conversation of its own. */
function each(name: string, run: (storage: StorageAdapter, conversation: string) => Promise<void>): void {
  for (const [label, storage] of STORAGES) {
    test(`${label}: ${name}`, () => run(storage, name));
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

each("workflow runs are found by state, time and metadata, the newest first", async (storage) => {
  for (const [id, day] of [["r1", 11], ["r2", 12], ["r3", 13]] as const) {
    await storage.setWorkflowState(id, run(id, day, "suspended"));
  }
  const from = new Date(Date.UTC(2026, 0, 12));
  const query = { workflowId: "w", status: "suspended", from, metadata: { tag: { deep: [1] } } } as const;
  assert.deepEqual((await storage.queryWorkflowRuns(query)).map(({ id }) => id), ["r3", "r2"]);
  assert.deepEqual((await storage.getSuspendedWorkflowStates("w")).map(({ id }) => id).sort(), ["r1", "r2", "r3"]);
});

test("keepstone: a tool call and its result, which share an id, are both kept", async () => {
  await keepstone.saveConversationSteps([step("tools", "t", "tool_call", 0), step("tools", "t", "tool_result", 0)]);
  assert.deepEqual((await keepstone.getConversationSteps("u1", "tools")).map(({ type }) => type), ["tool_call", "tool_result"]);
});

test("keepstone: a damaged line among the steps hides no other, and goes when they are cleared", async () => {
  const file = join(server.home, "agents", "coder", "files", "voltagent", "steps", "damaged.ndjson");
  await keepstone.saveConversationSteps([step("damaged", "a", "text", 0)]);
  appendFileSync(file, '{"id":"torn\n');
  await keepstone.saveConversationSteps([step("damaged", "b", "text", 1), { ...step("damaged", "c", "text", 2), userId: "u2" }]);
  assert.deepEqual((await keepstone.getConversationSteps("u1", "damaged")).map(({ id }) => id), ["a", "b"]);
  await keepstone.clearMessages("u1", "damaged");
  assert.match(readFileSync(file, "utf8"), /^\{"id":"c".*\n$/);
});

test("keepstone: a record that somebody has broken is named", async () => {
  const storage = await server.storage("broken");
  await storage.createConversation(conversation("b"));
  writeFileSync(join(server.home, "agents", "broken", "files", "voltagent", "conversations", "b.json"), "{");
  await assert.rejects(storage.getConversation("b"), { code: "store", message: /voltagent\/conversations\/b\.json/ });
});

test("keepstone: any id names a conversation, however long or odd", async () => {
  for (const id of ["../x", "user:7/日本 %2F", "x".repeat(500), "", ".", "..", "NUL", "CON", "\ud800"]) {
    await keepstone.createConversation(conversation(id));
    await keepstone.addMessage(message("a/b?#%", "here"), "u1", id);
    assert.deepEqual(await texts(keepstone, id), ["here"]);
    assert.equal((await keepstone.getConversation(id))?.id, id.toWellFormed());
    await keepstone.deleteConversation(id);
    assert.deepEqual(await texts(keepstone, id), []);
  }
});

test("keepstone: a text with half a character is stored with a mark in its place", async () => {
  await keepstone.addMessage(message("a", "cut \ud83d"), "u1", "torn");
  assert.deepEqual(await texts(keepstone, "torn"), ["cut \ufffd"]);
});
