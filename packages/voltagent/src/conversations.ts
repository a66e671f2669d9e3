/** Records of conversations: user, resource, title and metadata. Each record is a file of the agent. */
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

  /** `damaged` is called with the path of each record that cannot be listed. */
  constructor(client: Sender, damaged: (path: string) => void) {
    this.#documents = new Documents(client, "conversations");
    this.#damaged = damaged;
  }

  /** Create a conversation. Of concurrent calls, all but one throw ConversationAlreadyExistsError. */
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

  /** Change a conversation, and always its time; throw ConversationNotFoundError if it is missing. */
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

  /** Remove a conversation's record; return false if it is missing. */
  async remove(id: string): Promise<boolean> {
    return this.#documents.remove(id);
  }

  /** Return the conversations that match a query; by default the last changed one comes first. */
  async query(options: ConversationQueryOptions): Promise<Conversation[]> {
    const { orderBy = "updated_at", orderDirection = "DESC" } = options;
    const keys = { created_at: "createdAt", updated_at: "updatedAt", title: "title" } as const;
    const key = keys[orderBy];
    const sign = orderDirection === "ASC" ? 1 : -1;
    // The server sees conversations only as files, so they are sorted and limited here.
    const found = await this.#matching(options);
    found.sort((one, other) => sign * order(one[key], other[key]) || order(one.id, other.id));
    return pageOf(found, options);
  }

  /** Return the number of conversations that match a query, ignoring its limit. */
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

/** Return a record's times of creation and change; a missing time is replaced by the other one, or by 1970. */
function timesOf(item: Item, change = (time: string): string => time): Pick<Conversation, "createdAt" | "updatedAt"> {
  const [created, updated] = [item.createdAt, item.updatedAt].map((time) => (readTime(time) === null ? null : String(time)));
  const beginning = new Date(0).toISOString();
  return { createdAt: created ?? updated ?? beginning, updatedAt: change(updated ?? created ?? beginning) };
}

/** Return the current time, but at least a millisecond after an earlier change. */
function later(before: string): string {
  // Otherwise two updates within a millisecond, or a clock that was set back, would make the list's order random.
  return new Date(Math.max(Date.now(), new Date(before).getTime() + 1)).toISOString();
}

function order(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
