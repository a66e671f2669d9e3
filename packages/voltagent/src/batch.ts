/** The mark that makes lines one batch: `"batch":[k,n]`, line k of n that were written together. */
import type { Item } from "./json.js";

/** The place of a line in its batch, from 1, and how many lines that has. */
export type Batch = readonly [place: number, length: number];

/** The ending of a line by our own writers, of which the rest need not be searched. */
const AS_WRITTEN = /,"batch":\[\d+,\d+\]\}\s*$/;
const INTEGERS = /^\[[ \t\r]*\d+[ \t\r]*,[ \t\r]*\d+[ \t\r]*\]/;
/** The longest spelling of a key `batch`, each letter an escape. */
const LONGEST_KEY = '"\\u0062\\u0061\\u0074\\u0063\\u0068"'.length;

/** Return the place and the length of the batch that a line says it is part of. */
export function batchOf(record: Item | null): Batch | null {
  const value = record?.batch;
  if (!Array.isArray(value) || value.length !== 2 || !value.every(Number.isInteger)) {
    return null;
  }
  const [place, length] = value as [number, number];
  return place >= 1 && place <= length ? [place, length] : null;
}

/**
 * Return whether the mark of a line is written in integers.
 *
 * `[1.0,32.0]` is another program's value, a range for example, and no mark. Once it is parsed, JavaScript
 * cannot tell the two, and would take the line for the beginning of a torn batch and truncate it away.
 */
export function isMark(text: string): boolean {
  // The end is enough for a line of our own, which is nearly every line: a search of a whole line of 16 MiB is slow.
  return AS_WRITTEN.test(text.slice(-100)) || INTEGERS.test(markIn(text));
}

/** Return the text after the last key `batch` of a line's own object, which is valid JSON. */
function markIn(text: string): string {
  let [depth, found] = [0, text.length];
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') {
      const end = endOfString(text, at);
      const value = valueBehind(text, end);
      if (depth === 1 && value > 0 && end - at <= LONGEST_KEY && JSON.parse(text.slice(at, end)) === "batch") {
        found = value;
      }
      at = end - 1;
    } else if (character === "{" || character === "[") {
      depth += 1;
    } else if (character === "}" || character === "]") {
      depth -= 1;
    }
  }
  // A mark is short, and a long value of this key is none, so no more of it is copied.
  return text.slice(found, found + 1000);
}

function endOfString(text: string, begin: number): number {
  for (let at = text.indexOf('"', begin + 1); ; at = text.indexOf('"', at + 1)) {
    let escapes = 0;
    while (text[at - 1 - escapes] === "\\") {
      escapes += 1;
    }
    if (escapes % 2 === 0) {
      return at + 1;
    }
  }
}

/** Return where the value of a key begins that ends at `end`; 0 if a value and no key ends there. */
function valueBehind(text: string, end: number): number {
  const behind = /^[ \t\r]*:[ \t\r]*/.exec(text.slice(end, end + 1000));
  return behind === null ? 0 : end + behind[0].length;
}
