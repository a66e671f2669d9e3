/** JSON values as a log holds them: checked on the way in, strict on the way out. */
import { shown } from "./layout.js";

/** Anything that has a JSON form. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** One JSON object: a line of a log, an entry, an event. */
export type Item = { [key: string]: Json };

const MAX_DEPTH = 200;
/** Leaves room for the levels of the entry around a message. */
const MAX_MARKED_DEPTH = MAX_DEPTH - 10;

/**
 * Return a copy of a value made of plain JSON values.
 *
 * As `JSON.stringify` does, it takes what `toJSON` gives (a Date becomes its text) and leaves out
 * properties that are `undefined`. Unlike it, it refuses what would silently become something else:
 * NaN and infinity, functions, maps, and strings that no file can keep.
 */
export function plain(value: unknown, depth = 0): Json {
  if (value === null || typeof value === "boolean") {
    return value;
  }
  if (typeof value === "string") {
    return wellFormed(value);
  }
  if (typeof value === "number") {
    return finite(value);
  }
  if (depth > MAX_DEPTH) {
    throw new RangeError(`values nest deeper than ${MAX_DEPTH} levels: flatten them`);
  }
  if (Array.isArray(value)) {
    return Array.from(value, (item: unknown) => plain(item, depth + 1)); // It does not pass over holes.
  }
  if (typeof value === "object") {
    return plainObject(value, depth);
  }
  throw new TypeError(`${typeof value} has no JSON form`);
}

function plainObject(value: object, depth: number): Json {
  if (value instanceof Date && Number.isNaN(value.getTime())) {
    throw new RangeError("an invalid Date has no JSON form: store null or a string instead");
  }
  if ("toJSON" in value && typeof value.toJSON === "function") {
    return plain((value.toJSON as () => unknown)(), depth + 1);
  }
  // A Map or a Set has no own properties and would silently become {}.
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new TypeError(`${value.constructor.name} has no JSON form: give a plain object`);
  }
  const given = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(given.map(([key, item]) => [wellFormed(key), plain(item, depth + 1)]));
}

function wellFormed(text: string): string {
  if (!text.isWellFormed()) {
    throw new RangeError(`${shown(text)} holds a lone surrogate, which no file can keep`);
  }
  return text;
}

function finite(number: number): number {
  if (!Number.isFinite(number)) {
    throw new RangeError(`${number} has no JSON form: store null or a string instead`);
  }
  // JSON.stringify writes -0 as 0, and a stored value must come back as it was returned.
  return number === 0 ? 0 : number;
}

/** Return whether a value is an object and no array. */
export function isItem(value: Json | undefined): value is Item {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Return the object that a text holds, null if it holds something else. */
export function objectOf(text: string): Item | null {
  try {
    const value = JSON.parse(text) as Json;
    return isItem(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) {
      return null;
    }
    throw error;
  }
}

/** Return whether all numbers of a parsed value are finite and it nests no deeper than `depth` levels. */
export function isSound(value: Json, depth: number): boolean {
  if (typeof value === "number") {
    return Number.isFinite(value);
  }
  if (typeof value !== "object" || value === null) {
    return true;
  }
  return depth > 0 && Object.values(value).every((item) => isSound(item, depth - 1));
}

/**
 * Return a JSON copy of a value, as `JSON.stringify` writes it, with a marker where that would throw.
 *
 * What a tool returns may be circular or hold a BigInt, and must not cost the message around it.
 * Halves of torn characters are replaced.
 */
export function jsonOf(value: object): Item {
  return copyOf(value, "", []) as Item;
}

function copyOf(given: unknown, key: string, above: readonly object[]): Json | undefined {
  const value = formOf(given, key);
  switch (typeof value) {
    case "string":
      return value.toWellFormed();
    case "bigint":
      return `[BigInt: ${value}]`;
    case "number":
      return Number.isFinite(value) ? value : null;
    case "boolean":
      return value;
    case "object":
      return value === null ? null : copyOfObject(value, above);
    default:
      return undefined;
  }
}

function copyOfObject(value: object, above: readonly object[]): Json {
  // Only objects above are circles. The same object twice side by side has a JSON form.
  if (above.includes(value)) {
    return "[Circular]";
  }
  if (above.length >= MAX_MARKED_DEPTH) {
    return "[Too deep]";
  }
  const here = [...above, value];
  if (Array.isArray(value)) {
    return Array.from(value, (item: unknown, at) => copyOf(item, String(at), here) ?? null);
  }
  const pairs = Object.keys(value).map((key) => [key.toWellFormed(), copyOf(read(value, key), key, here)] as const);
  return Object.fromEntries(pairs.filter((pair): pair is [string, Json] => pair[1] !== undefined));
}

/** Return what `toJSON` of a value gives, the value itself if it has none. */
function formOf(value: unknown, key: string): unknown {
  // `JSON.stringify` unwraps these, too.
  if (value instanceof String || value instanceof Number || value instanceof Boolean) {
    return value.valueOf();
  }
  const method = typeof value === "object" && value !== null ? read(value, "toJSON") : undefined;
  return typeof method === "function" ? unlessItThrows(() => method.call(value, key) as unknown) : value;
}

function read(value: object, key: string): unknown {
  return unlessItThrows(() => (value as Record<string, unknown>)[key]);
}

/** Return what code of the caller's gives, such as a getter, a marker with its message if it throws. */
function unlessItThrows(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return `[Unreadable: ${error instanceof Error ? error.message : String(error)}]`;
  }
}

/** Return the bytes that a value takes as JSON. */
export function bytesOf(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value));
}
