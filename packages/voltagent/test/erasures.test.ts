/** What this side erases is erased on every device that Python syncs, and stays so. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { LocalHome } from "../src/local-home.js";
import { newFolder, runPython, sessionsOf } from "./places.js";

const SYNC = `
import sys, json, keepstone
from pathlib import Path
from keepstone.filesystem.layout import LAYOUTS
from keepstone.operations.syncing import sync
folder, homes = Path(sys.argv[1]), {}
for name in ("one", "two", "one", "two"):
    with keepstone.open(folder / name, embedder="none") as home:
        sync(home, LAYOUTS["default"], folder / "shared")
        homes[name] = sorted(f"{entry.session}/{entry.id}" for entry in home.agent("a").iter_entries())
print(json.dumps(homes))
`;

const ITEMS = ["a", "b"].map((id) => ({ id, type: "note", text: `secret ${id}` }));

/** Return a home whose entries another device has, and what brings both to one state and returns their entries. */
async function synced(): Promise<{ root: string; home: LocalHome; sync: () => Promise<Record<string, string[]>> }> {
  const folder = newFolder();
  const root = join(folder, "one");
  const home = new LocalHome({ root, agent: "a" });
  for (const session of ["s", "kept"]) {
    await home.send("PUT", `/sessions/${session}/entries`, { body: { items: ITEMS } });
  }
  const sync = async (): Promise<Record<string, string[]>> =>
    JSON.parse(await runPython(SYNC, folder)) as Record<string, string[]>;
  const all = ["kept/a", "kept/b", "s/a", "s/b"];
  assert.deepEqual(await sync(), { one: all, two: all });
  return { root, home, sync };
}

test("a purged entry does not come back by a sync", async () => {
  const { home, sync } = await synced();
  await home.send("POST", "/sessions/s/purge", { body: { ids: ["a", "none"] } });
  const left = ["kept/a", "kept/b", "s/b"];
  assert.deepEqual(await sync(), { one: left, two: left });
});

test("a cleared and a removed session do not come back by a sync", async () => {
  for (const [method, path] of [["POST", "/sessions/s/clear"], ["DELETE", "/sessions/s"]] as const) {
    const { root, home, sync } = await synced();
    await home.send(method, path);
    const left = ["kept/a", "kept/b"];
    assert.deepEqual(await sync(), { one: left, two: left });
    const other = sessionsOf(join(root, "..", "two"), "a");
    assert.equal(existsSync(join(other, "s.ndjson")), method === "POST");
  }
});

test("an entry added again after a purge lives on everywhere", async () => {
  const { home, sync } = await synced();
  await home.send("POST", "/sessions/s/purge", { body: { ids: ["a", "b"] } });
  await home.send("PUT", "/sessions/s/entries", { body: { items: ITEMS.slice(1) } });
  const left = ["kept/a", "kept/b", "s/b"];
  assert.deepEqual(await sync(), { one: left, two: left });
  await home.send("POST", "/sessions/s/purge", { body: { ids: ["b"] } });
  assert.deepEqual((await sync()).two, ["kept/a", "kept/b"]);
});

test("a purge that failed before it erased anything tells of nothing", async () => {
  const { root, home, sync } = await synced();
  const folder = sessionsOf(root, "a");
  await home.send("PUT", "/sessions/s/entries", { body: { items: ITEMS } });
  mkdirSync(join(folder, "s.ndjson.tmp"));
  await assert.rejects(home.send("POST", "/sessions/s/purge", { body: { ids: ["a"] } }));
  rmdirSync(join(folder, "s.ndjson.tmp"));
  assert.equal(readFileSync(join(folder, ".purged.ndjson"), "utf8"), "");
  assert.equal((await sync()).two?.length, 4);
});

test("a purged entry has the time of its purge in the journal", async () => {
  const root = newFolder();
  const home = new LocalHome({ root, agent: "a" });
  await home.send("PUT", "/sessions/s/entries", { body: { items: ITEMS } });
  const before = new Date().toISOString();
  await home.send("POST", "/sessions/s/purge", { body: { ids: ["a"] } });
  const line = JSON.parse(readFileSync(join(sessionsOf(root, "a"), ".purged.ndjson"), "utf8")) as { ts: string };
  assert.match(line.ts, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  assert.ok(before.slice(0, 23) <= line.ts && line.ts.slice(0, 23) <= new Date().toISOString().slice(0, 23));
});
