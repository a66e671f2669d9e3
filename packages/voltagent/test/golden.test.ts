/** The golden fixture that the Python side (tests/packages) writes and reads as well. */
import assert from "node:assert/strict";
import { appendFileSync, cpSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { batchOf } from "../src/batch.js";
import { MemoryAdapter } from "../src/files.js";
import { checkAgent, sessionFile, sessionFor, sessionOf } from "../src/layout.js";
import { isPut, parse } from "../src/line.js";
import { formatTime, instant, readTime } from "../src/time.js";
import { GOLDEN, newFolder, sessionsOf } from "./places.js";

interface Step {
  op: "save" | "batch" | "delete" | "clear" | "remove" | "append";
  session: string;
  id: string;
  event: object;
  events: object[];
  text: string;
}

const script = JSON.parse(readFileSync(join(GOLDEN, "operations.json"), "utf8")) as {
  clock: string;
  operations: Step[];
};
const events = JSON.parse(readFileSync(join(GOLDEN, "events.json"), "utf8")) as Record<string, object[]>;
const quiet = { info: (): void => undefined };

async function carryOut(root: string): Promise<void> {
  const memory = new MemoryAdapter({ root, agent: "golden", clock: () => new Date(script.clock), logger: quiet });
  const does: Record<Step["op"], (step: Step) => unknown> = {
    save: (step) => memory.save(step.event, step.session),
    batch: (step) => memory.saveAll(step.events, step.session),
    delete: (step) => memory.deleteEvent(step.session, step.id),
    clear: (step) => memory.clear(step.session),
    remove: (step) => memory.delete(step.session),
    append: (step) => appendFileSync(join(sessionsOf(root, "golden"), sessionFile(step.session)), step.text),
  };
  for (const step of script.operations) {
    await does[step.op](step);
  }
}

function files(root: string): Record<string, string> {
  const folder = sessionsOf(root, "golden");
  const names = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile()).map(({ name }) => name);
  // The journal of erasures has random marks.
  return Object.fromEntries(names.filter((name) => !name.startsWith(".purged.")).sort().map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

test("the same operations write the fixture's bytes", async () => {
  const root = newFolder();
  await carryOut(root);
  assert.deepEqual(files(root), files(join(GOLDEN, "home")));
});

test("the fixture reads back as its events", async () => {
  const root = newFolder();
  cpSync(join(GOLDEN, "home"), root, { recursive: true });
  const memory = new MemoryAdapter({ root, agent: "golden" });
  for (const [session, expected] of Object.entries(events)) {
    assert.deepEqual(await memory.load(session), expected);
  }
});

test("the fixture lists the sessions that have events", async () => {
  const root = newFolder();
  cpSync(join(GOLDEN, "home"), root, { recursive: true });
  const found = await new MemoryAdapter({ root, agent: "golden" }).list();
  assert.deepEqual(found.map(({ id }) => id).sort(), Object.keys(events).sort());
});

test("every file name of the fixture stands for one session, both ways", () => {
  const logs = Object.keys(files(join(GOLDEN, "home"))).filter((name) => name.endsWith(".ndjson"));
  assert.deepEqual(logs.map((name) => sessionFile(sessionOf(name))), logs);
});

const names = JSON.parse(readFileSync(join(GOLDEN, "names.json"), "utf8")) as {
  sessions: [string, string | null][];
  files: [string, string | null][];
  agents: [string, boolean][];
  digests: [string, string][];
};

test("every session has the file name of the table, or is refused", () => {
  for (const [session, name] of names.sessions) {
    if (name === null) {
      assert.throws(() => sessionFile(session), { code: "invalid_session" }, session);
    } else {
      assert.deepEqual([sessionFile(session), sessionOf(name)], [name, session]);
    }
  }
});

test("every file name is read as the table says", () => {
  assert.deepEqual(names.files.map(([name]) => [name, sessionOf(name)]), names.files);
});

test("every slug is taken or refused as the table says", () => {
  for (const [agent, valid] of names.agents) {
    const check = (): string => checkAgent(agent);
    valid ? assert.equal(check(), agent) : assert.throws(check, { code: "invalid_agent" }, agent);
  }
});

test("what no file name can hold has the digest of the table in it", () => {
  const odd = names.digests.filter(([identity]) => identity.length > 200 || /^\.{0,2}$/.test(identity));
  assert.deepEqual(odd.map(([identity]) => [identity, sessionFor(identity)]), odd);
});

test("a new session has an id that sorts by time, as Python's have", async () => {
  let now = Date.parse(script.clock);
  const memory = new MemoryAdapter({ root: newFolder(), agent: "golden", clock: () => new Date((now += 1)) });
  const ids: string[] = [];
  for (let n = 0; n < 20; n += 1) {
    ids.push(await memory.newSession());
  }
  assert.ok(ids.every((id) => /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id)));
  assert.deepEqual(ids.toSorted(), ids);
});

function table<Row>(name: string): Row[] {
  return JSON.parse(readFileSync(join(GOLDEN, name), "utf8")) as Row[];
}

test("every odd line is read as the table says", () => {
  for (const [line, readable, batch] of table<[string, boolean, [number, number] | null]>("lines.json")) {
    const record = parse(Buffer.from(line));
    assert.deepEqual([record !== null, batchOf(record)], [readable, batch], line.slice(0, 100));
  }
});

test("every time is read as the table says", () => {
  for (const [text, moment, accepted] of table<[string, string | null, boolean]>("times.json")) {
    const [found, given] = [readTime(text), instant(text)];
    assert.deepEqual([found && formatTime(found), given], [moment, accepted ? found : null], text);
  }
});

test("a line with the reserved keys of the format page alone is a patch", () => {
  const page = readFileSync(join(GOLDEN, "../../../docs/formats/log.md"), "utf8");
  const row = page.split("\n").find((line) => line.startsWith("| reserved |")) ?? "";
  const keys = [...row.matchAll(/`([a-z_]+)`/g)].map(([, key]) => key);
  assert.ok(keys.includes("aliases") && keys.includes("modified"));
  assert.deepEqual(keys.filter((key) => isPut({ id: "a", [String(key)]: 1 })), []);
});
