/** The lock that this side takes is the one that Python's `filelock` takes, in both directions. */
import assert from "node:assert/strict";
import { closeSync, mkdirSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { LockTimeoutError } from "../src/errors.js";
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

test("a lock on something that cannot be locked is an error and no lock", async () => {
  const folder = newFolder();
  mkdirSync(join(folder, "x"));
  const flock = await loadFlock();
  assert.throws(() => flock.tryLock(9999), /refuses a lock/);
});
