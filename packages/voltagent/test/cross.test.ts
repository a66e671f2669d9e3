/** Whatever one language writes, the other reads alike: made-up events, and lines that no program would write. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { MemoryAdapter } from "../src/files.js";
import { GOLDEN, newFolder, runPython, sessionsOf } from "./places.js";

const COUNT = Number(process.env.KEEPSTONE_CROSS_EVENTS ?? 400);
const SEED = Number(process.env.KEEPSTONE_CROSS_SEED ?? 1);

type Random = () => number;

/** Return numbers from 0 up to 1 that are the same for the same seed (xorshift). */
function randomOf(seed: number): Random {
  let state = (seed * 2654435761) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

function oneOf<T>(random: Random, values: readonly T[]): T {
  return values[Math.floor(random() * values.length)] as T;
}

const STRINGS = [
  "", " ", "plain", "日本語 😀", "e\u0301 é", "\u2028\u2029\u0085", "\0\u0007\u001b[31m\u007f", 'quote " back \\ slash /', "line\nbreak\r\n",
  "\ufeffmark", "\ufffe\uffff", "\ue000", "NaN", "null", "2026-01-01", "2026-01-01T00:00:00Z", "yesterday", "<b>&amp;", "x".repeat(5000),
];
const NUMBERS = [
  0, -0, 1, -1, 0.1, -2.5e-3, 1e21, 1e-7, 123456789012345680000, 5e-324, 1.7976931348623157e308, 2 ** 53 - 1, -(2 ** 53), 2 ** 31, 1 / 3,
];
const KEYS = [
  "a", "", "10", "2", "__proto__", "constructor", "toString", "日本", "😀", "\ue000", "role", "content", "name", "speaker", "kéy", "a\nb", "length",
];
const RESERVED = ["id", "ts", "type", "text", "data", "tags", "priority", "deleted", "batch", "embedding", "pinned", "links", "expires", "aliases", "modified"];

function value(random: Random, depth: number): unknown {
  const kind = Math.floor(random() * (depth > 3 ? 5 : 8));
  return kind < 2 ? oneOf(random, STRINGS)
    : kind < 3 ? oneOf(random, NUMBERS)
    : kind < 4 ? oneOf(random, [true, false, null])
    : kind < 5 ? new Date(Math.floor(random() * 2e12))
    : kind < 6 ? Array.from({ length: Math.floor(random() * 4) }, () => value(random, depth + 1))
    : object(random, depth + 1, KEYS);
}

function object(random: Random, depth: number, keys: readonly string[]): object {
  const pairs = Array.from({ length: Math.floor(random() * 5) }, () => [oneOf(random, keys), value(random, depth)] as const);
  // Not by assignment, which has a meaning of its own for "__proto__".
  return Object.fromEntries([...pairs, ["left out", undefined]]);
}

const READ = `
import json, sys
from keepstone import MemoryAdapter
print(json.dumps(MemoryAdapter(sys.argv[1], "cross").load("s")))`;

async function assertBothRead(root: string, atLeast: number): Promise<void> {
  const here = await new MemoryAdapter({ root, agent: "cross" }).load("s");
  const there = JSON.parse(await runPython(READ, root)) as object[];
  assert.ok(here.length >= atLeast);
  here.forEach((event, at) => {
    // JSON has no negative zero that every language keeps.
    assert.deepEqual(JSON.parse(JSON.stringify(event)), JSON.parse(JSON.stringify(there[at] ?? null)));
  });
  assert.equal(here.length, there.length);
}

/** Return made-up events, without ids of their own: the same id again would take the place of an earlier event. */
function madeUp(): object[] {
  const random = randomOf(SEED);
  const events = Array.from({ length: COUNT }, () => object(random, 0, random() < 0.5 ? KEYS : [...KEYS, ...RESERVED]));
  return events.filter((event) => !("id" in event && typeof event.id === "string"));
}

test("made-up events that Node saves come back as they were, and Python reads the same", async () => {
  const root = newFolder();
  const memory = new MemoryAdapter({ root, agent: "cross" });
  const saved = await memory.saveAll(madeUp(), "s");
  const read = new Set((await memory.load("s")).map((event) => JSON.stringify(event)));
  assert.ok(saved.every((event) => read.has(JSON.stringify(event))));
  await assertBothRead(root, saved.length);
});

const SAVE = `
import json, sys
from pathlib import Path
from keepstone import MemoryAdapter
memory = MemoryAdapter(sys.argv[1], "cross")
for event in json.loads(Path(sys.argv[1], "events.json").read_text()):
    memory.save(event, "s")`;

test("made-up events that Python saves are read alike", async () => {
  const root = newFolder();
  const events = madeUp();
  writeFileSync(join(root, "events.json"), JSON.stringify(events));
  await runPython(SAVE, root);
  await assertBothRead(root, events.length);
});

/** Lines as people, other programs and broken disks leave them. */
function rawLine(random: Random): string {
  const time = `"ts":"2026-01-01T00:00:00.${String(Math.floor(random() * 1e6)).padStart(6, "0")}Z"`;
  const id = `"id":"${oneOf(random, ["a", "b", "c", "d", "e"])}"`;
  const n = Math.floor(random() * 4);
  return oneOf(random, [
    () => `{${id},${time},"type":"message","content":"${n}"}`,
    () => `{${id},${time},"n":${n}}`,
    () => `{${id},${time},"data":{"content":"x"},"ignored":${n}}`,
    () => `{${id},${time},"priority":${n},"tags":null}`,
    () => `{${id},${time},"deleted":${oneOf(random, ["true", "false", "null", "1"])}}`,
    () => `{${id},${time},"n":${n},"batch":[${n + 1},${1 + Math.floor(random() * 4)}]}`,
    () => `{"n":${n},"batch":[${oneOf(random, ["1,2", "2,2", "0,0", "1", "true,2", '"1",2', "1.5,2", "-1,2"])}]}`,
    () => JSON.stringify(object(random, 0, [...KEYS, ...RESERVED])),
    () => `{"by":"hand","n":${n}}`,
    () => ` \t{"by":"hand","n":${n}} \r`,
    () => `{"ts":${oneOf(random, ['"2026-01-01T00:00:00+25:00"', '"2026-02-30"', '"24:00"', "5", '"2026-01-01T24:00:00Z"', '"2026-01-01t10:00z"', '"0000-01-01"', '"9999-12-31T23:59:59-01:00"', '"0001-01-01T00:00:00+01:00"', '"2026-01-01T00:00:00+23:59"', '"2026-06-30T23:59:60Z"'])},"n":${n}}`,
    () => `{"n":${oneOf(random, ["NaN", "Infinity", "-Infinity", "1e999", "-0", "-0.0", "01", "1.", "0x1", "1e5", "1.0"])}}`,
    () => `{"n":1,"n":${n}}`,
    () => oneOf(random, ["", "  ", "null", "[]", "[1]", '"text"', "{", "}", "{}", "not json", "\ufeff{}", `\ufeff{"n":${n}}`, "{'n':1}", "// x", '{"n":1,}', '{"a":"\\ud800"}', '{"\\udc00":1}', '{"id":"\\ud800","n":1}', '{"a":"tab\there"}', '{"id":"","n":1}', '{"id":5,"n":1}', '{"id":null,"n":1}', '{"type":"","n":1}', '{"type":7}', '{"data":[1]}', '{"text":5,"n":1}', "[".repeat(5000), `{"a":${"[".repeat(150)}${"]".repeat(150)}}`, `{"a":${"[".repeat(230)}${"]".repeat(230)}}`]),
  ])();
}

test("lines that no program would write are read alike", async () => {
  const root = newFolder();
  const random = randomOf(SEED);
  mkdirSync(sessionsOf(root, "cross"), { recursive: true });
  const lines = Array.from({ length: COUNT }, () => rawLine(random));
  writeFileSync(join(sessionsOf(root, "cross"), "s.ndjson"), `${lines.join("\n")}\n`);
  await assertBothRead(root, 10);
});

test("a log of the table's odd lines gives the same entries in both languages", async () => {
  const root = newFolder();
  mkdirSync(sessionsOf(root, "cross"), { recursive: true });
  const table = JSON.parse(readFileSync(join(GOLDEN, "lines.json"), "utf8")) as [string][];
  // Each line gets an id of its own, or the last would stand for all of them.
  const lines = table.map(([line], at) => line.replace('"id":"x"', `"id":"x${at}"`));
  writeFileSync(join(sessionsOf(root, "cross"), "s.ndjson"), `${lines.join("\n")}\n`);
  await assertBothRead(root, 30);
});

const SPELLINGS = `
import json, sys
from keepstone import MemoryAdapter
memory = MemoryAdapter(sys.argv[1], "cross")
if sys.argv[2] == "remove":
    memory.delete("a:b")
    memory.delete("c:d")
print(json.dumps([sorted([info.id, memory.load(info.id)] for info in memory.list()), memory.load("a:b")]))`;

/** Make a folder of sessions with names that no program gives them: two of them for one session. */
function spelled(): string {
  const root = newFolder();
  mkdirSync(sessionsOf(root, "cross"), { recursive: true });
  for (const [at, name] of ["a:b", "a%3Ab", "a%3ab", "c:d", "%zz", "e%2ff", "50%", "g%3ah", "g:h"].entries()) {
    writeFileSync(join(sessionsOf(root, "cross"), `${name}.ndjson`), `{"id":"x${at}","ts":"2026-01-01T00:00:00Z","n":${at}}\n`);
  }
  return root;
}

test("odd names of session files are read alike, and none comes back once its session is removed", async () => {
  const roots = [spelled(), spelled()];
  const memory = new MemoryAdapter({ root: String(roots[0]), agent: "cross", logger: { info: () => undefined } });
  for (const act of ["look", "remove"]) {
    if (act === "remove") {
      await memory.delete("a:b");
      await memory.delete("c:d");
    }
    const sessions = await Promise.all((await memory.list()).map(async ({ id }) => [id, await memory.load(id)] as const));
    const here = [sessions.sort(([one], [other]) => (one < other ? -1 : 1)), await memory.load("a:b")];
    assert.deepEqual(here, JSON.parse(await runPython(SPELLINGS, String(roots[1]), act)));
    assert.equal(sessions.length, act === "look" ? 6 : 4);
  }
});
