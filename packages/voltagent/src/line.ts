/** Lines of a log: their grammar, and how a later line changes an entry (docs/formats/log.md). */
import { batchOf, isMark } from "./batch.js";
import { isItem, isSound, type Item, type Json } from "./json.js";
import { formatTime, instant } from "./time.js";

/** Maximum length of a line in bytes, including its newline; readers skip longer lines. */
export const MAX_LINE = 16 * 1024 * 1024;

const ENVELOPE = new Set(["id", "ts", "type"]);
const RESERVED = new Set(
  (
    "deleted priority access pinned tags links aliases summary " +
    "valid_from valid_to expires modified embedding batch life origin"
  ).split(" "),
);
const DEFAULT_TYPE = "event";
/** Keys of a line that only counts accesses, which does not set `modified`. */
const OF_COUNTS = new Set(["id", "ts", "access", "batch"]);
const READ_DEPTH = 208;
/** Number of bytes that writers leave free in a line for a batch mark and later patches. */
const ROOM = 1024;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Parse a line as a JSON object; return null if it is not a valid one. */
export function parse(raw: Uint8Array): Item | null {
  if (raw.length > MAX_LINE) {
    return null;
  }
  try {
    const text = utf8.decode(withoutBom(raw));
    const item = JSON.parse(text) as Item;
    if (!isItem(item) || !isSound(item, READ_DEPTH)) {
      return null;
    }
    // A value that looks like a mark only after parsing must not hide the line: see `isMark`.
    return batchOf(item) === null || isMark(text) ? item : { ...item, batch: null };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError || error instanceof RangeError) {
      return null;
    }
    throw error;
  }
}

/** Return a line's bytes without the byte order mark that some editors put before the first line. */
export function withoutBom<T extends Uint8Array>(raw: T): T {
  return raw[0] === 0xef && raw[1] === 0xbb && raw[2] === 0xbf ? (raw.subarray(3) as T) : raw;
}

/** Return the line for a record, including the newline; throw RangeError if readers would skip it. */
export function dump(record: Item): string {
  const line = `${JSON.stringify(record)}\n`;
  checkLength(line, MAX_LINE - ROOM);
  return line;
}

/** Throw a RangeError if a rewrite could not write the whole entry as one line. */
export function checkSize(record: Item): void {
  checkLength(`${JSON.stringify(record)}\n`, MAX_LINE);
}

function checkLength(line: string, most: number): void {
  // A UTF-16 unit takes at most three bytes, so short texts need no counting.
  if (line.length * 3 > most && Buffer.byteLength(line) > most) {
    throw new RangeError(`the entry takes ${Buffer.byteLength(line)} bytes, it may take ${most}: split it`);
  }
}

/** Mark the lines of several records as one batch, so that readers see all or none of them. */
export function inBatch(lines: string[]): string[] {
  if (lines.length < 2) {
    return lines;
  }
  // Insert the mark before the closing brace and the newline, without parsing the line.
  return lines.map((line, at) => `${line.slice(0, -2)},"batch":[${at + 1},${lines.length}]}\n`);
}

/** Return the type of a line, or null. */
function typeOf(record: Item): string | null {
  return typeof record.type === "string" && record.type ? record.type : null;
}

/** Return the id of a line, or null if it has no id that is valid Unicode. */
export function idOf(record: Item): string | null {
  return typeof record.id === "string" && record.id && record.id.isWellFormed() ? record.id : null;
}

/** Return whether a line is a put, which has a type or a payload; any other line is a patch. */
export function isPut(record: Item): boolean {
  return typeOf(record) !== null || !Object.keys(record).every(isHead);
}

function isHead(key: string): boolean {
  return ENVELOPE.has(key) || RESERVED.has(key);
}

/** Return whether a line deletes its entry. */
export function isTombstone(record: Item): boolean {
  return record.deleted === true;
}

/** Return a line that begins the next life of its id, with the life's number if it is not the first. */
export function inNextLife(record: Item, last: number): Item {
  return last === 0 ? record : { ...record, life: last + 1 };
}

/** Return the number of the life that a line begins; 1 if the line has no number. */
export function lifeOf(record: Item): number {
  return typeof record.life === "number" && Number.isInteger(record.life) && record.life > 1 ? record.life : 1;
}

/** Return the entry that a line creates. */
export function create(record: Item): Item {
  const { id = "", ts = "", batch: _, ...rest } = record;
  // The batch mark belongs to the line and not to the entry.
  return { id, ts, ...rest, type: typeOf(record) ?? DEFAULT_TYPE };
}

/** Apply a put or a patch to an entry: a put replaces type, payload and origin, a patch sets reserved keys. */
export function apply(entry: Item, later: Item): Item {
  const put = isPut(later);
  const kept = Object.entries(entry).filter(([key]) => !put || (isHead(key) && key !== "origin"));
  const changed = Object.entries(later).filter(([key]) =>
    RESERVED.has(key) ? key !== "batch" : put && !ENVELOPE.has(key),
  );
  const { ts } = later;
  const changes = !("modified" in later) && !Object.keys(later).every((key) => OF_COUNTS.has(key));
  if (changes && ts !== undefined && instant(ts) !== null) {
    changed.push(["modified", ts]);
  }
  const type: Item = put ? { type: typeOf(later) ?? entry.type ?? DEFAULT_TYPE } : {};
  const merged: Item = { ...Object.fromEntries(kept), ...type, ...Object.fromEntries(changed) };
  return Object.fromEntries(
    Object.entries(merged).filter(([key, value]) => value !== null || !RESERVED.has(key)),
  );
}

const OF_MESSAGES = "content parts tool_calls data call_id summary encrypted_content action arguments code input output queries result";

/**
 * Return the text of an entry. A payload that may have content blocks, which only Python reads, is returned itself.
 */
export function saidBy(record: Item): Json {
  const payload = payloadOf(record);
  const speaker = ["speaker", "name", "role"].find((key) => isText(payload[key]));
  const isPlain = typeof payload.content === "string" && !("tool_calls" in payload) && !("parts" in payload);
  if (typeof record.text !== "string" && !isPlain && OF_MESSAGES.split(" ").some((key) => key in payload)) {
    return payload;
  }
  const text = typeof record.text === "string" ? record.text : contentOf(payload, speaker);
  return speaker === undefined ? text : `${String(payload[speaker])}: ${text}`;
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value.trim() !== "";
}

function payloadOf(record: Item): Item {
  if (isItem(record.data)) {
    return record.data;
  }
  return Object.fromEntries(Object.entries(record).filter(([key]) => !isHead(key)));
}

function contentOf(payload: Item, speaker: string | undefined): string {
  const found = ["content", "text"].find((key) => typeof payload[key] === "string");
  if (found !== undefined) {
    return String(payload[found]);
  }
  const rest = Object.entries(payload).filter(([key]) => key !== speaker);
  return rest.flatMap(([key, value]) => strings(value, key)).join("\n");
}

function strings(value: Json, label: string): string[] {
  if (typeof value === "string") {
    return [label ? `${label}: ${value}` : value];
  }
  if (Array.isArray(value)) {
    return value.flatMap((item) => strings(item, label));
  }
  return isItem(value) ? Object.entries(value).flatMap(([key, item]) => strings(item, key)) : [];
}

/**
 * Return the record for an event: the event itself, or the event in `data` if its keys have another meaning in a
 * line.
 */
export function wrapped(event: Item): Item {
  if (!needsWrapping(event)) {
    return event;
  }
  const { id, type, ts } = event;
  return {
    ...(isName(id) ? { id } : {}),
    ...(isName(type) ? { type } : {}),
    ...(ts !== undefined && instant(ts) !== null ? { ts } : {}),
    data: event,
  };
}

/** Return a line's event as it was saved, unwrapped from `data` if `wrapped` put it there. */
export function unwrapped(line: Item): Item {
  if (isItem(line.data) && needsWrapping(line.data)) {
    return line.data;
  }
  const { modified: _, ...event } = line;
  return event;
}

function needsWrapping(event: Item): boolean {
  return (
    Object.keys(event).some((key) => key === "data" || RESERVED.has(key)) ||
    ("id" in event && !isName(event.id)) ||
    ("type" in event && !isName(event.type)) ||
    ("text" in event && typeof event.text !== "string") ||
    ("ts" in event && instant(event.ts) === null)
  );
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** Return the record of a new line, with the envelope first and the time in the format of the log. */
export function recordOf(item: Item, newId: () => string, now: () => bigint): Item {
  const { id, ts, type, ...rest } = item;
  return {
    id: id ?? newId(),
    ts: formatTime(instant(ts) ?? now()),
    type: type ?? DEFAULT_TYPE,
    ...rest,
  };
}
