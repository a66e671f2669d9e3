/** JSON values for a log: conversion, validation and parsing. */
import { shown } from "./layout.js";

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A JSON object: a line of a log, an entry, an event. */
export type Item = { [key: string]: Json };

const MAX_DEPTH = 200;
/** Maximum depth in `jsonOf`, which leaves room for the levels of the entry around a message. */
const MAX_MARKED_DEPTH = MAX_DEPTH - 10;

/**
 * Copy a value to plain JSON values.
 *
 * Like `JSON.stringify`, it uses `toJSON` (a Date becomes its text) and leaves out properties that are `undefined`.
 * Unlike `JSON.stringify`, it refuses values that would silently change: NaN and infinity, functions, maps, and
 * strings that cannot be stored in a file.
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
    return Array.from(value, (item: unknown) => plain(item, depth + 1)); // Array.from also visits holes.
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
  // JSON.stringify writes -0 as 0, and a value must be read back as it was returned.
  return number === 0 ? 0 : number;
}

/** Return whether a value is an object other than an array. */
export function isItem(value: Json | undefined): value is Item {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parse a text as a JSON object; return null if it is not one. */
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

/** Return whether all numbers of a parsed value are finite and its depth is at most `depth` levels. */
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
 * Copy a value to JSON as `JSON.stringify` does, with a marker where `JSON.stringify` would throw.
 *
 * The result of a tool may be circular or contain a BigInt, and must not prevent storing its message. Lone surrogates
 * are replaced.
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
  // Only an object inside of itself is circular. The same object in two sibling places is valid.
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

/** Return the result of a value's `toJSON`, or the value itself if it has none. */
function formOf(value: unknown, key: string): unknown {
  // `JSON.stringify` also unwraps these.
  if (value instanceof String || value instanceof Number || value instanceof Boolean) {
    return value.valueOf();
  }
  const method = typeof value === "object" && value !== null ? read(value, "toJSON") : undefined;
  return typeof method === "function" ? unlessItThrows(() => method.call(value, key) as unknown) : value;
}

function read(value: object, key: string): unknown {
  return unlessItThrows(() => (value as Record<string, unknown>)[key]);
}

/** Return the result of the caller's code, such as a getter; if it throws, return a marker with the message. */
function unlessItThrows(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return `[Unreadable: ${error instanceof Error ? error.message : String(error)}]`;
  }
}

/** Return the size of a value as JSON, in bytes. */
export function bytesOf(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value));
}
