/** The Vercel AI SDK with a mock model: tools and middleware, on a real server. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { generateText, simulateReadableStream, stepCountIs, streamText, wrapLanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";

import { AccessDeniedError, memoryMiddleware, memoryTools } from "../src/ai.js";
import { model, says, usage } from "./agents.js";
import { Server } from "./server.js";

const server = await Server.start();
const options = { agent: "coder", url: server.url, token: await server.token("coder") };
await server.command("add", "We use pnpm for the web shop", "--type", "decision", "--agent", "coder");
await server.command("add", "The harbour gate opens at six", "--type", "note", "--agent", "coder");

type Shown = { entries: { data: { role: string; content: string } }[] };

async function stored(session: string): Promise<string[]> {
  const { entries } = (await server.command("sessions", "show", session, "--agent", "coder")) as Shown;
  return entries.map(({ data }) => `${data.role}: ${data.content}`);
}

test("a model saves and searches with the tools", async () => {
  const call = (toolName: string, input: object) => [
    { type: "tool-call" as const, toolCallId: toolName, toolName, input: JSON.stringify(input) },
  ];
  const { model: scripted, prompts } = model(
    call("remember", { text: "Ada prefers green tea", tags: ["ada"] }),
    call("recall", { query: "tea" }),
    says("Green tea."),
  );
  const tools = memoryTools({ ...options, session: "from the sdk" });
  const { text } = await generateText({ model: scripted, tools, prompt: "Which tea?", stopWhen: stepCountIs(3) });
  assert.equal(text, "Green tea.");
  assert.match(JSON.stringify(prompts[2]), /Ada prefers green tea/);
});

test("the prompt has what the memory knows of the question", async () => {
  const { model: scripted, prompts } = model(says("pnpm."));
  const wrapped = wrapLanguageModel({ model: scripted, middleware: memoryMiddleware(options) });
  await generateText({ model: wrapped, system: "Help.", prompt: "Which package manager do we use?" });
  assert.deepEqual(prompts[0]?.map(({ role }) => role), ["system", "system", "user"]);
  assert.match(JSON.stringify(prompts[0]?.[0]), /We use pnpm for the web shop/);
});

test("what the prompt has already is not put in again", async () => {
  const { model: scripted, prompts } = model(says("Yes."));
  const wrapped = wrapLanguageModel({ model: scripted, middleware: memoryMiddleware(options) });
  await generateText({ model: wrapped, prompt: "When does the harbour gate open?" });
  await generateText({ model: wrapped, system: "The harbour gate opens at six", prompt: "When does the harbour gate open?" });
  assert.deepEqual(prompts.map((prompt) => JSON.stringify(prompt).split("opens at six").length - 1), [1, 1]);
});

test("a session keeps the question and the final answer of a turn with tools", async () => {
  const { model: scripted } = model(
    [{ type: "tool-call", toolCallId: "c1", toolName: "recall", input: '{"query":"pnpm"}' }],
    says("We use pnpm."),
  );
  const middleware = memoryMiddleware({ ...options, session: "turn" });
  const tools = memoryTools(options);
  const wrapped = wrapLanguageModel({ model: scripted, middleware });
  await generateText({ model: wrapped, tools, prompt: "Which one?", stopWhen: stepCountIs(2) });
  assert.deepEqual(await stored("turn"), ["user: Which one?", "assistant: We use pnpm."]);
});

test("a streamed answer is stored when it is whole", async () => {
  const finish = { type: "finish" as const, usage, finishReason: { unified: "stop" as const, raw: "stop" } };
  const deltas = ["We use ", "pnpm."].map((delta) => ({ type: "text-delta" as const, id: "1", delta }));
  const chunks = [{ type: "text-start" as const, id: "1" }, ...deltas, { type: "text-end" as const, id: "1" }, finish];
  const streaming = new MockLanguageModelV3({ doStream: async () => ({ stream: simulateReadableStream({ chunks }) }) });
  const middleware = memoryMiddleware({ ...options, session: "stream" });
  const { text } = streamText({ model: wrapLanguageModel({ model: streaming, middleware }), prompt: "Which one?" });
  assert.equal(await text, "We use pnpm.");
  assert.deepEqual(await stored("stream"), ["user: Which one?", "assistant: We use pnpm."]);
});

test("nothing is stored without a session", async () => {
  const before = (await server.command("sessions", "list", "--agent", "coder")) as unknown;
  const { model: scripted } = model(says("pnpm."));
  const wrapped = wrapLanguageModel({ model: scripted, middleware: memoryMiddleware(options) });
  await generateText({ model: wrapped, prompt: "Which package manager?" });
  assert.deepEqual(await server.command("sessions", "list", "--agent", "coder"), before);
});

test("a memory of another agent is refused", async () => {
  const { model: scripted } = model(says("x"));
  const middleware = memoryMiddleware({ ...options, agent: "other" });
  const wrapped = wrapLanguageModel({ model: scripted, middleware });
  await assert.rejects(generateText({ model: wrapped, prompt: "x", maxRetries: 0 }), AccessDeniedError);
});
