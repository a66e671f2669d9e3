/** Permanent removal of entries by rewriting a log without their lines (docs/formats/log.md). */
import { closeSync, constants, readSync } from "node:fs";

import { batchOf } from "./batch.js";
import type { Folder } from "./folder.js";
import type { Item } from "./json.js";
import { idOf, parse } from "./line.js";
import { type Line, Scan, whole } from "./scan.js";
import { readTime } from "./time.js";

const LF = Buffer.from("\n");
/** The beginning of every line that keepstone writes; it may also be inside of a damaged line. */
const BEGINNING = /"id"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*(?:"type"\s*:\s*"(?:[^"\\]|\\.)*"\s*,\s*)?"ts"\s*:/g;
const FIRST_ID = /^\s*\{\s*"id"\s*:\s*("(?:[^"\\]|\\.)*")/;
const BATCH_MARK = /,"batch":\[\d+,\d+\]\}\s*$/;

/** Rewrite a log without the lines of some entries; return the number of removed lines. The caller holds the lock. */
export function without(folder: Folder, name: string, ids: ReadonlySet<string>, temporary: string): number {
  const fd = folder.open(name, constants.O_RDONLY);
  try {
    const lines = linesOf(fd);
    const kept = lines.filter((line) => !isOf(line, ids));
    if (kept.length < lines.length) {
      folder.replace(name, written(kept, fd), temporary);
    }
    return lines.length - kept.length;
  } finally {
    closeSync(fd);
  }
}

/** Return all lines of a log except the lines of torn batches, which a rewrite drops. */
function linesOf(fd: number): Line[] {
  const lines: Line[] = [];
  const scan = new Scan();
  scan.read(fd, (line) => lines.push(line));
  if (scan.rest.length > 0 && scan.torn === null && whole(scan.rest) === null) {
    lines.push({ offset: scan.end, raw: scan.rest, length: scan.rest.length, record: null });
  }
  return lines;
}

/** Return whether a line belongs to one of these entries; a damaged line also if an entry's line begins in it. */
function isOf({ raw, record }: Line, ids: ReadonlySet<string>): boolean {
  if (record !== null) {
    return ids.has(idOf(record) ?? "");
  }
  const text = raw.toString();
  // A purge removes too much rather than too little: it drops a damaged line if a purged entry's line may begin in
  // it.
  const named = [FIRST_ID.exec(text)?.[1], ...Array.from(text.matchAll(BEGINNING), ([, id]) => id)];
  return named.some((id) => id !== undefined && ids.has(textOf(id)));
}

/** Return the value of a JSON string, the text itself if it is damaged. */
function textOf(json: string): string {
  try {
    return JSON.parse(json) as string;
  } catch (error) {
    if (error instanceof SyntaxError) {
      return json;
    }
    throw error;
  }
}

function* written(lines: Iterable<Line>, fd: number): Generator<Uint8Array> {
  for (const line of lines) {
    yield line.record === null ? bytesOf(line, fd) : explicit(line.raw, line.record);
    yield LF;
  }
}

/** Return the bytes of a damaged line; read them from the file if the scan left them out for their size. */
function bytesOf({ raw, offset, length }: Line, fd: number): Uint8Array {
  if (raw.length > 0) {
    return raw;
  }
  const bytes = Buffer.alloc(length - 1);
  readSync(fd, bytes, 0, bytes.length, offset);
  return bytes;
}

/** Return a line with an explicit id and time, which may be derived from other lines, and without a batch mark. */
function explicit(raw: Buffer, record: Item): Uint8Array {
  const given = parse(raw);
  const isNamed = given !== null && idOf(given) === idOf(record) && readTime(given.ts) !== null;
  if (isNamed && batchOf(given) === null) {
    return raw;
  }
  const text = raw.toString();
  // Edit the text: serializing the object again would change numbers that a double cannot hold.
  if (isNamed && BATCH_MARK.test(text)) {
    return Buffer.from(text.replace(BATCH_MARK, "}"));
  }
  const { batch: _, ...rest } = record;
  return Buffer.from(JSON.stringify(rest));
}
