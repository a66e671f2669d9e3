/** Speaking to a server that is away, slow, somewhere else, or something else. */
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";

import type { ConversationStepRecord } from "@voltagent/core";
import type { UIMessage } from "ai";

import { KeepstoneStorage } from "../src/index.js";
import { Server } from "./server.js";

const server = await Server.start();

const hello: UIMessage = { id: "m", role: "user", parts: [{ type: "text", text: "Hello" }] };
const conversation = { id: "c", userId: "u", resourceId: "a", title: "T", metadata: {} };

/** Start something that is no keepstone serve, and return its address. */
async function stranger(answer: RequestListener): Promise<string> {
  const other = createServer(answer);
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  after(() => other.close());
  return `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
}

test("the address is taken as the server prints it", async () => {
  for (const tail of ["", "/", "/v1", "/v1/"]) {
    const storage = await server.storage("address", { url: server.url + tail });
    await storage.addMessage(hello, "u", "c");
    assert.equal((await storage.getMessages("u", "c")).length, 1);
  }
});

test("an address or a token that cannot be used is refused at once", () => {
  for (const url of ["localhost:8765", "nonsense", "file:///etc/passwd", "http://"]) {
    assert.throws(() => new KeepstoneStorage({ agent: "a", url }), TypeError);
  }
  assert.throws(() => new KeepstoneStorage({ agent: "a", token: "two\nlines" }), TypeError);
});

test("what is not keepstone serve is not taken for an empty memory", async () => {
  const answers: RequestListener[] = [
    (_, response) => response.writeHead(404).end("<h1>Not found</h1>"),
    (_, response) => response.writeHead(404).end('{"error": "no such page"}'),
    (_, response) => response.end("<h1>Welcome</h1>"),
  ];
  for (const answer of answers) {
    const storage = new KeepstoneStorage({ agent: "a", url: await stranger(answer), retryMs: 0 });
    const refusal = { code: "store", message: /is not keepstone serve/ };
    await assert.rejects(storage.getMessages("u", "c"), refusal);
    await assert.rejects(storage.getConversation("c"), refusal);
    await assert.rejects(storage.addMessage(hello, "u", "c"), refusal);
  }
});

test("a server that does not answer is asked again, and then named with the remedy", async () => {
  let requests = 0;
  const url = await stranger(() => {
    requests += 1; // And never an answer.
  });
  const storage = new KeepstoneStorage({ agent: "a", url, timeoutMs: 50, retryMs: 500 });
  await assert.rejects(storage.addMessage(hello, "u", "c"), { code: "store", message: /is keepstone serve running there\?/ });
  assert.ok(requests > 1);
});

test("a server that is busy is asked again, and quoted in the end", async () => {
  const busy = { code: "lock_timeout", detail: "held by another writer for over 5 s" };
  const url = await stranger((_, response) => response.writeHead(503).end(JSON.stringify(busy)));
  const storage = new KeepstoneStorage({ agent: "a", url, retryMs: 200 });
  await assert.rejects(storage.addMessage(hello, "u", "c"), { code: "store", message: /held by another writer/ });
});

/** A fetch whose every first answer gets lost on its way back: the server has done what it was asked. */
function forgetful(): typeof fetch {
  const asked = new Set<string>();
  return async (input, init) => {
    const answer = await fetch(input, init);
    const request = JSON.stringify([input, init?.method, init?.body]);
    if (asked.has(request)) {
      return answer;
    }
    asked.add(request);
    throw new TypeError("the connection was cut");
  };
}

function step(id: string): ConversationStepRecord {
  const createdAt = new Date(0).toISOString();
  return { id, conversationId: "c", userId: "u", agentId: "a", operationId: "o", stepIndex: 0, type: "text", role: "assistant", createdAt };
}

test("every call whose answer got lost is carried out once", async () => {
  const storage = await server.storage("lost", { fetch: forgetful() });
  await storage.createConversation(conversation);
  await storage.addMessages([hello, { ...hello, id: "n" }], "u", "c");
  await storage.saveConversationSteps([step("s")]);
  await storage.setWorkingMemory({ scope: "conversation", conversationId: "c", content: "known" });
  assert.equal((await storage.updateConversation("c", { title: "New" })).title, "New");
  await storage.deleteMessages(["n"], "u", "c");
  assert.deepEqual((await storage.getMessages("u", "c")).map(({ id }) => id), ["m"]);
  assert.equal((await storage.getConversationSteps("u", "c")).length, 1);
  assert.equal(await storage.getWorkingMemory({ scope: "conversation", conversationId: "c" }), "known");
  await assert.rejects(storage.createConversation(conversation), { code: "CONVERSATION_ALREADY_EXISTS" });
  await storage.clearMessages("u", "c");
  assert.deepEqual(await storage.getMessages("u", "c"), []);
  await storage.deleteConversation("c");
  assert.equal(await storage.getConversation("c"), null);
});

test("a deletion whose answers got lost is no missing conversation", async () => {
  const storage = await server.storage("lost-too", { fetch: forgetful() });
  await storage.createConversation(conversation);
  await storage.deleteConversation("c");
  await assert.rejects(storage.deleteConversation("c"), { code: "CONVERSATION_NOT_FOUND" });
});

test("a call that is sent again has the key of its first try, and every call has its own", async () => {
  const sent: [method: string, key: string | null][] = [];
  const lossy = forgetful();
  const keyed: typeof fetch = (input, init) => {
    sent.push([String(init?.method), new Headers(init?.headers).get("idempotency-key")]);
    return lossy(input, init);
  };
  const storage = await server.storage("keys", { fetch: keyed });
  await storage.addMessage(hello, "u", "c");
  await storage.setWorkingMemory({ scope: "user", userId: "u", content: "known" });
  await storage.getMessages("u", "c");
  const keys = sent.flatMap(([, key]) => key ?? []);
  assert.deepEqual(sent.map(([method]) => method), ["PUT", "PUT", "PUT", "PUT", "GET", "GET"]);
  assert.deepEqual([keys.length, keys[0], keys[2], new Set(keys).size], [4, keys[1], keys[3], 2]);
});

/** A fetch that does something before, or after, the first request of a kind; after it, the answer is lost. */
function interrupted(method: string, end: string, when: "before" | "after", act: () => Promise<unknown>): typeof fetch {
  let isDone = false;
  return async (input, init) => {
    const isIt = !isDone && init?.method === method && new URL(String(input)).pathname.endsWith(end);
    isDone ||= isIt;
    if (isIt && when === "before") {
      await act();
    }
    const answer = await fetch(input, init);
    if (isIt && when === "after") {
      await act();
      throw new TypeError("the connection was cut");
    }
    return answer;
  };
}

const theirs: UIMessage = { id: "n", role: "user", parts: [{ type: "text", text: "said since" }] };

test("a message that is stored while a conversation is being cleared stays", async () => {
  const other = await server.storage("between");
  for (const userId of ["one", "two"]) {
    const fetch = interrupted("POST", "/clear", "before", () => other.addMessage(theirs, userId, userId));
    const storage = await server.storage("between", { fetch });
    await storage.addMessage(hello, "one", userId);
    await storage.clearMessages("one", userId);
    assert.deepEqual((await other.getMessages(userId, userId)).map(({ id }) => id), ["n"]);
  }
});

test("a step that is stored while another user's are being cleared stays", async () => {
  const other = await server.storage("stepping");
  const fetch = interrupted("DELETE", "/c.ndjson", "before", () => other.saveConversationSteps([{ ...step("n"), userId: "two" }]));
  const storage = await server.storage("stepping", { fetch });
  await storage.saveConversationSteps([step("s")]);
  await storage.clearMessages("u", "c");
  assert.deepEqual(await other.getConversationSteps("u", "c"), []);
  assert.deepEqual((await other.getConversationSteps("two", "c")).map(({ id }) => id), ["n"]);
});

test("a clear whose answer got lost does not remove what was stored since", async () => {
  const other = await server.storage("cleared");
  const fetch = interrupted("POST", "/clear", "after", () => other.addMessage(theirs, "u", "c"));
  const storage = await server.storage("cleared", { fetch });
  await storage.addMessage(hello, "u", "c");
  await storage.clearMessages("u", "c");
  assert.deepEqual((await other.getMessages("u", "c")).map(({ id }) => id), ["n"]);
});

test("a deletion whose answer got lost does not remove the conversation that began since", async () => {
  const other = await server.storage("removed");
  const fetch = interrupted("DELETE", "/sessions/c", "after", () => other.addMessage(theirs, "u", "c"));
  const storage = await server.storage("removed", { fetch });
  await storage.addMessage(hello, "u", "c");
  await storage.deleteConversation("c");
  assert.deepEqual((await other.getMessages("u", "c")).map(({ id }) => id), ["n"]);
});

test("a deletion that the server refused or never got is tried on what was stored since", async () => {
  const refusals: [string, () => Response][] = [
    ["lock_timeout", () => new Response(JSON.stringify({ code: "lock_timeout", detail: "held" }), { status: 503 })],
    ["busy", () => new Response(JSON.stringify({ code: "busy", detail: "too many" }), { status: 503 })],
    ["away", () => { throw new TypeError("fetch failed", { cause: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }) }); }],
  ];
  for (const [agent, refusal] of refusals) {
    const other = await server.storage(agent);
    let isRefused = false;
    const refusing: typeof fetch = async (input, init) => {
      if (isRefused || init?.method !== "DELETE") {
        return fetch(input, init);
      }
      isRefused = true;
      await other.addMessage(theirs, "u", "c");
      return refusal();
    };
    const storage = await server.storage(agent, { fetch: refusing });
    await storage.createConversation(conversation);
    await storage.addMessage(hello, "u", "c");
    await storage.deleteConversation("c");
    assert.deepEqual(await other.getMessages("u", "c"), [], agent);
  }
});

test("a message that is stored while its conversation is being deleted goes with it", async () => {
  const other = await server.storage("racing");
  const fetch = interrupted("DELETE", "/sessions/c", "before", () => other.addMessage(theirs, "u", "c"));
  const storage = await server.storage("racing", { fetch });
  await storage.addMessage(hello, "u", "c");
  await storage.deleteConversation("c");
  assert.deepEqual(await other.getMessages("u", "c"), []);
});

test("a workflow's state whose answer got lost does not replace a later one", async () => {
  const other = await server.storage("flows");
  const fetch = interrupted("PUT", ".json", "after", () => other.updateWorkflowState("w", { status: "completed" }));
  const storage = await server.storage("flows", { fetch });
  const at = new Date();
  await storage.setWorkflowState("w", { id: "w", workflowId: "w", workflowName: "W", status: "running", createdAt: at, updatedAt: at });
  assert.equal((await other.getWorkflowState("w"))?.status, "completed");
});

test("a message whose answer got lost does not come back once it was deleted", async () => {
  const other = await server.storage("revived");
  const fetch = interrupted("PUT", "/entries", "after", () => other.deleteMessages(["m"], "u", "c"));
  const storage = await server.storage("revived", { fetch });
  await storage.addMessage(hello, "u", "c");
  assert.deepEqual(await other.getMessages("u", "c"), []);
});

test("a proxy that makes ETags weak keeps no change from being stored", async () => {
  let requests = 0;
  const weakening: typeof fetch = async (input, init) => {
    requests += 1;
    const answer = await fetch(input, init);
    const headers = new Headers(answer.headers);
    headers.set("etag", `W/${headers.get("etag")}`);
    return new Response(await answer.text(), { status: answer.status, headers });
  };
  const storage = await server.storage("weak", { fetch: weakening });
  await storage.createConversation(conversation);
  assert.equal((await storage.updateConversation("c", { title: "New" })).title, "New");
  await storage.addMessage(hello, "u", "c");
  await storage.clearMessages("u", "c");
  assert.deepEqual(await storage.getMessages("u", "c"), []);
  assert.ok(requests < 20, String(requests));
});

test("a record that others change each time is given up after some tries", async () => {
  let tries = 0;
  const busy: typeof fetch = async (input, init) => {
    if (!new Headers(init?.headers).has("if-match")) {
      return fetch(input, init);
    }
    tries += 1;
    return new Response(JSON.stringify({ code: "file_changed", detail: "changed" }), { status: 412 });
  };
  const storage = await server.storage("contested", { fetch: busy });
  await storage.createConversation(conversation);
  await assert.rejects(storage.updateConversation("c", { title: "New" }), { code: "store", message: /changed by others 20 times/ });
  assert.equal(tries, 20);
});

test("a turn does not wait for a server that a proxy does not reach", async () => {
  let requests = 0;
  const url = await stranger((_, response) => {
    requests += 1;
    response.writeHead(502).end("<h1>Bad gateway</h1>");
  });
  const storage = new KeepstoneStorage({ agent: "a", url });
  await assert.rejects(storage.getMessages("u", "c"), { code: "store" });
  requests = 0;
  await assert.rejects(storage.getConversation("c"), { code: "store" });
  await assert.rejects(storage.addMessage(hello, "u", "c"), { code: "store" });
  assert.ok(requests < 20, String(requests)); // It would be 60 and more in two times 30 seconds.
});

test("twenty changes of one record at once are all stored", async () => {
  const storage = await server.storage("crowd");
  await storage.setWorkflowState("w", { id: "w", workflowId: "w", workflowName: "W", status: "running", createdAt: new Date(), updatedAt: new Date() });
  await Promise.all(Array.from({ length: 20 }, (_, at) => storage.updateWorkflowState("w", { [`key${at}`]: at })));
  const state = (await storage.getWorkflowState("w")) as unknown as Record<string, unknown>;
  assert.deepEqual(Array.from({ length: 20 }, (_, at) => state[`key${at}`]), Array.from({ length: 20 }, (_, at) => at));
});
