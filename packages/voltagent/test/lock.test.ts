/** The lock that this side takes is the one that Python's `filelock` takes, in both directions. */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { LockTimeoutError, StoreError } from "../src/errors.js";
import { MemoryAdapter } from "../src/files.js";
import { loadFlock } from "../src/flock.js";
import { firstLine, newFolder, python, runPython, sessionsOf } from "./places.js";

const HOLD = `
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
`;
const TRY = `
import sys
from filelock import FileLock, Timeout
try:
    with FileLock(sys.argv[1], timeout=0):
        print("free")
except Timeout:
    print("held")
`;

test("a lock that Python holds keeps this side out until it is given back", async () => {
  const path = join(newFolder(), "s.lock");
  const holder = python(["-c", HOLD, path]);
  assert.equal(await firstLine(holder), "held");
  const flock = await loadFlock();
  const fd = openSync(path, "r+");
  assert.equal(flock.tryLock(fd), false);
  holder.stdin?.end("\n");
  await new Promise((resolve) => holder.once("exit", resolve));
  assert.equal(flock.tryLock(fd), true);
  closeSync(fd);
});

test("a lock that this side holds keeps Python out until it is given back", async () => {
  const path = join(newFolder(), "s.lock");
  const flock = await loadFlock();
  const fd = openSync(path, "w");
  assert.equal(flock.tryLock(fd), true);
  assert.equal(await runPython(TRY, path), "held\n");
  flock.unlock(fd);
  assert.equal(await runPython(TRY, path), "free\n");
  closeSync(fd);
});

test("a save gives up after five seconds and writes nothing", async () => {
  const root = newFolder();
  const memory = new MemoryAdapter({ root, agent: "a" });
  const session = await memory.newSession();
  const log = join(sessionsOf(root, "a"), session);
  const holder = python(["-c", HOLD, `${log}.lock`]);
  assert.equal(await firstLine(holder), "held");
  await assert.rejects(memory.save({ content: "late" }), LockTimeoutError);
  assert.equal(statSync(`${log}.ndjson`).size, 0);
  holder.stdin?.end("\n");
  assert.ok(await memory.save({ content: "in time" }));
});

/** Make an agent with an empty session and a process that holds the session's lock. */
async function held(root: string, agent: string, stem = "s"): Promise<{ holder: ChildProcess; lock: string }> {
  const folder = sessionsOf(root, agent);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${stem}.ndjson`), "");
  const lock = join(folder, `${stem}.lock`);
  const holder = python(["-c", HOLD, lock]);
  assert.equal(await firstLine(holder), "held");
  return { holder, lock };
}

/** Return once a lock file has been touched since, as those do who wait for it. */
async function touched(lock: string, since: bigint): Promise<void> {
  while (mtime(lock) === since) {
    await sleep(1);
  }
}

function mtime(lock: string): bigint {
  return statSync(lock, { bigint: true }).mtimeNs;
}

test("a save that waits while its agent's folder is replaced takes the new folder's lock", async () => {
  const root = newFolder();
  const [old, next] = [await held(root, "a"), await held(root, "next")];
  const [before, nextBefore] = [mtime(old.lock), mtime(next.lock)];
  const saved = new MemoryAdapter({ root, agent: "a" }).save({ n: 1 }, "s");
  await touched(old.lock, before);
  renameSync(join(root, "agents", "a"), join(root, "agents", "old"));
  renameSync(join(root, "agents", "next"), join(root, "agents", "a"));
  old.holder.stdin?.end("\n");
  await Promise.race([saved, touched(old.lock, nextBefore)]);
  const log = join(sessionsOf(root, "a"), "s.ndjson");
  assert.equal(statSync(log).size, 0);
  next.holder.stdin?.end("\n");
  await saved;
  assert.match(readFileSync(log, "utf8"), /"n":1/);
  assert.equal(statSync(join(sessionsOf(root, "old"), "s.ndjson")).size, 0);
});

test("a save that waits while its agent's folder is moved away fails and writes nothing", async () => {
  const root = newFolder();
  const { holder, lock } = await held(root, "a");
  const before = mtime(lock);
  const saved = assert.rejects(new MemoryAdapter({ root, agent: "a" }).save({ n: 1 }, "s"), { name: StoreError.name, message: /try again/ });
  await touched(lock, before);
  renameSync(join(root, "agents", "a"), join(root, "agents", "old"));
  holder.stdin?.end("\n");
  await saved;
  assert.equal(existsSync(sessionsOf(root, "a")), false);
  assert.equal(statSync(join(sessionsOf(root, "old"), "s.ndjson")).size, 0);
});

test("a save that waits while its log is renamed fails and makes no second file", async () => {
  const root = newFolder();
  const { holder, lock } = await held(root, "a", "a:b");
  const before = mtime(lock);
  const memory = new MemoryAdapter({ root, agent: "a" });
  const saved = assert.rejects(memory.save({ n: 1 }, "a:b"), { name: StoreError.name, message: /was renamed.*try again/ });
  await touched(lock, before);
  const folder = sessionsOf(root, "a");
  renameSync(join(folder, "a:b.ndjson"), join(folder, "a%3Ab.ndjson"));
  holder.stdin?.end("\n");
  await saved;
  assert.equal(existsSync(join(folder, "a:b.ndjson")), false);
  await memory.save({ n: 2 }, "a:b");
  assert.match(readFileSync(join(folder, "a%3Ab.ndjson"), "utf8"), /"n":2/);
});

test("a lock on something that cannot be locked is an error and no lock", async () => {
  const folder = newFolder();
  mkdirSync(join(folder, "x"));
  const flock = await loadFlock();
  assert.throws(() => flock.tryLock(9999), /refuses a lock/);
});
