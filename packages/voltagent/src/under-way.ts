/** Running calls of this process, so that a turn reads what the turn before it is still storing. */
import { setImmediate } from "node:timers/promises";

/** Maximum wait of a reader, in milliseconds. */
const PATIENCE = 1000;

/**
 * Tracks running calls by conversation. VoltAgent stores a turn's question in the background, with several calls one
 * after the other, and the turn may end before the last call begins. A reader waits until no call has been running
 * for a moment.
 */
export class UnderWay {
  readonly #calls = new Map<string, Set<Promise<unknown>>>();

  /** Track a call for a conversation while it is running, and return its result. */
  async during<T>(conversation: string, call: Promise<T>): Promise<T> {
    const calls = this.#calls.get(conversation) ?? new Set();
    this.#calls.set(conversation, calls.add(call));
    try {
      return await call;
    } finally {
      calls.delete(call);
      if (calls.size === 0) {
        this.#calls.delete(conversation);
      }
    }
  }

  /** Resolve when no call for a conversation is running, or after the maximum wait. */
  async quiet(conversation: string): Promise<void> {
    const timeOver = AbortSignal.timeout(PATIENCE);
    const over = new Promise<void>((resolve) => timeOver.addEventListener("abort", () => resolve(), { once: true }));
    while (!timeOver.aborted) {
      const calls = this.#calls.get(conversation);
      if (calls === undefined) {
        return;
      }
      await Promise.race([Promise.allSettled(calls), over]);
      await setImmediate(); // Lets the next call of the same job begin.
      await setImmediate();
    }
  }
}
