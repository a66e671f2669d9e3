/** Several processes of both languages that write one session at once. */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { MemoryAdapter } from "../src/files.js";
import { newFolder, node, python, runPython, sessionsOf } from "./places.js";

const SECONDS = "5";
const PYTHON_WRITER = `
import sys, time
from keepstone import MemoryAdapter
root, label, seconds = sys.argv[1:]
memory = MemoryAdapter(root, "busy")
memory.load("shared")
print("ready", flush=True)
sys.stdin.readline()
end = time.time() + float(seconds)
count = 0
while time.time() < end:
    memory.save({"from": label, "n": count}, "shared")
    count += 1
print(count, flush=True)
`;

interface Writer {
  label: string;
  child: ChildProcess;
  lines: string[];
}

function writer(label: string, child: ChildProcess): Writer {
  const lines: string[] = [];
  child.stdout?.on("data", (part: Buffer) => lines.push(...part.toString().split("\n").filter(Boolean)));
  return { label, child, lines };
}

async function printed(one: Writer, count: number): Promise<void> {
  while (one.lines.length < count) {
    assert.equal(one.child.exitCode ?? 0, 0, `writer ${one.label} has failed`);
    await Promise.race([once(one.child.stdout as NodeJS.ReadableStream, "data"), once(one.child, "close")]);
  }
}

/** Let four processes of each language write at once, and return how many saves each had acknowledged. */
async function write(root: string): Promise<Map<string, number>> {
  const labels = ["1", "2", "3", "4"];
  const writers = [
    ...labels.map((n) => writer(`node${n}`, node("writer.js", root, `node${n}`, SECONDS))),
    ...labels.map((n) => writer(`python${n}`, python(["-c", PYTHON_WRITER, root, `python${n}`, SECONDS]))),
  ];
  await Promise.all(writers.map((one) => printed(one, 1)));
  writers.forEach(({ child }) => child.stdin?.write("go\n"));
  await Promise.all(writers.map((one) => printed(one, 2)));
  return new Map(writers.map(({ label, lines }) => [label, Number(lines[1])]));
}

test("four Node and four Python processes write one session, and every acknowledged line is there once", async () => {
  const root = newFolder();
  const acknowledged = await write(root);
  const lines = readFileSync(join(sessionsOf(root, "busy"), "shared.ndjson"), "utf8").trimEnd().split("\n");
  const events = lines.map((line) => JSON.parse(line) as { from: string; n: number });
  for (const [label, count] of acknowledged) {
    const own = events.flatMap(({ from, n }) => (from === label ? [n] : []));
    assert.ok(count > 0, `${label} wrote nothing`);
    assert.deepEqual(own, Array.from({ length: count }, (_, n) => n));
  }
  assert.equal(events.length, [...acknowledged.values()].reduce((sum, count) => sum + count));
  assertOverlap(events, [...acknowledged.keys()]);
  await assertBothRead(root, events.length);
});

/** Prove that the writers were at it at the same time: each began before any other had ended. */
function assertOverlap(events: { from: string }[], labels: string[]): void {
  const froms = events.map(({ from }) => from);
  const firsts = labels.map((label) => froms.indexOf(label));
  const lasts = labels.map((label) => froms.lastIndexOf(label));
  assert.ok(Math.max(...firsts) < Math.min(...lasts));
}

async function assertBothRead(root: string, count: number): Promise<void> {
  const read = await new MemoryAdapter({ root, agent: "busy" }).load("shared");
  const program = "import sys; from keepstone import MemoryAdapter; print(len(MemoryAdapter(sys.argv[1], 'busy').load('shared')))";
  assert.equal(read.length, count);
  assert.equal(Number(await runPython(program, root)), count);
}
