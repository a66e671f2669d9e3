/**
 * An agent with a tool, whose memory is keepstone's. It runs offline: the model is a mock.
 *
 * For a real model, install its provider (`npm install @ai-sdk/openai`), set its key, and change two lines:
 *
 *     import { openai } from "@ai-sdk/openai";
 *     const model = openai("gpt-4o-mini");
 */
import { Agent, createTool, Memory } from "@voltagent/core";
import { KeepstoneStorage } from "keepstone-voltagent";
import { z } from "zod";

import { model } from "./mock-model.js";

const storage = new KeepstoneStorage({ agent: "harbour" }); // KEEPSTONE_URL and KEEPSTONE_TOKEN say where it is.

const tide = createTool({
  name: "tide",
  description: "Tells when the tide is high in a harbour.",
  parameters: z.object({ harbour: z.string() }),
  execute: async ({ harbour }) => ({ harbour, high: "06:40" }),
});

const agent = new Agent({
  name: "harbour",
  instructions: "Help with departures. Use what you were told before.",
  model,
  tools: [tide],
  memory: new Memory({ storage }),
});

const turn = { userId: "ada", conversationId: "departures" };
for (const question of ["We sail from Calais.", "When is the tide high there?"]) {
  const { text } = await agent.generateText(question, turn);
  console.log(`you:   ${question}\nagent: ${text}`);
}

const known = await storage.getMessages("ada", "departures");
console.log(`\n${known.length} messages are in the session "departures". Look at them with`);
console.log('  keepstone sessions show departures --agent harbour\n  keepstone recall "tide" --agent harbour');
process.exit(); // VoltAgent's observability would keep the process alive.
