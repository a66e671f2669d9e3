/** Replaces values that are too large to be stored, piece by piece, so that the rest is kept. */
import { bytesOf, isItem, type Item, type Json } from "./json.js";

/** Keys that say what a part is; without them the rest would mean nothing. */
const KEPT = new Set(["type", "id", "role", "state", "toolCallId", "toolName", "operationId", "stepIndex"]);

/**
 * Replace the largest values of some objects by markers until `left` bytes fewer are taken.
 *
 * A file that is too large becomes a text that says so: a marker is no address that a model could be sent.
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

/** Return some values in groups of limited bytes, unless a single one takes more, and of a limited number of values. */
export function groupsOf<T extends Json>(values: readonly T[], most: number, count = Infinity): T[][] {
  const groups: T[][] = [];
  let left = 0;
  for (const value of values) {
    // The comma or the line end behind it counts, too.
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
