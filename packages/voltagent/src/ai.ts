/** Memory of a running `keepstone serve` for the Vercel AI SDK: tools, and middleware for a model. */
import { randomUUID } from "node:crypto";

import { type LanguageModelMiddleware, tool, type ToolSet } from "ai";

import { Client, type ClientOptions } from "./client.js";
import type { Item } from "./json.js";
import { sessionFor } from "./layout.js";
import { contextFor, found, recalling, REMEMBER, remembered, remembering, SEARCH } from "./memory-calls.js";

export { AccessDeniedError, KeepstoneError, StoreError } from "./errors.js";
export type { ClientOptions } from "./client.js";

type Transform = NonNullable<LanguageModelMiddleware["transformParams"]>;
type Prompt = Parameters<Transform>[0]["params"]["prompt"];
type Streamed = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapStream"]>>>["stream"];
type StreamPart = Streamed extends ReadableStream<infer Part> ? Part : never;

export interface MemoryMiddlewareOptions extends ClientOptions {
  /** Maximum number of tokens in the memory block. Default 2000. */
  budget?: number;
  /** The session in which questions and answers are stored. By default nothing is stored. */
  session?: string;
}

/** Return two tools with which a model saves to this memory and searches it: `remember` and `recall`. */
export function memoryTools({ session = "main", ...options }: ClientOptions & { session?: string }): ToolSet {
  const client = new Client(options);
  return {
    remember: tool({
      description: REMEMBER,
      inputSchema: remembering,
      execute: async (given) => remembered(client, session, given),
    }),
    recall: tool({ description: SEARCH, inputSchema: recalling, execute: async (given) => found(client, given) }),
  };
}

/**
 * Return middleware that adds a memory block to each prompt: pinned entries, preferences, decisions, and entries that
 * match the question. With a session, it stores questions and final answers there.
 *
 * @example
 * const model = wrapLanguageModel({ model: openai("gpt-4o-mini"), middleware: memoryMiddleware({ agent: "coder" }) });
 */
export function memoryMiddleware({ budget, session, ...options }: MemoryMiddlewareOptions): LanguageModelMiddleware {
  const client = new Client(options);
  const limits = budget === undefined ? {} : { budget };
  const path = session === undefined ? undefined : `/sessions/${encodeURIComponent(sessionFor(session))}/entries`;

  async function store(prompt: Prompt, answer: string): Promise<void> {
    if (path === undefined || answer === "") {
      return;
    }
    const said = [{ role: "user", content: textOf(questionIn(prompt)) }, { role: "assistant", content: answer }];
    const items: Item[] = said
      .filter(({ content }) => content !== "")
      // The ids are created here, so that a repeated request stores nothing twice.
      .map(({ role, content }) => ({ id: randomUUID(), type: "message", data: { role, content: content.toWellFormed() } }));
    await client.send("PUT", path, { body: { items } });
  }

  return {
    specificationVersion: "v3",
    transformParams: async ({ params }) => {
      // Texts that are already in the prompt are left out of the block, to save its tokens for other entries.
      const window = params.prompt.map(textOf).filter((text) => text !== "");
      const block = await contextFor(client, textOf(questionIn(params.prompt)), { ...limits, window });
      return block === "" ? params : { ...params, prompt: [{ role: "system", content: block }, ...params.prompt] };
    },
    wrapGenerate: async ({ doGenerate, params }) => {
      const result = await doGenerate();
      // The SDK calls the model again with the results of its tools. Only the last call has the answer.
      if (result.finishReason.unified !== "tool-calls") {
        await store(params.prompt, result.content.map((part) => (part.type === "text" ? part.text : "")).join(""));
      }
      return result;
    },
    wrapStream: async ({ doStream, params }) => {
      const { stream, ...rest } = await doStream();
      let answer = "";
      let isWhole = false;
      const watched = new TransformStream<StreamPart, StreamPart>({
        transform(part, controller) {
          answer += part.type === "text-delta" ? part.delta : "";
          // An interrupted or cancelled stream has no `finish` part, so half an answer is not stored.
          isWhole ||= part.type === "finish" && part.finishReason.unified !== "tool-calls";
          controller.enqueue(part);
        },
        async flush() {
          await (isWhole ? store(params.prompt, answer) : undefined);
        },
      });
      return { stream: stream.pipeThrough(watched), ...rest };
    },
  };
}

/** Return the newest user message. */
function questionIn(prompt: Prompt): Prompt[number] | undefined {
  return prompt.findLast(({ role }) => role === "user");
}

function textOf(message: Prompt[number] | undefined): string {
  if (message === undefined || message.role === "system") {
    return message?.content ?? "";
  }
  return message.content.map((part) => (part.type === "text" ? part.text : "")).filter((text) => text !== "").join("\n");
}
