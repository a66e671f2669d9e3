/** Steps of conversations' turns, which VoltAgent's console shows, in one NDJSON file for each conversation. */
import { randomUUID } from "node:crypto";

import type { ConversationStepRecord, GetConversationStepsOptions } from "@voltagent/core";

import { type Sender, MAX_BODY, pauseAfter } from "./client.js";
import { urlOf } from "./documents.js";
import { groupsOf, itemsIn, shrink } from "./fitting.js";
import { bytesOf, type Item, jsonOf, objectOf } from "./json.js";
import { fileStem } from "./layout.js";

const [NOT_FOUND, CHANGED] = [404, 412];
/** Maximum size of the steps in one request, in bytes: as a JSON string they take up to twice as many. */
const LARGEST_REQUEST = MAX_BODY / 2 - 64 * 1024;
const FOLDER = "voltagent/steps/";

interface Found {
  steps: Item[];
  /** The tag of the first file's content. */
  etag: string | null;
  /** The paths of the other files. */
  more: string[];
  isDamaged: boolean;
}

/** One agent's steps. */
export class Steps {
  readonly #client: Sender;

  constructor(client: Sender) {
    this.#client = client;
  }

  /** Store steps. A step replaces an earlier one with the same id and type; a call and its result share an id. */
  async save(steps: readonly ConversationStepRecord[]): Promise<void> {
    for (const conversation of new Set(steps.map((step) => step.conversationId))) {
      const own = steps.filter((step) => step.conversationId === conversation).map(itemOf);
      for (const group of groupsOf(own, LARGEST_REQUEST)) {
        await this.#client.send("POST", pathOf(conversation), { body: { content: linesOf(group) }, conversation });
      }
    }
  }

  /** Return the newest steps of a user's turns, in order. */
  async list(
    userId: string,
    conversation: string,
    { limit, operationId }: GetConversationStepsOptions = {},
  ): Promise<ConversationStepRecord[]> {
    const steps = new Map<string, ConversationStepRecord>();
    for (const step of (await this.#read(conversation)).steps as unknown as ConversationStepRecord[]) {
      // A Map keeps the position of the first step with a key and the value of the last step.
      steps.set(JSON.stringify([step.id, step.type]), step);
    }
    const wanted = [...steps.values()].filter(
      (step) => step.userId === userId && (operationId === undefined || step.operationId === operationId),
    );
    wanted.sort((one, other) => one.stepIndex - other.stepIndex);
    return limit && limit > 0 ? wanted.slice(-limit) : wanted;
  }

  /**
   * Remove the steps of a user in a conversation, and keep the steps of other users.
   *
   * If the kept steps are too long for one request, the rest is written to further files, which the first file names.
   * Until the first file is written, nothing changes for readers.
   */
  async clear(userId: string, conversation: string): Promise<void> {
    for (let tries = 0; ; tries += 1) {
      const { steps, etag, more, isDamaged } = await this.#read(conversation);
      const others = steps.filter((step) => step.userId !== userId);
      if (others.length === steps.length && !isDamaged) {
        return;
      }
      const made: string[] = [];
      const isDone =
        others.length > 0
          ? await this.#rewrite(conversation, others, etag, made)
          : await this.#delete(pathOf(conversation), etag);
      await Promise.all((isDone ? more : made).map((path) => this.#delete(path)));
      if (isDone) {
        return;
      }
      await pauseAfter(tries, pathOf(conversation));
    }
  }

  /** Remove all steps of a conversation. */
  async remove(conversation: string): Promise<void> {
    await this.#delete(pathOf(conversation));
    for (let left = true; left; ) {
      // Remove even files that the first file does not name: their writer may have been killed too early.
      const query = { folder: folderOf(conversation), limit: 1 };
      const { body } = await this.#client.send("GET", "/file-contents", { query });
      const files = itemsIn(body.files);
      await Promise.all(files.map(({ path }) => this.#delete(urlOf(String(path)))));
      left = files.length > 0;
    }
  }

  /** Replace the steps that were read, and add new files to `made`; return false if another writer came first. */
  async #rewrite(conversation: string, steps: Item[], etag: string | null, made: string[]): Promise<boolean> {
    const [first = [], ...rest] = groupsOf(steps, LARGEST_REQUEST);
    const names = rest.map(() => `${folderOf(conversation)}/${randomUUID()}.ndjson`);
    for (const [at, name] of names.entries()) {
      made.push(urlOf(name));
      await this.#client.send("PUT", urlOf(name), { body: { content: linesOf(rest[at] ?? []) } });
    }
    const content = linesOf(names.length > 0 ? [{ more: names }, ...first] : first);
    const request = { body: { content }, headers: { "if-match": etag ?? "*" }, allow: [CHANGED] };
    return (await this.#client.send("PUT", pathOf(conversation), request)).status !== CHANGED;
  }

  /** Delete a file; return false, and keep it, if its content does not match the tag. */
  async #delete(path: string, etag: string | null = null): Promise<boolean> {
    const headers: Record<string, string> = etag === null ? {} : { "if-match": etag };
    return (await this.#client.send("DELETE", path, { headers, allow: [NOT_FOUND, CHANGED] })).status !== CHANGED;
  }

  /** Return the content of a conversation's files; empty if there are none. */
  async #read(conversation: string): Promise<Found> {
    for (let tries = 0; ; tries += 1) {
      const { status, body, etag } = await this.#client.send("GET", pathOf(conversation), { allow: [NOT_FOUND] });
      const { items, isDamaged } = itemsOf(status === NOT_FOUND ? "" : String(body.content));
      const names = items.flatMap((item) => moreIn(item, conversation));
      const rest = await Promise.all(names.map((name) => this.#client.send("GET", urlOf(name), { allow: [NOT_FOUND] })));
      if (rest.every((answer) => answer.status !== NOT_FOUND)) {
        const steps = [items, ...rest.map((answer) => itemsOf(String(answer.body.content)).items)].flat();
        return { steps: steps.filter((item) => "id" in item), etag, more: names.map(urlOf), isDamaged };
      }
      await pauseAfter(tries, pathOf(conversation)); // The first file was rewritten after it was read here.
    }
  }
}

/** Return the further files of this conversation that a line names. */
function moreIn({ id, more }: Item, conversation: string): string[] {
  const names = id === undefined && Array.isArray(more) ? more.map(String) : [];
  return names.filter((name) => name.startsWith(`${folderOf(conversation)}/`));
}

function itemOf(step: ConversationStepRecord): Item {
  const item = jsonOf(step);
  shrink([item], bytesOf(item) - LARGEST_REQUEST);
  return item;
}

function linesOf(steps: readonly Item[]): string {
  return steps.map((step) => `${JSON.stringify(step)}\n`).join("");
}

/** Return the objects in the lines of a file; damaged lines are skipped. */
function itemsOf(content: string): { items: Item[]; isDamaged: boolean } {
  const lines = content.split("\n").filter((line) => line.trim() !== "");
  const items = lines.map(objectOf).filter((item) => item !== null);
  return { items, isDamaged: items.length < lines.length };
}

function pathOf(conversation: string): string {
  return urlOf(`${FOLDER}${fileStem(conversation)}.ndjson`);
}

/** Return the folder of a conversation's further files. */
function folderOf(conversation: string): string {
  return `${FOLDER}${fileStem(conversation)}.more`;
}
