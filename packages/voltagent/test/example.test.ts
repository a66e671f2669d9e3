/** The example runs with its one command. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

import { newFolder, output, ROOT } from "./places.js";

test("the example's agent remembers, calls its tool, and leaves its messages in the home", async () => {
  const env = { ...process.env, KEEPSTONE_HOME: newFolder() };
  const example = spawn(process.execPath, [join(ROOT, "examples", "voltagent", "start.mjs")], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const printed = await output(example);
  assert.match(printed, /Noted: Calais\./);
  assert.match(printed, /High water in Calais is at 06:40\./);
  assert.match(printed, /\d messages are in the session "departures"/);
});
