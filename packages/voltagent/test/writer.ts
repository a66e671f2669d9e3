/** A process that saves events to one session until its time is over, and says how many were acknowledged. */
import { once } from "node:events";

import { MemoryAdapter } from "../src/files.js";

const [root = "", label = "", seconds = "1"] = process.argv.slice(2);
const memory = new MemoryAdapter({ root, agent: "busy" });
await memory.load("shared");
console.log("ready");
await once(process.stdin, "data");
const end = Date.now() + Number(seconds) * 1000;
let count = 0;
while (Date.now() < end) {
  await memory.save({ from: label, n: count }, "shared");
  count += 1;
}
console.log(count);
process.exit();
