/** Forward scan of a log, which hides torn batches and fills in missing ids and times (docs/formats/log.md). */
import { createHash } from "node:crypto";
import { fstatSync, readSync } from "node:fs";

import { type Batch, batchOf } from "./batch.js";
import type { Item } from "./json.js";
import { idOf, isPut, MAX_LINE, parse, withoutBom } from "./line.js";
import { formatTime, type Microseconds, readTime } from "./time.js";

const CHUNK = 1 << 20;
const LF = 0x0a;

/** A line and its position in the file. */
export interface Line {
  offset: number;
  /** The line's bytes without the newline; empty for an overlong line. */
  raw: Buffer;
  /** The line's length in bytes, including the newline. */
  length: number;
  /** The parsed object, null if the line is unreadable. */
  record: Item | null;
}

/** The lines read so far of one batch. */
class Run {
  readonly lines: Line[] = [];
  #place = 0;
  #length = 0;
  #untouched = true;

  takes(line: Line, batch: Batch | null): boolean {
    return line.record === null || (batch !== null && batch[1] === this.#length && batch[0] > this.#place);
  }

  add(line: Line, batch: Batch | null): void {
    this.lines.push(line);
    const [place, length] = batch ?? [this.#place, this.#length];
    this.#untouched &&= place === this.#place + 1;
    [this.#place, this.#length] = [place, length];
  }

  get ended(): boolean {
    return this.#place === this.#length;
  }

  get torn(): boolean {
    return this.lines.length > 0 && this.#untouched && !this.ended;
  }
}

/** A scan of a log's lines, which can be resumed after the file has grown. */
export class Scan {
  /** The offset after the last line whose meaning can no longer change. */
  settled = 0;
  /** The offset of a torn batch at the end of the log; null if there is none. */
  torn: number | null = null;
  /** The offset after the last newline. */
  end = 0;
  /** The bytes after the last newline. */
  rest: Buffer = Buffer.alloc(0);
  /** The time of the last line. */
  ts: Microseconds | null = null;
  readonly #seen = new Map<string, number>();

  /** Pass every line that readers must see to `take`, in file order. */
  read(fd: number, take: (line: Line) => void): void {
    const give = (line: Line): void => take(this.#named(fd, line));
    let run = new Run();
    for (const line of this.#complete(fd)) {
      const batch = batchOf(line.record);
      if (run.lines.length > 0 && !run.takes(line, batch)) {
        run.lines.forEach(give); // An incomplete batch inside the log was edited: torn batches end it.
        run = new Run();
      }
      if (batch === null && run.lines.length === 0) {
        give(line);
        continue;
      }
      run.add(line, batch);
      if (run.ended) {
        run.lines.forEach(give);
        run = new Run();
      }
    }
    this.#last(run, give);
  }

  #last(run: Run, give: (line: Line) => void): void {
    const settled = run.torn ? this.settled : this.end;
    const record = whole(this.rest);
    const [last, batch] = [
      { offset: this.end, raw: withoutBom(this.rest), length: this.rest.length, record },
      batchOf(record),
    ];
    const joins = record !== null && run.lines.length > 0 && run.takes(last, batch);
    if (joins) {
      run.add(last, batch);
    }
    const isHidden = run.torn && (record === null || joins);
    this.torn = isHidden ? (run.lines[0]?.offset ?? null) : null;
    if (!isHidden) {
      run.lines.forEach(give);
    }
    if (record !== null && !joins) {
      give(last);
    }
    this.settled = settled;
  }

  #named(fd: number, line: Line): Line {
    this.settled = line.offset + line.length;
    if (line.record === null) {
      return line;
    }
    const moment = readTime(line.record.ts);
    this.ts = moment ?? this.ts ?? this.#beforeAll(fd, line);
    if (moment === null) {
      line.record.ts = formatTime(this.ts);
    }
    this.#giveId(line, line.record);
    return line;
  }

  /**
   * Return the time for lines before the first line with a time: that line's time, or the file's if it is earlier.
   */
  #beforeAll(fd: number, line: Line): Microseconds {
    const changed = fstatSync(fd, { bigint: true }).mtimeNs / 1000n;
    // Only people and other programs write lines without a time, so reading ahead is rare.
    const ahead = new Scan();
    ahead.settled = line.offset + line.length;
    for (const { record } of ahead.#complete(fd)) {
      const moment = readTime(record?.ts);
      if (moment !== null) {
        return moment < changed ? moment : changed;
      }
    }
    return changed;
  }

  /** Give a put without an id the digest of its bytes as its id, with -2, -3 … if that is taken. */
  #giveId(line: Line, record: Item): void {
    const named = idOf(record);
    if (named !== null) {
      const found = /^([0-9a-f]{32})(?:-([1-9][0-9]{0,9}))?$/.exec(named);
      if (found?.[1] !== undefined) {
        this.#seen.set(found[1], Math.max(this.#seen.get(found[1]) ?? 0, Number(found[2] ?? 1)));
      }
    } else if (isPut(record)) {
      const digest = derivedId(line.raw);
      const count = (this.#seen.get(digest) ?? 0) + 1;
      this.#seen.set(digest, count);
      record.id = count === 1 ? digest : `${digest}-${count}`;
    }
  }

  *#complete(fd: number): Generator<Line> {
    let offset = this.settled;
    let pending: Buffer[] = [];
    let held = 0;
    for (const chunk of chunks(fd, offset)) {
      let begin = 0;
      for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, begin)) {
        const length = held + at - begin + 1;
        const end = chunk.subarray(begin, at);
        const raw = pending.length > 0 ? Buffer.concat([...pending, end]) : end;
        const line = lineOf(offset, length > MAX_LINE ? null : raw, length);
        if (line) {
          yield line;
        }
        [offset, begin, pending, held] = [offset + length, at + 1, [], 0];
      }
      held += chunk.length - begin;
      // The bytes of an overlong line are counted but not kept, so that memory stays bounded.
      pending = held > MAX_LINE ? [] : [...pending, chunk.subarray(begin)];
    }
    this.end = offset;
    // A NUL byte replaces the bytes that were not kept: it is not JSON, and not empty.
    this.rest = held > MAX_LINE ? Buffer.from([0]) : Buffer.concat(pending);
  }
}

function* chunks(fd: number, start: number): Generator<Buffer> {
  for (let at = start; ; ) {
    const chunk = Buffer.allocUnsafe(CHUNK);
    const count = readSync(fd, chunk, 0, CHUNK, at);
    if (count === 0) {
      return;
    }
    at += count;
    yield chunk.subarray(0, count);
  }
}

function lineOf(offset: number, raw: Buffer | null, length: number): Line | null {
  if (raw === null) {
    return { offset, raw: Buffer.alloc(0), length, record: null };
  }
  const record = parse(raw);
  const bare = withoutBom(raw);
  return record === null && stripped(bare).length === 0 ? null : { offset, raw: bare, length, record };
}

/**
 * Return the object of a last line that lacks only its newline; null for a damaged line and for an unfinished batch.
 */
export function whole(rest: Buffer): Item | null {
  const record = parse(rest);
  const [place, length] = batchOf(record) ?? [0, 0];
  return place === length ? record : null;
}

function derivedId(raw: Buffer): string {
  return createHash("sha256").update(stripped(raw)).digest("hex").slice(0, 32);
}

const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || (byte !== undefined && byte >= 0x09 && byte <= 0x0d);

function stripped(raw: Buffer): Buffer {
  let [begin, end] = [0, raw.length];
  while (begin < end && isSpace(raw[begin])) {
    begin += 1;
  }
  while (end > begin && isSpace(raw[end - 1])) {
    end -= 1;
  }
  return raw.subarray(begin, end);
}
