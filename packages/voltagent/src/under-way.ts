/** Calls under way in this process, so that a turn that follows at once reads what the one before it stores. */
import { setImmediate } from "node:timers/promises";

/** Milliseconds for which a reader waits at most. */
const PATIENCE = 1000;

/**
 * VoltAgent stores a turn's question in the background, by several calls one after the other, and the turn may
 * be over before the last of them has begun. A reader waits until there was none for a moment.
 */
export class UnderWay {
  readonly #calls = new Map<string, Set<Promise<unknown>>>();

  /** Return what a call for a conversation gives; until then it is under way. */
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

  /** Resolve when no call for a conversation is under way, or the time for that is over. */
  async quiet(conversation: string): Promise<void> {
    const timeOver = AbortSignal.timeout(PATIENCE);
    const over = new Promise<void>((resolve) => timeOver.addEventListener("abort", () => resolve(), { once: true }));
    while (!timeOver.aborted) {
      const calls = this.#calls.get(conversation);
      if (calls === undefined) {
        return;
      }
      await Promise.race([Promise.allSettled(calls), over]);
      await setImmediate(); // The next call of the same job begins during it.
      await setImmediate();
    }
  }
}
