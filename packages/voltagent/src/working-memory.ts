/** Working memory: one text for each conversation or user, in a file that people can read and edit. */
import type { WorkingMemoryScope } from "@voltagent/core";

import type { Sender } from "./client.js";
import { urlOf } from "./documents.js";
import { fileStem } from "./layout.js";

/** The owner of a working memory: a conversation or a user. */
export interface Whose {
  conversationId?: string;
  userId?: string;
  scope: WorkingMemoryScope;
}

const NOT_FOUND = 404;

/** One agent's working memory. */
export class WorkingMemory {
  readonly #client: Sender;

  constructor(client: Sender) {
    this.#client = client;
  }

  /** Return the text, null if it is missing. */
  async get(whose: Whose): Promise<string | null> {
    const path = pathOf(whose);
    if (path === null) {
      return null;
    }
    const { conversationId: conversation } = whose;
    const request = { allow: [NOT_FOUND], begins: true, ...(conversation === undefined ? {} : { conversation }) };
    const { status, body } = await this.#client.send("GET", path, request);
    return status === NOT_FOUND ? null : String(body.content);
  }

  /** Write the text, even before a conversation's record exists, which is created in the background. */
  async set(whose: Whose & { content: string }): Promise<void> {
    const path = pathOf(whose);
    if (path === null) {
      throw new TypeError(`working memory of a ${whose.scope} needs its ${whose.scope}Id`);
    }
    await this.#client.send("PUT", path, { body: { content: whose.content.toWellFormed() } });
  }

  /** Remove the text if it exists. */
  async remove(whose: Whose): Promise<void> {
    const path = pathOf(whose);
    if (path !== null) {
      await this.#client.send("DELETE", path, { allow: [NOT_FOUND] });
    }
  }
}

function pathOf({ conversationId, userId, scope }: Whose): string | null {
  const [kind, id] = scope === "user" ? (["users", userId] as const) : (["conversations", conversationId] as const);
  return id === undefined ? null : urlOf(`voltagent/working-memory/${kind}/${fileStem(id)}.md`);
}
