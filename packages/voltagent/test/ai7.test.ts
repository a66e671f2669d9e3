/** The tests of `ai.test.ts` once more, with the next major version of the AI SDK in the place of that one. */
import assert from "node:assert/strict";
import { register } from "node:module";
import { test } from "node:test";

const hook = 'export const resolve = (name, context, next) => next(name.replace(/^ai(?=$|[/])/, "ai7"), context);';
register(`data:text/javascript,${encodeURIComponent(hook)}`);
await import("./ai.test.js");

test("what is imported as the SDK is its next version", async () => {
  assert.ok("MockLanguageModelV4" in (await import("ai/test")));
});
