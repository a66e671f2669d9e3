/** Recall for VoltAgent's agents from a running `keepstone serve`: a retriever, and tools. */
import {
  type BaseMessage,
  BaseRetriever,
  createTool,
  type RetrieveOptions,
  type RetrieverOptions,
  type Tool,
} from "@voltagent/core";

import { Client, type ClientOptions } from "./client.js";
import { itemsIn } from "./fitting.js";
import { type Item, jsonOf } from "./json.js";
import {
  contextFor, type ContextOptions, found, type Hit, recalled, recalling, type RecallOptions, REMEMBER, remembered, remembering,
  SEARCH,
} from "./memory-calls.js";

export type { ContextOptions, Hit, RecallOptions } from "./memory-calls.js";

export interface KeepstoneRetrieverOptions extends ClientOptions, ContextOptions {
  /** The name of the tool that a model may use instead of a retriever. Default `search_memory`. */
  toolName?: string;
  toolDescription?: string;
}

/**
 * An agent's memory for its prompts: pinned entries, preferences, decisions, and entries that match.
 *
 * @example
 * const retriever = new KeepstoneRetriever({ agent: "coder" });
 * const agent = new Agent({ name: "coder", model, instructions, retriever });
 */
export class KeepstoneRetriever extends BaseRetriever {
  readonly #client: Client;
  readonly #defaults: ContextOptions;

  constructor({ budget, window, shared, toolName, toolDescription, ...options }: KeepstoneRetrieverOptions) {
    const named: RetrieverOptions = { toolName: toolName ?? "search_memory", toolDescription: toolDescription ?? SEARCH };
    super(named);
    this.#client = new Client(options);
    this.#defaults = {
      ...(budget === undefined ? {} : { budget }),
      ...(window === undefined ? {} : { window }),
      ...(shared === undefined ? {} : { shared }),
    };
  }

  /** Return the entries that match a query, the best first. */
  async recall(query: string, options: RecallOptions = {}): Promise<Hit[]> {
    return recalled(this.#client, query, options);
  }

  /** Return the memory block for a system prompt; without a query nothing is recalled. */
  async context(query?: string, options: ContextOptions = {}, conversation?: string): Promise<string> {
    return contextFor(this.#client, query, { ...this.#defaults, ...options }, conversation);
  }

  /** Return the memory block for the newest user message. */
  override async retrieve(input: string | BaseMessage[], options: RetrieveOptions = {}): Promise<string> {
    return this.context(questionOf(input), {}, options.conversationId);
  }
}

/** Return two tools with which a model saves to this memory and searches it: `remember` and `recall`. */
export function memoryTools({ session = "main", ...options }: ClientOptions & { session?: string }): Tool<any, any>[] {
  const client = new Client(options);
  const remember = createTool({
    name: "remember",
    description: REMEMBER,
    parameters: remembering,
    execute: async (given) => remembered(client, session, given),
  });
  const recall = createTool({
    name: "recall",
    description: SEARCH,
    parameters: recalling,
    execute: async (given) => found(client, given),
  });
  return [remember, recall];
}

/** Return the text of the newest user message, or else of the newest message. */
function questionOf(input: string | BaseMessage[]): string {
  if (typeof input === "string") {
    return input;
  }
  // With tools the newest messages are calls and results, which are not questions.
  const asked = input.findLast(({ role }) => role === "user") ?? input.at(-1);
  const content = asked?.content ?? "";
  return typeof content === "string" ? content : itemsIn(jsonOf({ content }).content).flatMap(textOf).join("\n");
}

function textOf({ type, text }: Item): string[] {
  return type === "text" && typeof text === "string" ? [text] : [];
}
