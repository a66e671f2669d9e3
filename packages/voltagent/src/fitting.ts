/** Replacing values that are too large to store, one by one, so that the rest is kept. */
import { bytesOf, isItem, type Item, type Json } from "./json.js";

/** Keys that identify a part; they are never replaced, as the rest would be meaningless without them. */
const KEPT = new Set(["type", "id", "role", "state", "toolCallId", "toolName", "operationId", "stepIndex"]);

/**
 * Replace the largest values of some objects by markers until `left` bytes are saved.
 *
 * A file that is too large becomes a text part, as a marker is not an address that could be sent to a model.
 */
export function shrink(holders: readonly Item[], left: number): void {
  const slots = holders.flatMap((holder) =>
    Object.entries(holder).flatMap(([key, value]) => (KEPT.has(key) ? [] : [{ holder, key, bytes: bytesOf(value) }])),
  );
  slots.sort((one, other) => other.bytes - one.bytes);
  let saved = 0;
  for (const { holder, key, bytes } of slots) {
    if (saved >= left) {
      return;
    }
    const marker = `[Too large: ${bytes} bytes]`;
    saved += bytes - bytesOf(marker);
    if (holder.type === "file") {
      Object.keys(holder).forEach((name) => delete holder[name]);
      Object.assign(holder, { type: "text", text: marker });
    } else {
      holder[key] = marker;
    }
  }
}

/** Return the objects in a list of values. */
export function itemsIn(value: Json | undefined): Item[] {
  return Array.isArray(value) ? value.filter(isItem) : [];
}

/** Split values into groups of at most `most` bytes and `count` values. A larger value gets its own group. */
export function groupsOf<T extends Json>(values: readonly T[], most: number, count = Infinity): T[][] {
  const groups: T[][] = [];
  let left = 0;
  for (const value of values) {
    // The comma or line end after the value counts, too.
    const bytes = bytesOf(value) + 1;
    let group = groups.at(-1);
    if (group === undefined || bytes > left || group.length >= count) {
      group = [];
      groups.push(group);
      left = most;
    }
    group.push(value);
    left -= bytes;
  }
  return groups;
}
