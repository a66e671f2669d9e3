/** States of workflow runs: suspended, resumed, completed. Each state is a file of the agent. */
import { isDeepStrictEqual } from "node:util";

import type { WorkflowRunQuery, WorkflowStateEntry } from "@voltagent/core";

import type { Sender } from "./client.js";
import { Documents, pageOf } from "./documents.js";
import { type Item, jsonOf } from "./json.js";
import { readTime } from "./time.js";

/** One agent's workflow runs. */
export class Workflows {
  readonly #documents: Documents;
  readonly #damaged: (path: string) => void;

  /** `damaged` is called with the path of each state that cannot be listed. */
  constructor(client: Sender, damaged: (path: string) => void) {
    this.#documents = new Documents(client, "workflows");
    this.#damaged = damaged;
  }

  /** Return a run's state, null if it is missing. */
  async get(executionId: string): Promise<WorkflowStateEntry | null> {
    const found = await this.#documents.read(executionId);
    return found && revived(found);
  }

  /** Store a run's state, replacing any existing one. */
  async set(executionId: string, state: WorkflowStateEntry): Promise<void> {
    await this.#documents.put(executionId, { ...jsonOf(state), id: executionId });
  }

  /**
   * Change some keys of a run's state, and remove keys that are undefined; throw an error if the state is missing.
   */
  async update(executionId: string, updates: Partial<WorkflowStateEntry>): Promise<void> {
    const now = new Date().toISOString();
    const changes = jsonOf(updates);
    const removed = Object.entries(updates).flatMap(([key, value]) => (value === undefined ? [key] : []));
    const updated = await this.#documents.update(executionId, (old) => {
      const kept = Object.entries(old).filter(([key]) => !removed.includes(key));
      return { ...Object.fromEntries(kept), ...changes, id: executionId, updatedAt: now };
    });
    if (updated === null) {
      throw new Error(`Workflow state ${executionId} not found`);
    }
  }

  /** Return the runs that match a query, the newest first. */
  async query(query: WorkflowRunQuery): Promise<WorkflowStateEntry[]> {
    const found = (await this.#documents.all(this.#damaged)).map(revived).filter((run) => isWanted(run, query));
    found.sort((one, other) => other.createdAt.getTime() - one.createdAt.getTime());
    return pageOf(found, query);
  }
}

function isWanted(run: WorkflowStateEntry, query: WorkflowRunQuery): boolean {
  const { workflowId, status, userId, from, to, metadata = {} } = query;
  return (
    (workflowId === undefined || run.workflowId === workflowId) &&
    (status === undefined || run.status === status) &&
    (userId === undefined || run.userId === userId) &&
    (!from || run.createdAt >= from) &&
    (!to || run.createdAt <= to) &&
    Object.entries(metadata).every(([key, value]) => isDeepStrictEqual(run.metadata?.[key], value))
  );
}

/** Return a state with its times as Dates, as VoltAgent expects them. */
function revived(item: Item): WorkflowStateEntry {
  const state = structuredClone(item) as unknown as WorkflowStateEntry;
  state.createdAt = dateOf(item.createdAt) ?? dateOf(item.updatedAt) ?? new Date(0);
  state.updatedAt = dateOf(item.updatedAt) ?? state.createdAt;
  if (state.suspension) {
    state.suspension.suspendedAt = dateOf(state.suspension.suspendedAt) ?? state.updatedAt;
  }
  if (state.cancellation) {
    state.cancellation.cancelledAt = dateOf(state.cancellation.cancelledAt) ?? state.updatedAt;
  }
  return state;
}

/** Return a document's time as a Date, null if it is damaged. */
function dateOf(time: unknown): Date | null {
  const moment = readTime(time);
  return moment === null ? null : new Date(Number(moment / 1000n));
}
