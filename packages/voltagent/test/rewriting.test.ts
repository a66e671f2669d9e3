/** Python rewrites a log while this side goes on writing to it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { MemoryAdapter } from "../src/files.js";
import { firstLine, newFolder, python, sessionsOf } from "./places.js";

const COMPACT = `
import sys, keepstone
from keepstone.store.files.placing import IndexedPlacing
catch_up = IndexedPlacing.catch_up
def preparing(*arguments, **keywords):
    catch_up(*arguments, **keywords)
    print("prepared", flush=True)
    sys.stdin.readline()
IndexedPlacing.catch_up = preparing
with keepstone.open(sys.argv[1], embedder="none") as home:
    home.agent("a").session("s").compact()
`;

async function prepared(root: string): Promise<{ finish: () => Promise<void>; kill: () => Promise<void> }> {
  const child = python(["-c", COMPACT, root]);
  assert.equal(await firstLine(child), "prepared");
  const ended = once(child, "exit");
  return {
    finish: async () => {
      child.stdin?.end("\n\n\n\n\n\n");
      assert.deepEqual((await ended)[0], 0);
    },
    kill: async () => {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

async function filled(): Promise<{ root: string; memory: MemoryAdapter; folder: string }> {
  const root = newFolder();
  const memory = new MemoryAdapter({ root, agent: "a" });
  for (let n = 0; n < 5; n++) {
    await memory.save({ content: `secret ${n}` }, "s");
  }
  return { root, memory, folder: sessionsOf(root, "a") };
}

function holdsSecret(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => join(entry.parentPath, entry.name));
  return paths.filter((path) => readFileSync(path).includes("secret"));
}

test("saves go on while Python prepares a compaction, and are kept by it", async () => {
  const { root, memory } = await filled();
  const compaction = await prepared(root);
  await memory.save({ content: "beside it" }, "s");
  await compaction.finish();
  const texts = (await memory.load("s")).map((event) => (event as { content: string }).content);
  assert.deepEqual(texts, ["secret 0", "secret 1", "secret 2", "secret 3", "secret 4", "beside it"]);
});

test("a save removes what a killed compaction of Python prepared, and none that goes on", async () => {
  const { root, folder } = await filled();
  const compaction = await prepared(root);
  const path = join(folder, "s.ndjson.next.tmp");
  await new MemoryAdapter({ root, agent: "a" }).save({ content: "one" }, "s");
  assert.equal(existsSync(path), true);
  await compaction.kill();
  await new MemoryAdapter({ root, agent: "a" }).save({ content: "two" }, "s");
  assert.equal(existsSync(path), false);
});

test("clearing a session leaves nothing of what Python prepares", async () => {
  const { root, memory, folder } = await filled();
  const compaction = await prepared(root);
  assert.notDeepEqual(holdsSecret(folder), []);
  await memory.clear("s");
  assert.deepEqual(holdsSecret(folder), []);
  await compaction.finish();
  assert.deepEqual(holdsSecret(folder), []);
});
