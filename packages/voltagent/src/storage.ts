/** Storage for VoltAgent: on a running `keepstone serve`, or directly on the files. */
import type {
  Conversation,
  ConversationQueryOptions,
  ConversationStepRecord,
  CreateConversationInput,
  GetConversationStepsOptions,
  GetMessagesOptions,
  OperationContext,
  StorageAdapter,
  WorkflowRunQuery,
  WorkflowStateEntry,
} from "@voltagent/core";
import type { UIMessage } from "ai";

import { Client, type ClientOptions, type Sender } from "./client.js";
import { Conversations } from "./conversations.js";
import { sessionFor } from "./layout.js";
import { LocalHome, type LocalHomeOptions } from "./local-home.js";
import { Messages, type StoredMessage } from "./messages.js";
import { Steps } from "./steps.js";
import { UnderWay } from "./under-way.js";
import { type InfoLogger, notFound, voltAgentLogger } from "./voltagent.js";
import { type Whose, WorkingMemory } from "./working-memory.js";
import { Workflows } from "./workflows.js";

/** Maximum number of sessions that are cleared at the same time. */
const AT_ONCE = 16;

/** Options for logging every clear and every damaged record. Default: VoltAgent's own logger. */
interface Telling {
  logger?: InfoLogger;
}

export interface KeepstoneStorageOptions extends ClientOptions, Telling {}

export interface KeepstoneFileStorageOptions extends LocalHomeOptions, Telling {}

/**
 * One agent's memory. Other agents' memories cannot be reached, whatever ids are passed.
 *
 * Messages are entries of the conversation's session, so that they are listed, shown and recalled like any other
 * entries. All other data is in the agent's files below `voltagent/`.
 */
class AgentStorage implements StorageAdapter {
  /** The agent's slug. */
  readonly agent: string;
  readonly #logger: InfoLogger | undefined;
  readonly #messages: Messages;
  readonly #conversations: Conversations;
  readonly #steps: Steps;
  readonly #workingMemory: WorkingMemory;
  readonly #workflows: Workflows;
  readonly #underWay = new UnderWay();

  constructor(client: Sender, logger?: InfoLogger) {
    this.agent = client.agent;
    this.#logger = logger;
    this.#messages = new Messages(client);
    const damaged = (file: string): void => void this.#tellOf(file);
    this.#conversations = new Conversations(client, damaged);
    this.#steps = new Steps(client);
    this.#workingMemory = new WorkingMemory(client);
    this.#workflows = new Workflows(client, damaged);
  }

  async addMessage(
    message: UIMessage,
    userId: string,
    conversationId: string,
    context?: OperationContext,
  ): Promise<void> {
    await this.addMessages([message], userId, conversationId, context);
  }

  async addMessages(
    messages: UIMessage[],
    userId: string,
    conversationId: string,
    context?: OperationContext,
  ): Promise<void> {
    await this.#underWay.during(conversationId, this.#messages.put(messages, userId, conversationId, context));
  }

  async getMessages(userId: string, conversationId: string, options?: GetMessagesOptions): Promise<StoredMessage[]> {
    // VoltAgent does not wait until a turn's messages are stored, and the next turn begins by reading them.
    await this.#underWay.quiet(conversationId);
    return this.#messages.list(userId, conversationId, options);
  }

  /** Erase a user's messages and steps in a conversation or, without `conversationId`, in all conversations. */
  async clearMessages(userId: string, conversationId?: string, context?: OperationContext): Promise<void> {
    const logger = context?.logger ?? (await this.#ownLogger());
    if (conversationId !== undefined) {
      return this.#clear(userId, conversationId, logger);
    }
    const own = new Set((await this.#conversations.query({ userId })).map(({ id }) => sessionFor(id)));
    // A user may also have messages in other users' conversations, so all sessions are searched.
    const sessions = [...new Set([...own, ...(await this.#messages.sessions())])];
    for (let at = 0; at < sessions.length; at += AT_ONCE) {
      const group = sessions.slice(at, at + AT_ONCE);
      await Promise.all(group.map((session) => this.#clear(userId, session, logger, !own.has(session))));
    }
  }

  async #clear(userId: string, session: string, logger: InfoLogger, anybodys = false): Promise<void> {
    await this.#underWay.quiet(session);
    const bytes = await this.#messages.clear(userId, session, anybodys);
    await this.#steps.clear(userId, session);
    if (bytes !== null) {
      logger.info("memory.clear", { event: "memory.clear", agent: this.agent, session, bytes });
    }
  }

  async #ownLogger(): Promise<InfoLogger> {
    return this.#logger ?? (await voltAgentLogger());
  }

  /** Log a damaged record, which lists leave out. */
  async #tellOf(file: string): Promise<void> {
    const logger = await this.#ownLogger();
    logger.info("memory.damaged", { event: "memory.damaged", agent: this.agent, file });
  }

  async deleteMessages(messageIds: string[], userId: string, conversationId: string): Promise<void> {
    await this.#messages.delete(messageIds, userId, conversationId);
  }

  async createConversation(input: CreateConversationInput): Promise<Conversation> {
    return this.#underWay.during(input.id, this.#conversations.create(input));
  }

  async getConversation(id: string): Promise<Conversation | null> {
    return this.#underWay.during(id, this.#conversations.get(id));
  }

  async getConversations(resourceId: string): Promise<Conversation[]> {
    return this.#conversations.query({ resourceId });
  }

  async getConversationsByUserId(
    userId: string,
    options: Omit<ConversationQueryOptions, "userId"> = {},
  ): Promise<Conversation[]> {
    return this.#conversations.query({ ...options, userId });
  }

  async queryConversations(options: ConversationQueryOptions): Promise<Conversation[]> {
    return this.#conversations.query(options);
  }

  async countConversations(options: ConversationQueryOptions): Promise<number> {
    return this.#conversations.count(options);
  }

  async updateConversation(
    id: string,
    updates: Partial<Omit<Conversation, "id" | "createdAt" | "updatedAt">>,
  ): Promise<Conversation> {
    return this.#underWay.during(id, this.#conversations.update(id, updates));
  }

  /** Remove a conversation with its session, steps and working memory, without leaving any data. */
  async deleteConversation(id: string): Promise<void> {
    await this.#underWay.quiet(id); // Otherwise a background write of a turn would recreate it.
    // Remove the record last: if the process is killed, the conversation is still listed and can be deleted again.
    const hadSession = await this.#messages.remove(id);
    await this.#steps.remove(id);
    await this.#workingMemory.remove({ scope: "conversation", conversationId: id });
    const hadRecord = await this.#conversations.remove(id);
    if (!hadSession && !hadRecord) {
      throw await notFound(id);
    }
  }

  async saveConversationSteps(steps: ConversationStepRecord[]): Promise<void> {
    const saved = this.#steps.save(steps);
    const conversations = new Set(steps.map(({ conversationId }) => conversationId));
    await Promise.all([...conversations].map((id) => this.#underWay.during(id, saved)));
  }

  async getConversationSteps(
    userId: string,
    conversationId: string,
    options?: GetConversationStepsOptions,
  ): Promise<ConversationStepRecord[]> {
    return this.#steps.list(userId, conversationId, options);
  }

  async getWorkingMemory(whose: Whose): Promise<string | null> {
    return this.#workingMemory.get(whose);
  }

  async setWorkingMemory(whose: Whose & { content: string }): Promise<void> {
    await this.#workingMemory.set(whose);
  }

  async deleteWorkingMemory(whose: Whose): Promise<void> {
    await this.#workingMemory.remove(whose);
  }

  async getWorkflowState(executionId: string): Promise<WorkflowStateEntry | null> {
    return this.#workflows.get(executionId);
  }

  async queryWorkflowRuns(query: WorkflowRunQuery): Promise<WorkflowStateEntry[]> {
    return this.#workflows.query(query);
  }

  async setWorkflowState(executionId: string, state: WorkflowStateEntry): Promise<void> {
    await this.#workflows.set(executionId, state);
  }

  async updateWorkflowState(executionId: string, updates: Partial<WorkflowStateEntry>): Promise<void> {
    await this.#workflows.update(executionId, updates);
  }

  async getSuspendedWorkflowStates(workflowId: string): Promise<WorkflowStateEntry[]> {
    return this.#workflows.query({ workflowId, status: "suspended" });
  }
}

/**
 * One agent's memory on a server. Calls are retried while the server is away, because VoltAgent drops data that its
 * storage refuses.
 *
 * @example
 * const storage = new KeepstoneStorage({ agent: "coder", token: process.env.KEEPSTONE_TOKEN });
 * const agent = new Agent({ name: "coder", model, instructions, memory: new Memory({ storage }) });
 */
export class KeepstoneStorage extends AgentStorage {
  constructor({ logger, ...options }: KeepstoneStorageOptions) {
    super(new Client(options), logger);
  }
}

/**
 * One agent's memory on the files of a home, without a server. Python and other processes may use them at once.
 *
 * @example
 * const storage = new KeepstoneFileStorage({ root: ".work-agent", agent: "coder" });
 * const agent = new Agent({ name: "coder", model, instructions, memory: new Memory({ storage }) });
 */
export class KeepstoneFileStorage extends AgentStorage {
  constructor({ logger, ...options }: KeepstoneFileStorageOptions) {
    super(new LocalHome(options), logger);
  }
}
