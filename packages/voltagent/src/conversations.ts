/** The records of conversations: who has them, their titles and metadata. Each is a file of the agent's. */
import type { Conversation, ConversationQueryOptions, CreateConversationInput } from "@voltagent/core";

import type { Sender } from "./client.js";
import { Documents, pageOf } from "./documents.js";
import { type Item, jsonOf } from "./json.js";
import { readTime } from "./time.js";
import { alreadyExists, notFound } from "./voltagent.js";

type Changes = Partial<Omit<Conversation, "id" | "createdAt" | "updatedAt">>;

/** One agent's conversations. */
export class Conversations {
  readonly #documents: Documents;
  readonly #damaged: (path: string) => void;

  /** `damaged` is told the paths of records that no list can show. */
  constructor(client: Sender, damaged: (path: string) => void) {
    this.#documents = new Documents(client, "conversations");
    this.#damaged = damaged;
  }

  /** Begin a conversation; ConversationAlreadyExistsError for all but one of those who try at once. */
  async create(input: CreateConversationInput): Promise<Conversation> {
    const now = new Date().toISOString();
    const conversation = { ...jsonOf(input), createdAt: now, updatedAt: now };
    if (!(await this.#documents.create(input.id, conversation))) {
      throw await alreadyExists(input.id);
    }
    return conversationOf(conversation);
  }

  /** Return a conversation, null if it is missing. */
  async get(id: string): Promise<Conversation | null> {
    const found = await this.#documents.read(id);
    return found && conversationOf(found);
  }

  /** Change a conversation, if only its time; ConversationNotFoundError if it is missing. */
  async update(id: string, changes: Changes): Promise<Conversation> {
    const updated = await this.#documents.update(id, (old) => ({
      ...old,
      ...jsonOf(changes),
      id: String(old.id),
      ...timesOf(old, later),
    }));
    if (updated === null) {
      throw await notFound(id);
    }
    return conversationOf(updated);
  }

  /** Remove a conversation's record; false if it is missing. */
  async remove(id: string): Promise<boolean> {
    return this.#documents.remove(id);
  }

  /** Return the conversations that a query is for, the one changed last first unless it says otherwise. */
  async query(options: ConversationQueryOptions): Promise<Conversation[]> {
    const { orderBy = "updated_at", orderDirection = "DESC" } = options;
    const keys = { created_at: "createdAt", updated_at: "updatedAt", title: "title" } as const;
    const key = keys[orderBy];
    const sign = orderDirection === "ASC" ? 1 : -1;
    // The server knows nothing of conversations, which are files, so they are sorted and cut here.
    const found = await this.#matching(options);
    found.sort((one, other) => sign * order(one[key], other[key]) || order(one.id, other.id));
    return pageOf(found, options);
  }

  /** Return how many conversations a query is for, whatever its limit. */
  async count(options: ConversationQueryOptions): Promise<number> {
    return (await this.#matching(options)).length;
  }

  async #matching({ userId, resourceId }: ConversationQueryOptions): Promise<Conversation[]> {
    const all = (await this.#documents.all(this.#damaged)).map(conversationOf);
    return all.filter(
      (conversation) =>
        (userId === undefined || conversation.userId === userId) &&
        (resourceId === undefined || conversation.resourceId === resourceId),
    );
  }
}

function conversationOf(item: Item): Conversation {
  const title = typeof item.title === "string" ? item.title : "";
  return { ...item, title, metadata: item.metadata ?? {}, ...timesOf(item) } as unknown as Conversation;
}

/** Return when a record says that it was made and changed; one that lacks a time has the other, or the first of all. */
function timesOf(item: Item, change = (time: string): string => time): Pick<Conversation, "createdAt" | "updatedAt"> {
  const [created, updated] = [item.createdAt, item.updatedAt].map((time) => (readTime(time) === null ? null : String(time)));
  const beginning = new Date(0).toISOString();
  return { createdAt: created ?? updated ?? beginning, updatedAt: change(updated ?? created ?? beginning) };
}

/** Return the time now, and at least a millisecond after an earlier change. */
function later(before: string): string {
  // Two updates within a millisecond, or a clock that was set back, would leave the order of the list to chance.
  return new Date(Math.max(Date.now(), new Date(before).getTime() + 1)).toISOString();
}

function order(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
