/** The adapter on files: save, load, clear, list, and what it refuses. */
import assert from "node:assert/strict";
import {
  appendFileSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, statSync, symlinkSync, writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { InMemoryObservabilityAdapter, VoltAgentObservability } from "@voltagent/core";

import { CorruptLogError, InvalidAgentIdError, InvalidSessionIdError, MemoryAdapter } from "../src/index.js";
import { newFolder, sessionsOf } from "./places.js";

const quiet = { info: (): void => undefined };

function adapter(agent = "coder"): { memory: MemoryAdapter; folder: string; root: string } {
  const root = newFolder();
  return { root, memory: new MemoryAdapter({ root, agent, logger: quiet }), folder: sessionsOf(root, agent) };
}

test("a save without a session goes to the one begun last", async () => {
  const { memory, folder } = adapter();
  const session = await memory.newSession();
  assert.equal(readFileSync(join(folder, `${session}.ndjson`), "utf8"), "");
  const saved = await memory.save({ role: "user", content: "Hi" });
  assert.deepEqual(await memory.load(session), [saved]);
});

test("an event becomes one line with id, time and type", async () => {
  const { memory, folder } = adapter();
  await memory.save({ role: "user", content: "Hi", at: new Date(0), nothing: undefined }, "s");
  const line = JSON.parse(readFileSync(join(folder, "s.ndjson"), "utf8")) as Record<string, unknown>;
  assert.deepEqual(Object.keys(line), ["id", "ts", "type", "role", "content", "at"]);
  assert.match(String(line.ts), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
});

test("a limit keeps the newest events, oldest first", async () => {
  const { memory } = adapter();
  await memory.saveAll([1, 2, 3].map((n) => ({ n })), "s");
  assert.deepEqual((await memory.load("s", { limit: 2 })).map(({ n }) => n), [2, 3]);
  assert.deepEqual(await memory.load("s", { limit: 0 }), []);
  await assert.rejects(memory.load("s", { limit: -1 }), RangeError);
});

test("what one adapter wrote another reads at once", async () => {
  const { memory, root } = adapter();
  const other = new MemoryAdapter({ root, agent: "coder" });
  await memory.save({ n: 1 }, "s");
  assert.equal((await other.load("s")).length, 1);
  await other.save({ n: 2 }, "s");
  assert.deepEqual((await memory.load("s")).map(({ n }) => n), [1, 2]);
});

test("many saves of one process at once are all kept in their order", async () => {
  const { memory } = adapter();
  await Promise.all(Array.from({ length: 100 }, (_, n) => memory.save({ n }, "s")));
  assert.deepEqual((await memory.load("s")).map(({ n }) => n), Array.from({ length: 100 }, (_, n) => n));
});

test("saves to more sessions than are kept in memory stay in their order", async () => {
  const { memory } = adapter();
  const sessions = Array.from({ length: 20 }, (_, at) => `s${at}`);
  const rounds = Array.from({ length: 5 }, (_, n) => n);
  await Promise.all(rounds.flatMap((n) => sessions.map((session) => memory.save({ n }, session))));
  for (const session of sessions) {
    assert.deepEqual((await memory.load(session)).map(({ n }) => n), rounds);
  }
});

test("a line that is being written is left alone by readers and ended by the next writer", async () => {
  const { memory, folder } = adapter();
  await memory.save({ n: 1 }, "s");
  appendFileSync(join(folder, "s.ndjson"), '{"id":"x","n"');
  assert.equal((await memory.load("s")).length, 1);
  await memory.save({ n: 2 }, "s");
  assert.deepEqual((await memory.load("s")).map(({ n }) => n), [1, 2]);
});

test("a torn batch is kept as an original, and one with later lines is shown", async () => {
  const { memory, folder } = adapter();
  const torn = '{"id":"x","n":1,"batch":[1,2]}\n';
  await memory.save({ id: "first", n: 0 }, "s");
  appendFileSync(join(folder, "s.ndjson"), torn);
  await memory.save({ id: "y", n: 2 }, "s");
  const [original] = readdirSync(join(folder, ".archive"));
  assert.equal(readFileSync(join(folder, ".archive", String(original)), "utf8"), torn);
  appendFileSync(join(folder, "s.ndjson"), `${torn}{"id":"z","n":3}\n`);
  assert.deepEqual((await memory.load("s")).map(({ id }) => id), ["first", "y", "x", "z"]);
});

test("a last line whose batch is written in fractions is an entry and stays after the next save", async () => {
  const { memory, folder } = adapter();
  await memory.save({ n: 1 }, "s");
  appendFileSync(join(folder, "s.ndjson"), '{"id":"run","type":"run","loss":0.5,"batch":[1.0,32.0]}\n');
  assert.equal((await memory.load("s")).at(-1)?.id, "run");
  await memory.save({ n: 2 }, "s");
  assert.match(readFileSync(join(folder, "s.ndjson"), "utf8"), /"id":"run"/);
});

test("the list has id, time and size of every session, the one changed last first", async () => {
  const { memory } = adapter();
  await memory.save({ n: 1 }, "old");
  await memory.save({ n: 2 }, "new/er");
  const found = await memory.list();
  assert.deepEqual(found.map(({ id }) => id), ["new/er", "old"]);
  assert.ok(found.every(({ modified, size }) => modified instanceof Date && size > 0));
});

test("the newest events of a long session cost far less than all of them", async () => {
  const { memory } = adapter();
  await memory.saveAll(Array.from({ length: 30_000 }, (_, n) => ({ n })), "long");
  const cost = async (count: number, options: { limit?: number }): Promise<number> => {
    const begin = process.cpuUsage().user;
    for (let at = 0; at < count; at += 1) {
      await memory.load("long", options);
    }
    return (process.cpuUsage().user - begin) / count;
  };
  const all = await cost(2, {});
  assert.ok((await cost(50, { limit: 1 })) < all / 50);
});

test("events that come late are in their place by time, with a limit too", async () => {
  const { memory } = adapter();
  const day = (n: number): { n: number; ts: string } => ({ n, ts: `2026-01-0${n}T00:00:00Z` });
  await memory.saveAll([day(2), day(4)], "s");
  assert.deepEqual((await memory.load("s", { limit: 1 })).map(({ n }) => n), [4]);
  const [late] = await memory.saveAll([{ ...day(1), id: "late" }, day(5), day(3), { n: 6, ts: day(4).ts }], "s");
  assert.deepEqual((await memory.load("s")).map(({ n }) => n), [1, 2, 3, 4, 6, 5]);
  await memory.save({ n: 7, id: "late" }, "s");
  assert.deepEqual((await memory.load("s", { limit: 6 })).map(({ n }) => n), [7, 2, 3, 4, 6, 5]);
  await memory.deleteEvent("s", String(late?.id));
  await memory.save({ n: 8, id: "late", ts: day(6).ts }, "s");
  assert.deepEqual((await memory.load("s", { limit: 3 })).map(({ n }) => n), [6, 5, 8]);
});

test("a session whose file a person has made is listed by its name and goes on being used", async () => {
  const { memory, folder } = adapter();
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "a:b.ndjson"), '{"id":"x","n":1}\n');
  await memory.save({ n: 2 }, "a:b");
  assert.deepEqual((await memory.list()).map(({ id }) => id), ["a:b"]);
  assert.deepEqual((await memory.load("a:b")).map(({ n }) => n), [1, 2]);
  assert.deepEqual(readdirSync(folder).filter((name) => name.endsWith("ndjson")), ["a:b.ndjson"]);
});

test("of two files of one session the canonical one is used, and none comes back once that is gone", async () => {
  for (const act of ["clear", "delete"] as const) {
    const { memory, folder } = adapter();
    mkdirSync(join(folder, ".archive"), { recursive: true });
    for (const [name, n] of [["a:b", 1], ["a%3Ab", 2], ["a%3ab", 3], [".archive/a:b", 4], [".archive/%61:b", 5]] as const) {
      writeFileSync(join(folder, `${name}.ndjson`), `{"id":"x${n}","n":${n}}\n`);
    }
    writeFileSync(join(folder, ".archive", "a%3Ab.ndjson.20260111T143100000000Z.original"), "mended\n");
    await memory.save({ n: 5 }, "other");
    assert.deepEqual((await memory.load("a:b")).map(({ n }) => n), [2]);
    assert.deepEqual((await memory.list()).map(({ id }) => id).sort(), ["a:b", "other"]);
    assert.equal(await memory[act]("a:b"), true);
    const left = readdirSync(folder).filter((name) => /^[^.].*\.ndjson$/.test(name) && name !== "other.ndjson");
    assert.deepEqual([left, readdirSync(join(folder, ".archive"))], [act === "clear" ? ["a%3Ab.ndjson"] : [], []]);
    assert.deepEqual(await memory.load("a:b"), []);
  }
});

test("a file that a person renames is the session's under its new name", async () => {
  for (const renamed of ["a%3Ab.ndjson", "a%3ab.ndjson"]) {
    const { memory, folder } = adapter();
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "a:b.ndjson"), "");
    await memory.save({ n: 1 }, "a:b");
    renameSync(join(folder, "a:b.ndjson"), join(folder, renamed));
    assert.deepEqual((await memory.load("a:b")).map(({ n }) => n), [1]);
    await memory.save({ n: 2 }, "a:b");
    assert.deepEqual(readdirSync(folder).filter((name) => name.endsWith(".ndjson")), [renamed]);
    assert.deepEqual((await memory.load("a:b")).map(({ n }) => n), [1, 2]);
  }
});

test("a file with a canonical name takes the place of a person's at once", async () => {
  const { memory, folder } = adapter();
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "a:b.ndjson"), "");
  await memory.save({ n: 1 }, "a:b");
  writeFileSync(join(folder, "a%3Ab.ndjson"), "");
  await memory.save({ n: 2 }, "a:b");
  assert.match(readFileSync(join(folder, "a%3Ab.ndjson"), "utf8"), /"n":2/);
  assert.deepEqual((await memory.load("a:b")).map(({ n }) => n), [2]);
});

test("clearing leaves no byte of log and archive", async () => {
  const { memory, folder } = adapter();
  await memory.save({ secret: 1 }, "s");
  mkdirSync(join(folder, ".archive"));
  writeFileSync(join(folder, ".archive", "s.ndjson"), "old\n");
  assert.equal(await memory.clear("s"), true);
  assert.equal(statSync(join(folder, "s.ndjson")).size, 0);
  assert.deepEqual(readdirSync(join(folder, ".archive")), []);
});

test("clearing is reported through VoltAgent's logger with agent, session and bytes", async () => {
  const storage = new InMemoryObservabilityAdapter();
  const observability = new VoltAgentObservability({ storage });
  const { root, folder } = adapter();
  const memory = new MemoryAdapter({ root, agent: "coder" });
  await memory.save({ secret: 1 }, "s");
  const bytes = statSync(join(folder, "s.ndjson")).size;
  await memory.clear("s");
  await observability.forceFlush();
  const records = await storage.queryLogs({});
  const { component: _, ...attributes } = records.find(({ body }) => body === "memory.clear")?.attributes ?? {};
  assert.deepEqual(attributes, { event: "memory.clear", agent: "coder", session: "s", bytes });
});

test("a deleted session leaves no file but the journal of erasures, and no place in the list", async () => {
  const { memory, folder } = adapter();
  await memory.save({ n: 1 }, "s");
  assert.equal(await memory.delete("s"), true);
  assert.deepEqual(readdirSync(folder), [".purged.ndjson", ".purged.ndjson.lock"]);
  assert.deepEqual(await memory.list(), []);
  assert.equal(await memory.delete("s"), false);
  assert.equal(await memory.clear("s"), false);
});

test("an adapter for another agent reads nothing of the first, also with equal ids", async () => {
  const { memory } = adapter("one");
  await memory.save({ secret: 1 }, "same");
  const other = memory.forAgent("other");
  assert.deepEqual(await other.load("same"), []);
  assert.deepEqual(await other.list(), []);
});

test("names that would leave the folder are refused, and nothing is touched", async () => {
  const { memory, root } = adapter();
  assert.throws(() => new MemoryAdapter({ root, agent: "../x" }), InvalidAgentIdError);
  for (const id of ["", "x".repeat(201), "\ud800"]) {
    await assert.rejects(memory.save({ n: 1 }, id), InvalidSessionIdError);
  }
  assert.equal(existsSync(join(root, "agents")), false);
});

test("a link in the place of a log or of a folder is not followed", async () => {
  const { memory, folder, root } = adapter();
  const outside = join(newFolder(), "outside");
  writeFileSync(outside, "untouched\n");
  mkdirSync(folder, { recursive: true });
  symlinkSync(outside, join(folder, "s.ndjson"));
  await assert.rejects(memory.save({ n: 1 }, "s"), CorruptLogError);
  await assert.rejects(memory.clear("s"), CorruptLogError);
  symlinkSync(join(root, "agents", "coder"), join(root, "agents", "linked"));
  await assert.rejects(memory.forAgent("linked").load("s"), CorruptLogError);
  assert.equal(readFileSync(outside, "utf8"), "untouched\n");
});

test("what has no JSON form is refused, and nothing is written", async () => {
  const { memory } = adapter();
  const circle: { self?: object } = {};
  circle.self = circle;
  const events = [
    { n: NaN }, { n: -Infinity }, { f: () => 1 }, { m: new Map() }, { s: "\ud800" }, { "\udc00": 1 }, { b: 1n }, { y: Symbol("s") },
    { d: new Date(NaN) }, { a: [undefined] }, { a: [1, , 3] }, { o: new (class Thing {})() }, circle,
  ];
  for (const event of events) {
    await assert.rejects(memory.save(event, "s"), (error) => error instanceof TypeError || error instanceof RangeError);
  }
  await assert.rejects(memory.save([] as object, "s"), TypeError);
  assert.deepEqual(await memory.list(), []);
});
