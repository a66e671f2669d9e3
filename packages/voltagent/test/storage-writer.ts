/** A process that writes to one conversation on files, as its second argument says. */
import { once } from "node:events";

import { KeepstoneFileStorage } from "../src/index.js";

const [root = "", how = "hundred"] = process.argv.slice(2);
const storage = new KeepstoneFileStorage({ root, agent: "coder", logger: { info: () => undefined } });

async function add(number: number): Promise<void> {
  const id = `n${number}`;
  await storage.addMessage({ id, role: "user", parts: [{ type: "text", text: `node ${number}` }] }, "u1", "c");
  const step = { id, conversationId: "c", userId: "u1", agentId: "a", operationId: "o", stepIndex: number, type: "text", role: "assistant", createdAt: "" } as const;
  await storage.saveConversationSteps([step]);
}

if (how.startsWith("begin")) {
  const begun = storage.createConversation({ id: "c", userId: how, resourceId: "r", title: "", metadata: {} });
  console.log(await begun.then(() => "made", (error: { code: string }) => error.code));
} else if (how === "endless") {
  for (let number = 0; ; number += 1) {
    await add(number);
    console.log(`n${number}`);
  }
} else {
  console.log("ready");
  await once(process.stdin, "data");
  for (let number = 0; number < 100; number += 1) {
    await add(number);
  }
}
process.exit();
