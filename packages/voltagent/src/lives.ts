/** The erasure journal beside the logs: the number of erased lives of each id (docs/formats/log.md). */
import { createHash, randomUUID } from "node:crypto";
import { closeSync, constants, fstatSync, fsyncSync, readFileSync, readSync, writeSync } from "node:fs";

import { type Folder, ifThere } from "./folder.js";
import type { Item } from "./json.js";
import { sessionOf, TEMPORARY } from "./layout.js";
import { dump, idOf, isPut, isTombstone, lifeOf, parse } from "./line.js";
import { Lock } from "./lock.js";
import { Scan } from "./scan.js";
import { formatTime, ofDate } from "./time.js";

const JOURNAL = ".purged.ndjson";
const { O_APPEND, O_CREAT, O_RDONLY, O_RDWR } = constants;

/** Return the number of erased lives for some ids of a session; ids without erased lives are left out. */
export function erasedLives(folder: Folder, logName: string, ids: readonly string[]): Map<string, number> {
  const fd = ids.length ? ifThere(() => folder.open(JOURNAL, O_RDONLY)) : null;
  const found = new Map<string, number>();
  if (fd === null) {
    return found;
  }
  try {
    const session = sessionOf(logName) ?? logName;
    const wanted = new Map(ids.map((id) => [digest(session, id), id]));
    // Latin-1 keeps every byte, so that `parse` finds damaged bytes and refuses their line.
    for (const raw of readFileSync(fd, "latin1").split("\n")) {
      const line = parse(Buffer.from(raw, "latin1"));
      const id = line && wanted.get(String(line.purged));
      if (line && id !== undefined && id !== null) {
        found.set(id, Math.max(lifeOf(line), found.get(id) ?? 0));
      }
    }
  } finally {
    closeSync(fd);
  }
  return found;
}

/** Return the last life of each id in a session's files; `names` has the archive first. */
export function livesIn(folder: Folder, names: readonly string[]): Map<string, number> {
  const lives = new Map<string, number>();
  const live = new Set<string>();
  for (const name of names) {
    const fd = ifThere(() => folder.open(name, O_RDONLY));
    if (fd === null) {
      continue;
    }
    try {
      new Scan().read(fd, ({ record }) => {
        const id = record && idOf(record);
        if (!record || id === null) {
          return;
        }
        const last = lives.get(id) ?? 0;
        if (isTombstone(record)) {
          live.delete(id);
        } else if (isPut(record)) {
          lives.set(id, Math.max(lifeOf(record), live.has(id) ? last : last + 1));
          live.add(id);
        }
        lives.set(id, Math.max(lives.get(id) ?? 0, 1));
      });
    } finally {
      closeSync(fd);
    }
  }
  return lives;
}

/**
 * Record and sync the end of lives of a session's entries before their bytes are erased, so that later syncs and
 * merges erase the entries, too. With `isGone` the whole session is removed. The returned function withdraws the
 * lines, for an erasure that failed before it erased anything.
 */
export async function recordErased(
  folder: Folder, logName: string, lives: ReadonlyMap<string, number>, isGone = false,
): Promise<() => Promise<void>> {
  const session = sessionOf(logName) ?? logName;
  const ts = formatTime(ofDate(new Date()));
  const ended = Array.from(lives, ([id, life]): Item => ({ purged: digest(session, id), ...(life > 1 ? { life } : {}), ts }));
  const lines = [...ended, ...(isGone ? [{ removed: digest(session), mark: randomUUID() }] : [])].map(dump);
  const lock = new Lock(folder, `${JOURNAL}.lock`);
  if (lines.length > 0) {
    await lock.hold(async () => append(folder, lines));
  }
  return () => lock.hold(async () => withdraw(folder, new Set(lines)));
}

function append(folder: Folder, lines: readonly string[]): void {
  const fd = folder.open(JOURNAL, O_RDWR | O_APPEND | O_CREAT);
  try {
    const { size } = fstatSync(fd);
    const last = Buffer.alloc(1);
    // A killed writer may have left a torn line. A newline before our lines separates them from it.
    const isTorn = size > 0 && readSync(fd, last, 0, 1, size - 1) === 1 && last.toString() !== "\n";
    const data = Buffer.from((isTorn ? "\n" : "") + lines.join(""));
    for (let at = 0; at < data.length; ) {
      at += writeSync(fd, data, at);
    }
    fsyncSync(fd);
    folder.sync();
  } finally {
    closeSync(fd);
  }
}

function withdraw(folder: Folder, lines: ReadonlySet<string>): void {
  const fd = ifThere(() => folder.open(JOURNAL, O_RDONLY));
  if (fd !== null && lines.size > 0) {
    try {
      const there = readFileSync(fd, "latin1").split(/(?<=\n)/);
      // Times and random marks make our lines unique, so no other writer's erasure is withdrawn.
      const kept = there.filter((line) => !lines.has(line));
      folder.replace(JOURNAL, kept.map((line) => Buffer.from(line, "latin1")), JOURNAL + TEMPORARY);
    } finally {
      closeSync(fd);
    }
  }
}

/**
 * Return the digest of a session, or of a session and an entry's id, from the JSON that Python's `json.dumps` writes.
 */
export function digest(...names: string[]): string {
  const ascii = (text: string): string =>
    JSON.stringify(text).replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return createHash("sha256").update(`[${names.map(ascii).join(", ")}]`).digest("hex");
}
