/** A message's line says who said it. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { apply } from "../src/line.js";
import { withOrigin } from "../src/origin.js";

const message = (data: object) => withOrigin({ id: "a", type: "message", data: { ...data } }).origin;

test("a message has the least origin of its role and its parts", () => {
  assert.deepEqual(message({ role: "user", parts: [{ type: "text", text: "Hi" }] }), { by: "user" });
  assert.deepEqual(message({ role: "assistant", parts: [] }), { by: "model" });
  assert.deepEqual(message({ role: "assistant", parts: [{ type: "tool-search", output: "42" }] }), { by: "tool" });
  assert.equal(message({ role: "system", parts: [] }), undefined);
});

test("a put without an origin is a program's, and a patch keeps the origin", () => {
  const entry = { id: "a", ts: "2026-01-11T14:31:00Z", type: "note", text: "x", origin: { by: "tool" } };
  assert.equal(apply(entry, { id: "a", text: "y" }).origin, undefined);
  assert.deepEqual(apply(entry, { id: "a", pinned: true }).origin, { by: "tool" });
});
