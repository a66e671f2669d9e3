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
