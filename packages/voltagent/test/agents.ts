/** VoltAgent's agents with a model with given answers, without a network. */
import { setTimeout as sleep } from "node:timers/promises";

import { Agent, Memory, type StorageAdapter } from "@voltagent/core";
import { MockLanguageModelV3 } from "ai/test";

export type Model = MockLanguageModelV3;
type Prompt = Parameters<Model["doGenerate"]>[0]["prompt"];
export type Content = Awaited<ReturnType<Model["doGenerate"]>>["content"];

export const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** Return a model that answers each call with the next of some answers, and the prompts that it was given. */
export function model(...answers: Content[]): { model: Model; prompts: Prompt[] } {
  const prompts: Prompt[] = [];
  const doGenerate: Model["doGenerate"] = async ({ prompt }) => {
    prompts.push(prompt);
    const content = answers[prompts.length - 1] ?? says("done");
    const unified = content.some(({ type }) => type === "tool-call") ? ("tool-calls" as const) : ("stop" as const);
    return { content, usage, warnings: [], finishReason: { unified, raw: unified } };
  };
  return { model: new MockLanguageModelV3({ doGenerate }), prompts };
}

export function says(text: string): Content {
  return [{ type: "text", text }];
}

export function agentOf(storage: StorageAdapter, model: Model, tools: ConstructorParameters<typeof Agent>[0]["tools"] = []): Agent {
  return new Agent({ name: "coder", instructions: "Help.", model, tools, memory: new Memory({ storage }) });
}

/** Return a conversation's texts once there are enough: the runtime stores some of them in the background. */
export async function stored(storage: StorageAdapter, id: string, count: number, userId = "u1"): Promise<string[]> {
  for (const end = Date.now() + 20_000; ; await sleep(20)) {
    const found = await storage.getMessages(userId, id);
    if (found.length >= count || Date.now() > end) {
      return found.map(({ role, parts }) => `${role}: ${parts.map((part) => (part.type === "text" ? part.text : "")).join("")}`);
    }
  }
}

export const turn = (conversationId: string, userId = "u1"): { userId: string; conversationId: string } => ({ userId, conversationId });
