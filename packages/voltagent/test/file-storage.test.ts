/** The storage on files: the same folder in Python, several processes at once, and bytes that are gone. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Agent, Memory } from "@voltagent/core";
import type { UIMessage } from "ai";

import { KeepstoneFileStorage, LockTimeoutError, StoreError } from "../src/index.js";
import { model, says, stored, turn } from "./agents.js";
import { firstLine, newFolder, node, output, python, runPython, sessionsOf } from "./places.js";

const logger = { info: (): void => undefined };
const storageIn = (root: string, options = {}): KeepstoneFileStorage => new KeepstoneFileStorage({ root, agent: "coder", logger, ...options });
const message = (id: string, text: string, role: UIMessage["role"] = "user"): UIMessage => ({ id, role, parts: [{ type: "text", text }] });
const logOf = (root: string, session: string): string => join(sessionsOf(root, "coder"), `${session}.ndjson`);
const filesOf = (root: string): string => join(root, "agents", "coder", "files");

const LISTED = `
import json, sys, keepstone
with keepstone.open(sys.argv[1], embedder="none") as home:
    agent = home.agent("coder")
    session = agent.session(sys.argv[2])
    hits = [hit.entry.id for hit in agent.recall(sys.argv[3])]
    found = [[entry.id, entry.type, entry.text] for entry in session.entries()]
    print(json.dumps({"entries": found, "hits": hits, "files": agent.files.list(), "damage": [str(finding) for finding in home.doctor() if finding.level != "ok"]}))
`;

async function inPython(root: string, session: string, query: string): Promise<{ entries: string[][]; hits: string[]; files: string[]; damage: string[] }> {
  return JSON.parse(await runPython(LISTED, root, session, query));
}

test("an agent's turns are entries that Python opens and recalls", async () => {
  const root = newFolder();
  const storage = storageIn(root);
  const agent = new Agent({ name: "coder", instructions: "Help.", model: model(says("We sail at six.")).model, memory: new Memory({ storage }) });
  await agent.generateText("When do we sail from Calais?", turn("c/1"));
  assert.deepEqual(await stored(storage, "c/1", 2), ["user: When do we sail from Calais?", "assistant: We sail at six."]);
  const { entries, hits, files, damage } = await inPython(root, "c/1", "Calais");
  assert.deepEqual(entries.map(([, type, text]) => [type, text]), [["message", "user: When do we sail from Calais?"], ["message", "assistant: We sail at six."]]);
  assert.deepEqual([hits[0], damage], [entries[0]?.[0], []]);
  assert.deepEqual(files, ["voltagent/conversations/c%2F1.json", "voltagent/steps/c%2F1.ndjson"]);
});

test("what Python writes comes back as messages, at once", async () => {
  const root = newFolder();
  const storage = storageIn(root);
  await storage.addMessage(message("a", "from Node"), "u1", "c");
  const program = `
import sys, keepstone
with keepstone.open(sys.argv[1], embedder="none") as home:
    home.agent("coder").session("c").add("message", {"role": "assistant", "content": "from Python"}, id="b")
    home.agent("coder").files.write("voltagent/working-memory/users/u1.md", "is called Ada")
`;
  await runPython(program, root);
  assert.deepEqual((await storage.getMessages("u1", "c")).map(({ id, parts }) => [id, parts[0]]), [
    ["a", { type: "text", text: "from Node" }], ["b", { type: "text", text: "from Python" }],
  ]);
  assert.equal(await storage.getWorkingMemory({ userId: "u1", scope: "user" }), "is called Ada");
});

const WRITER = `
import sys, keepstone
with keepstone.open(sys.argv[1], embedder="none") as home:
    agent = home.agent("coder")
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(100):
        agent.session("c").add("message", {"role": "user", "content": f"python {number}"}, id=f"p{number}")
        agent.files.append("voltagent/steps/c.ndjson", '{"id":"p%d","type":"text","userId":"u1","stepIndex":%d}\\n' % (number, number))
`;

test("a Node and a Python process that write one conversation at once lose nothing", async () => {
  const root = newFolder();
  const writers = [node("storage-writer.js", root), python(["-c", WRITER, root])];
  await Promise.all(writers.map(firstLine));
  writers.forEach((writer) => writer.stdin?.end("go\n"));
  await Promise.all(writers.map((writer) => once(writer, "close")));
  const storage = storageIn(root);
  const ids = (await storage.getMessages("u1", "c")).map(({ id }) => id);
  for (const kind of ["n", "p"]) {
    const expected = Array.from({ length: 100 }, (_, at) => `${kind}${at}`);
    assert.deepEqual(ids.filter((id) => id.startsWith(kind)), expected);
    const steps = (await storage.getConversationSteps("u1", "c")).map(({ id }) => id).filter((id) => id.startsWith(kind));
    assert.deepEqual(steps, expected);
  }
  const firsts = ["n0", "p0"].map((id) => ids.indexOf(id));
  const lasts = ["n99", "p99"].map((id) => ids.indexOf(id));
  assert.ok(Math.max(...firsts) < Math.min(...lasts), "they did not overlap");
  const { entries, damage } = await inPython(root, "c", "python");
  assert.deepEqual([entries.length, damage], [200, []]);
});

test("of many processes that begin one conversation, one succeeds", async () => {
  const root = newFolder();
  const printed = await Promise.all([1, 2, 3, 4].map(async (number) => output(node("storage-writer.js", root, `begin-${number}`))));
  const results = printed.map((text) => text.trim().split("\n").at(-1));
  assert.deepEqual(results.sort(), ["CONVERSATION_ALREADY_EXISTS", "CONVERSATION_ALREADY_EXISTS", "CONVERSATION_ALREADY_EXISTS", "made"]);
});

test("a killed process leaves every acknowledged message and a log without damage", async () => {
  const root = newFolder();
  const writer = node("storage-writer.js", root, "endless");
  const lines: string[] = [];
  writer.stdout?.on("data", (part: Buffer) => lines.push(...part.toString().split("\n").filter(Boolean)));
  while (lines.length < 20) {
    await once(writer.stdout as NodeJS.ReadableStream, "data");
  }
  writer.kill("SIGKILL");
  await once(writer, "close");
  const { entries, damage } = await inPython(root, "c", "x");
  const ids = new Set(entries.map(([id]) => id));
  assert.deepEqual(lines.filter((id) => !ids.has(id)), []);
  assert.deepEqual(damage, []);
});

test("clearing one user removes every byte of theirs from log, archive and index, and keeps the others'", async () => {
  const root = newFolder();
  const storage = storageIn(root);
  await storage.addMessages([message("mine1", "secret-word one"), message("mine2", "secret-word two")], "u1", "c");
  await storage.addMessage(message("theirs", "kept"), "u2", "c");
  const compacting = `
import sys, keepstone
with keepstone.open(sys.argv[1], embedder="none") as home:
    session = home.agent("coder").session("c")
    session.update("mine1", text="secret-word changed")
    session.compact()
    print({"mine1", "mine2"} <= {hit.entry.id for hit in home.agent("coder").recall("secret-word")})
`;
  assert.equal(await runPython(compacting, root), "True\n");
  const batch = ["mine3", "other"].map((id, at) => ({ id, ts: "2026-01-01T00:00:00Z", type: "message", data: { role: "user", parts: [], user: `u${at + 1}`, n: 12345678901234567890n }, batch: [at + 1, 2] }));
  const lines = batch.map((line) => `${JSON.stringify(line, (_, value) => (typeof value === "bigint" ? "BIG" : value) as unknown).replace('"BIG"', "12345678901234567890")}\n`);
  const damaged = '{"id":"mine2","ts":"2026-01-01T00:00:00Z","type":"message","data":{"secret-word\n';
  writeFileSync(logOf(root, "c"), readFileSync(logOf(root, "c"), "utf8") + lines.join("") + damaged + "not json\n");
  await storage.clearMessages("u1", "c");
  const { entries, hits } = await inPython(root, "c", "secret-word");
  assert.deepEqual([entries.map(([id]) => id), hits], [["other", "theirs"], []]);
  const log = readFileSync(logOf(root, "c"), "utf8");
  assert.match(log, /12345678901234567890/);
  assert.match(log, /^not json$/m);
  assert.doesNotMatch(log, /"batch"|mine|secret-word/);
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const holding = files.filter((file) => readFileSync(join(file.parentPath, file.name)).includes("secret-word"));
  assert.deepEqual(holding.map(({ name }) => name), []);
});

test("a conversation with one user's messages only is emptied to zero bytes", async () => {
  const root = newFolder();
  const told: unknown[] = [];
  const storage = storageIn(root, { logger: { info: (_: string, context: object) => told.push(context) } });
  await storage.addMessage(message("a", "gone"), "u1", "c");
  const size = statSync(logOf(root, "c")).size;
  await storage.clearMessages("u1", "c");
  assert.equal(statSync(logOf(root, "c")).size, 0);
  assert.deepEqual(told, [{ event: "memory.clear", agent: "coder", session: "c", bytes: size }]);
});

const HOLD = `
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
`;

test("a locked session and locked files give an error in time, reads go on, and nothing is written", async () => {
  const root = newFolder();
  const storage = storageIn(root, { retryMs: 0 });
  await storage.addMessage(message("a", "here"), "u1", "c");
  await storage.setWorkingMemory({ userId: "u1", scope: "user", content: "old" });
  const locks = [logOf(root, "c").replace(".ndjson", ".lock"), join(filesOf(root), ".keepstone.lock")];
  const holders = locks.map((path) => python(["-c", HOLD, path]));
  await Promise.all(holders.map(firstLine));
  await Promise.all([
    assert.rejects(storage.addMessage(message("b", "late"), "u1", "c"), LockTimeoutError),
    assert.rejects(storage.setWorkingMemory({ userId: "u1", scope: "user", content: "new" }), LockTimeoutError),
    assert.rejects(storage.createConversation({ id: "c", userId: "u1", resourceId: "r", title: "", metadata: {} }), LockTimeoutError),
  ]);
  assert.deepEqual((await storage.getMessages("u1", "c")).map(({ id }) => id), ["a"]);
  assert.equal(await storage.getWorkingMemory({ userId: "u1", scope: "user" }), "old");
  assert.equal(await storage.getConversation("c"), null);
  holders.forEach((holder) => holder.stdin?.end("\n"));
  await Promise.all(holders.map((holder) => once(holder, "exit")));
});

test("a write goes on once a lock that was held for long is free", async () => {
  const root = newFolder();
  const storage = storageIn(root);
  await storage.addMessage(message("a", "here"), "u1", "c");
  const holder = python(["-c", HOLD, logOf(root, "c").replace(".ndjson", ".lock")]);
  await firstLine(holder);
  const adding = storage.addMessage(message("b", "late"), "u1", "c");
  const isEarly = await Promise.race([adding.then(() => true), new Promise((resolve) => setTimeout(() => resolve(false), 5500))]);
  holder.stdin?.end("\n");
  await adding;
  assert.deepEqual([isEarly, (await storage.getMessages("u1", "c")).map(({ id }) => id)], [false, ["a", "b"]]);
});

test("no link leads out of the agent's files, and no id out of its folders", async () => {
  const root = newFolder();
  const outside = newFolder();
  const storage = storageIn(root);
  mkdirSync(filesOf(root), { recursive: true });
  symlinkSync(outside, join(filesOf(root), "voltagent"));
  await assert.rejects(storage.setWorkingMemory({ userId: "u1", scope: "user", content: "x" }), { code: "corrupt_log" });
  const other = storageIn(newFolder());
  await other.saveConversationSteps([{ id: "s", conversationId: "../../x", userId: "u1", agentId: "a", operationId: "o", stepIndex: 0, type: "text", role: "assistant", createdAt: "" }]);
  assert.equal((await other.getConversationSteps("u1", "../../x")).length, 1);
  assert.deepEqual(readdirSync(outside), []);
});

test("another agent of the same home has a memory of its own", async () => {
  const root = newFolder();
  await storageIn(root).addMessage(message("a", "mine"), "u1", "c");
  const other = new KeepstoneFileStorage({ root, agent: "writer", logger });
  assert.deepEqual(await other.getMessages("u1", "c"), []);
  assert.throws(() => new KeepstoneFileStorage({ root, agent: "../coder" }), { code: "invalid_agent" });
});

test("long conversations are read page by page, and what comes back can be changed freely", async () => {
  const storage = storageIn(newFolder());
  await storage.addMessage(message("s", "rules", "system"), "u1", "c");
  await storage.addMessages(Array.from({ length: 2500 }, (_, at) => message(`m${at}`, `${at}`)), "u2", "c");
  const [found] = await storage.getMessages("u1", "c", { limit: 2 });
  assert.equal(found?.id, "s");
  (found as UIMessage).parts.length = 0;
  assert.equal((await storage.getMessages("u1", "c", { limit: 2 }))[0]?.parts.length, 1);
});

test("a file that is not text is named, and lists leave it out", async () => {
  const root = newFolder();
  const told: unknown[] = [];
  const storage = storageIn(root, { logger: { info: (_: string, context: object) => told.push(context) } });
  await storage.createConversation({ id: "c", userId: "u1", resourceId: "r", title: "", metadata: {} });
  const path = join(filesOf(root), "voltagent", "conversations", "c.json");
  writeFileSync(path, Buffer.from([0xff]));
  await assert.rejects(storage.getConversation("c"), (error) => error instanceof StoreError && /not UTF-8/.test(error.message));
  assert.deepEqual(await storage.queryConversations({}), []);
  assert.deepEqual(told, [{ event: "memory.damaged", agent: "coder", file: "voltagent/conversations/c.json" }]);
  assert.equal(existsSync(join(filesOf(root), ".keepstone.tmp")), false);
});
