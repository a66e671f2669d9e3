/** The batch mark `"batch":[k,n]`: line k of n lines that were written together. */
import type { Item } from "./json.js";

/** The place of a line in its batch, from 1, and the number of lines in the batch. */
export type Batch = readonly [place: number, length: number];

/** The end of a marked line by keepstone's writers; the rest of such a line need not be searched. */
const AS_WRITTEN = /,"batch":\[\d+,\d+\]\}\s*$/;
const INTEGERS = /^\[[ \t\r]*\d+[ \t\r]*,[ \t\r]*\d+[ \t\r]*\]/;
/** Length of the longest spelling of the key `batch`, with each letter escaped. */
const LONGEST_KEY = '"\\u0062\\u0061\\u0074\\u0063\\u0068"'.length;

/** Return the batch mark of a line, null if it has no valid mark. */
export function batchOf(record: Item | null): Batch | null {
  const value = record?.batch;
  if (!Array.isArray(value) || value.length !== 2 || !value.every(Number.isInteger)) {
    return null;
  }
  const [place, length] = value as [number, number];
  return place >= 1 && place <= length ? [place, length] : null;
}

/**
 * Return whether a line's batch mark is written with integers.
 *
 * `[1.0,32.0]` is another program's value, such as a range, and not a mark. Parsed values do not show the difference
 * in JavaScript, and the line would be taken for the beginning of a torn batch and truncated.
 */
export function isMark(text: string): boolean {
  // Check the end first, which is enough for keepstone's lines, as searching a whole line of 16 MiB is slow.
  return AS_WRITTEN.test(text.slice(-100)) || INTEGERS.test(markIn(text));
}

/** Return the text after the last top-level key `batch` of a line, which must be valid JSON. */
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
  // A mark is short, so copying the beginning of the value is enough.
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

/** Return the offset of the value after a key that ends at `end`; 0 if the string there is not a key. */
function valueBehind(text: string, end: number): number {
  const behind = /^[ \t\r]*:[ \t\r]*/.exec(text.slice(end, end + 1000));
  return behind === null ? 0 : end + behind[0].length;
}
