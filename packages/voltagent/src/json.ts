/** JSON values as a log holds them: checked on the way in, strict on the way out. */
import { shown } from "./layout.js";

/** Anything that has a JSON form. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** One JSON object: a line of a log, an entry, an event. */
export type Item = { [key: string]: Json };

const MAX_DEPTH = 200;

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

/** Tell whether a value is an object and no array. */
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

/** Tell whether all numbers of a parsed value are finite and it nests no deeper than `depth` levels. */
export function isSound(value: Json, depth: number): boolean {
  if (typeof value === "number") {
    return Number.isFinite(value);
  }
  if (typeof value !== "object" || value === null) {
    return true;
  }
  return depth > 0 && Object.values(value).every((item) => isSound(item, depth - 1));
}

/** Return a JSON copy of a value, as `JSON.stringify` writes it, without the halves of torn characters. */
export function jsonOf(value: unknown): Item {
  const whole = (_: string, item: unknown): unknown => (typeof item === "string" ? item.toWellFormed() : item);
  return JSON.parse(JSON.stringify(value, whole)) as Item;
}
