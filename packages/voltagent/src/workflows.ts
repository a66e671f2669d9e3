/** The states of workflow runs: suspended, resumed, completed. Each is a file of the agent's. */
import { isDeepStrictEqual } from "node:util";

import type { WorkflowRunQuery, WorkflowStateEntry } from "@voltagent/core";

import type { Client } from "./client.js";
import { Documents, pageOf } from "./documents.js";
import { type Item, jsonOf } from "./json.js";

/** One agent's workflow runs. */
export class Workflows {
  readonly #documents: Documents;

  constructor(client: Client) {
    this.#documents = new Documents(client, "workflows");
  }

  /** Return a run's state, null if it is missing. */
  async get(executionId: string): Promise<WorkflowStateEntry | null> {
    const found = await this.#documents.read(executionId);
    return found && revived(found);
  }

  /** Store a run's state, in the place of what was there. */
  async set(executionId: string, state: WorkflowStateEntry): Promise<void> {
    await this.#documents.put(executionId, { ...jsonOf(state), id: executionId });
  }

  /** Change some keys of a run's state; an error if it is missing. */
  async update(executionId: string, updates: Partial<WorkflowStateEntry>): Promise<void> {
    const now = new Date().toISOString();
    const changes = jsonOf(updates);
    const updated = await this.#documents.update(executionId, (old) => ({ ...old, ...changes, updatedAt: now }));
    if (updated === null) {
      throw new Error(`Workflow state ${executionId} not found`);
    }
  }

  /** Return the runs that a query is for, the newest first. */
  async query(query: WorkflowRunQuery): Promise<WorkflowStateEntry[]> {
    const found = (await this.#documents.all()).map(revived).filter((run) => isWanted(run, query));
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

/** Return a state with its times as Dates, as VoltAgent gave them. */
function revived(item: Item): WorkflowStateEntry {
  const state = structuredClone(item) as unknown as WorkflowStateEntry;
  state.createdAt = new Date(state.createdAt);
  state.updatedAt = new Date(state.updatedAt);
  if (state.suspension) {
    state.suspension.suspendedAt = new Date(state.suspension.suspendedAt);
  }
  if (state.cancellation) {
    state.cancellation.cancelledAt = new Date(state.cancellation.cancelledAt);
  }
  return state;
}
