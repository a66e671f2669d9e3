/** The steps of a conversation's turns, as the console shows them: one NDJSON file a conversation. */
import type { ConversationStepRecord, GetConversationStepsOptions } from "@voltagent/core";

import type { Client } from "./client.js";
import { urlOf } from "./documents.js";
import { jsonOf, objectOf } from "./json.js";
import { fileStem } from "./layout.js";

const NOT_FOUND = 404;

/** One agent's steps. */
export class Steps {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Store steps. One with the id and type of an earlier one takes its place: a call and its result share an id. */
  async save(steps: readonly ConversationStepRecord[]): Promise<void> {
    for (const conversation of new Set(steps.map((step) => step.conversationId))) {
      const own = steps.filter((step) => step.conversationId === conversation);
      const content = linesOf(own);
      // Sent twice, the lines are there twice, and read as once.
      await this.#client.send("POST", pathOf(conversation), { body: { content } });
    }
  }

  /** Return the newest steps of a user's turns in their order. */
  async list(
    userId: string,
    conversation: string,
    { limit, operationId }: GetConversationStepsOptions = {},
  ): Promise<ConversationStepRecord[]> {
    const { status, body } = await this.#client.send("GET", pathOf(conversation), { allow: [NOT_FOUND] });
    const steps = new Map<string, ConversationStepRecord>();
    for (const step of status === NOT_FOUND ? [] : stepsIn(body.content)) {
      steps.set(JSON.stringify([step.id, step.type]), step);
    }
    const wanted = [...steps.values()].filter(
      (step) => step.userId === userId && (operationId === undefined || step.operationId === operationId),
    );
    wanted.sort((one, other) => one.stepIndex - other.stepIndex);
    return limit && limit > 0 ? wanted.slice(-limit) : wanted;
  }

  /** Remove the steps of a user in a conversation; whose steps they are is looked at. */
  async clear(userId: string, conversation: string): Promise<void> {
    const { status, body, etag } = await this.#client.send("GET", pathOf(conversation), { allow: [NOT_FOUND] });
    if (status === NOT_FOUND) {
      return;
    }
    const others = stepsIn(body.content).filter((step) => step.userId !== userId);
    if (others.length === 0) {
      return this.remove(conversation);
    }
    const content = linesOf(others);
    const headers = { "if-match": etag ?? "*" };
    const changed = await this.#client.send("PUT", pathOf(conversation), { body: { content }, headers, allow: [412] });
    return changed.status === 412 ? this.clear(userId, conversation) : undefined;
  }

  /** Remove all steps of a conversation. */
  async remove(conversation: string): Promise<void> {
    await this.#client.send("DELETE", pathOf(conversation), { allow: [NOT_FOUND] });
  }
}

function linesOf(steps: readonly ConversationStepRecord[]): string {
  return steps.map((step) => `${JSON.stringify(jsonOf(step))}\n`).join("");
}

/** Return the steps that a file holds; a line that is damaged hides no other. */
function stepsIn(content: unknown): ConversationStepRecord[] {
  const items = String(content).split("\n").flatMap((line) => objectOf(line) ?? []);
  return items as unknown as ConversationStepRecord[];
}

function pathOf(conversation: string): string {
  return urlOf(`voltagent/steps/${fileStem(conversation)}.ndjson`);
}
