/** What VoltAgent's runtime does beside an ordinary turn: in the background, late, again, or not at all. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import {
  Agent, type AgentOptions, createWorkflowChain, type EmbeddingAdapter, InMemoryVectorAdapter, Memory, WorkflowRegistry,
} from "@voltagent/core";
import type { UIMessage } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";

import { agentOf, model, says, stored, turn } from "./agents.js";
import { Server } from "./server.js";

const server = await Server.start();

const question: UIMessage = { id: "q", role: "user", parts: [{ type: "text", text: "Which port?" }] };

test("a conversation that is deleted or cleared right after its turn stays so", async () => {
  const storage = await server.storage("at-once");
  const ids = Array.from({ length: 8 }, (_, at) => `c${at}`);
  await Promise.all(
    ids.map(async (id, at) => {
      await agentOf(storage, model(says("ok")).model).generateText("Hi", turn(id));
      await (at % 2 ? storage.deleteConversation(id) : storage.clearMessages("u1", id));
    }),
  );
  await sleep(1000);
  const { sessions } = (await server.command("sessions", "list", "--agent", "at-once")) as { sessions: { id: string; size: number }[] };
  assert.deepEqual(sessions.map(({ id, size }) => [id, size]).sort(), [["c0", 0], ["c2", 0], ["c4", 0], ["c6", 0]]);
  const { files } = (await server.command("files", "list", "--agent", "at-once")) as { files: string[] };
  assert.deepEqual(files, ["c0", "c2", "c4", "c6"].map((id) => `voltagent/conversations/${id}.json`));
});

test("a slow server, which is asked several times to begin one conversation, has it once", async () => {
  const slow: typeof fetch = async (...request) => {
    await sleep(50);
    return fetch(...request);
  };
  const storage = await server.storage("slow", { fetch: slow });
  const agent = agentOf(storage, model(says("one"), says("two"), says("three")).model);
  await Promise.all(["a", "b", "c"].map((text) => agent.generateText(text, turn("s"))));
  assert.equal((await stored(storage, "s", 6)).length, 6);
  assert.equal(await storage.countConversations({ userId: "u1" }), 1);
});

test("ten turns at once on two conversations lose nothing, and each question comes before its answer", async () => {
  const storage = await server.storage("race");
  const ids = Array.from({ length: 10 }, (_, at) => `c${at % 2}`);
  await Promise.all(ids.map((id, at) => agentOf(storage, model(says(`answer ${at}`)).model).generateText(`question ${at}`, turn(id))));
  for (const id of ["c0", "c1"]) {
    const found = await stored(storage, id, 10);
    assert.equal(new Set(found).size, 10);
    for (const answer of found.filter((text) => text.startsWith("assistant"))) {
      assert.ok(found.indexOf(answer.replace("assistant: answer", "user: question")) < found.indexOf(answer));
    }
  }
});

test("a server that is away for longer than the storage tries is reported through VoltAgent's logger", async () => {
  const reports: string[] = [];
  const server = await Server.start();
  const storage = await server.storage("away", { retryMs: 300 });
  await server.end("SIGKILL");
  const memory = new Memory({ storage });
  const logger = listening(reports);
  const agent = new Agent({ name: "away", instructions: "Help.", model: model(says("ok")).model, memory, logger });
  assert.equal((await agent.generateText([question], turn("c"))).text, "ok");
  const report = /Memory write failed: .* was not carried out: .*; is keepstone serve running there\?/;
  for (const end = Date.now() + 20_000; !reports.some((told) => report.test(told)) && Date.now() < end; ) {
    await sleep(50);
  }
  assert.match(reports.join("\n"), report);
  await server.begin();
  await agentOf(storage, model(says("8765")).model).generateText([question], turn("c"));
  await agentOf(storage, model(says("8765")).model).generateText([question], turn("c"));
  const found = await stored(storage, "c", 3);
  assert.deepEqual(found, ["user: Which port?", "assistant: 8765", "assistant: 8765"]);
});

test("a turn while the server is down answers within five seconds and says so", async () => {
  const reports: string[] = [];
  const server = await Server.start();
  const storage = await server.storage("down");
  await server.end("SIGKILL");
  const begin = performance.now();
  const memory = new Memory({ storage });
  const agent = new Agent({ name: "down", instructions: "Help.", model: model(says("ok")).model, memory, logger: listening(reports) });
  assert.equal((await agent.generateText("Hi", turn("c"))).text, "ok");
  assert.ok(performance.now() - begin < 5000);
  // Its working memory is another matter: VoltAgent does not answer without that, and says why.
  const working = new Memory({ storage, workingMemory: { enabled: true } });
  const strict = new Agent({ name: "down", instructions: "Help.", model: model(says("ok")).model, memory: working });
  await assert.rejects(strict.generateText("Hi", turn("c")), /is keepstone serve running there\?/);
  assert.match(reports.join("\n"), /Memory write failed: .*; is keepstone serve running there\?/);
});

/** Return a logger that keeps what it is told of errors. */
function listening(reports: string[]): NonNullable<AgentOptions["logger"]> {
  const deaf = (): void => undefined;
  const error = (...told: unknown[]): void => void reports.push(JSON.stringify(told));
  const logger = { trace: deaf, debug: deaf, info: deaf, warn: deaf, error, fatal: error, child: () => logger };
  return logger;
}

test("a turn without a user touches no memory", async () => {
  const storage = await server.storage("nobody");
  await agentOf(storage, model(says("ok")).model).generateText("Hi", { conversationId: "c" });
  await agentOf(storage, model(says("ok")).model).generateText("Hi");
  await sleep(300);
  assert.deepEqual(await storage.queryConversations({}), []);
});

test("a turn that may only read stores nothing, and its limit is kept", async () => {
  const storage = await server.storage("reader");
  for (const n of [1, 2, 3]) {
    await storage.addMessage({ id: `${n}`, role: "user", parts: [{ type: "text", text: `fact ${n}` }] }, "u1", "c");
  }
  const reader = model(says("ok"));
  const memory = { ...turn("c"), options: { readOnly: true, contextLimit: 2 } };
  await agentOf(storage, reader.model).generateText("What do you know?", { memory });
  assert.match(JSON.stringify(reader.prompts[0]), /fact 2.*fact 3/);
  assert.doesNotMatch(JSON.stringify(reader.prompts[0]), /fact 1/);
  await sleep(300);
  assert.equal((await storage.getMessages("u1", "c")).length, 3);
});

test("what the model writes into its working memory is in its next prompt", async () => {
  const storage = await server.storage("notes");
  const memory = new Memory({ storage, workingMemory: { enabled: true, scope: "user" } });
  const note = [{ type: "tool-call" as const, toolCallId: "t", toolName: "update_working_memory", input: '{"content":"Sails from Calais"}' }];
  const first = model(note, says("Noted."));
  await new Agent({ name: "notes", instructions: "Help.", model: first.model, memory }).generateText("I sail from Calais", turn("c1"));
  const second = model(says("Calais."));
  await new Agent({ name: "notes", instructions: "Help.", model: second.model, memory }).generateText("Where from?", turn("c2"));
  assert.match(JSON.stringify(second.prompts[0]), /Sails from Calais/);
});

test("a workflow that was suspended goes on after a restart of the server", async () => {
  const server = await Server.start();
  const storage = await server.storage("flow");
  const workflow = approval(new Memory({ storage }));
  WorkflowRegistry.getInstance().registerWorkflow(workflow);
  const run = await workflow.run({ amount: 5 });
  assert.equal(run.status, "suspended");
  await server.end("SIGKILL");
  await server.begin();
  const [state] = await storage.getSuspendedWorkflowStates("approval");
  assert.deepEqual([state?.id, state?.suspension?.suspendedAt instanceof Date], [run.executionId, true]);
  const resumed = await run.resume({ approved: true });
  assert.deepEqual(resumed.result, { amount: 5, approved: true });
  assert.equal((await storage.getWorkflowState(run.executionId))?.status, "completed");
});

function approval(memory: Memory) {
  return createWorkflowChain({ id: "approval", name: "Approval", input: z.object({ amount: z.number() }), result: z.any(), memory })
    .andThen({
      id: "ask",
      resumeSchema: z.object({ approved: z.boolean() }),
      execute: async ({ data, suspend, resumeData }) => (resumeData ? { ...data, ...resumeData } : suspend("needs approval")),
    })
    .toWorkflow();
}

test("with vectors beside it, messages are cleared and conversations deleted as well", async () => {
  const storage = await server.storage("vectors");
  const embedding: EmbeddingAdapter = {
    embed: async (text) => [text.length, 1],
    embedBatch: async (texts) => texts.map((text) => [text.length, 1]),
    getDimensions: () => 2,
    getModelName: () => "length",
  };
  const vector = new InMemoryVectorAdapter();
  const memory = new Memory({ storage, embedding, vector });
  await new Agent({ name: "v", instructions: "Help.", model: model(says("ok")).model, memory }).generateText("Hi", turn("c"));
  assert.equal((await stored(storage, "c", 2)).length, 2);
  await memory.clearMessages("u1");
  assert.deepEqual(await storage.getMessages("u1", "c"), []);
  await memory.deleteConversation("c");
  assert.equal(await storage.getConversation("c"), null);
  assert.deepEqual(await vector.search([2, 1], { limit: 10 }), []);
});

test("an answer of a model that fails in mid-turn leaves the question", async () => {
  const storage = await server.storage("failing");
  const failing = new MockLanguageModelV3({ doGenerate: async () => Promise.reject(new Error("the model went away")) });
  await assert.rejects(agentOf(storage, failing).generateText("Hi", { ...turn("c"), maxRetries: 0 }));
  assert.deepEqual(await stored(storage, "c", 1), ["user: Hi"]);
});
