/** The Sessions page, open in a browser, while VoltAgent and the file adapter write and delete. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { MemoryAdapter } from "../src/index.js";
import { agentOf, model, says, stored, turn } from "./agents.js";
import { newFolder, python } from "./places.js";
import { Server } from "./server.js";

const BROWSER = `
import json, sys
from playwright.sync_api import expect, sync_playwright
link, page_url, chromium = sys.argv[1:]
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--disable-quic"])
    page = browser.new_page()
    page.goto(link)
    page.goto(page_url)
    for line in sys.stdin:
        expect(page.locator("tbody .col-id .name")).to_have_text(json.loads(line), timeout=20_000)
        print("shown", flush=True)`;

function chromium(): string | undefined {
  const names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];
  const found = names.map((name) => `command -v ${name}`).join(" || ");
  try {
    return execFileSync("sh", ["-c", found], { encoding: "utf8" }).trim();
  } catch {
    return undefined; // The shell found none of them.
  }
}

const browser = chromium();
const skip = browser === undefined && "no Chromium is installed";

test("a conversation is on the open Sessions page when it begins and off it when it is deleted", { skip }, async () => {
  const server = await Server.start();
  const storage = await server.storage("shown");
  const files = new MemoryAdapter({ root: server.home, agent: "shown", logger: { info: () => undefined } });
  await files.save({ role: "user", content: "first" }, "kept");
  const child = python(["-c", BROWSER, await server.signIn(), `${server.url}/a/shown/sessions`, String(browser)]);
  newFolder(async () => void child.kill());
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  const shows = async (...sessions: string[]): Promise<void> => {
    child.stdin?.write(`${JSON.stringify(sessions)}\n`);
    assert.equal((await lines.next()).value, "shown");
  };
  await shows("kept");
  await agentOf(storage, model(says("ok")).model).generateText("Hi", turn("talk"));
  await stored(storage, "talk", 2);
  await shows("talk", "kept");
  await files.save({ role: "user", content: "later" }, "log");
  await shows("log", "talk", "kept");
  await files.delete("log");
  await shows("talk", "kept");
  await storage.deleteConversation("talk");
  await shows("kept");
});
