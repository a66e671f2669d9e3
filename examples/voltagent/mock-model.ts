/** A model without a network: it calls the tool when it is asked for the tide, and remembers through its prompt. */
import { MockLanguageModelV3 } from "ai/test";

type Generate = MockLanguageModelV3["doGenerate"];
type Content = Awaited<ReturnType<Generate>>["content"];

const usage = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
};

const doGenerate: Generate = async ({ prompt }) => {
  const content = answerTo(JSON.stringify(prompt.at(-1)), JSON.stringify(prompt));
  const unified = content[0]?.type === "tool-call" ? "tool-calls" : "stop";
  return { content, usage, warnings: [], finishReason: { unified, raw: unified } };
};

function answerTo(last: string, all: string): Content {
  const harbour = /sail from (\w+)/.exec(all)?.[1] ?? "an unknown harbour";
  const high = /"high":"([\d:]+)"/.exec(last)?.[1];
  if (high !== undefined) {
    return [{ type: "text", text: `High water in ${harbour} is at ${high}.` }];
  }
  if (last.includes("tide")) {
    const input = JSON.stringify({ harbour });
    return [{ type: "tool-call", toolCallId: `tide-${Date.now()}`, toolName: "tide", input }];
  }
  return [{ type: "text", text: `Noted: ${harbour}.` }];
}

export const model = new MockLanguageModelV3({ doGenerate });
