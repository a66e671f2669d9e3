/** Origins of chat messages, for the key `origin` of a line (docs/formats/log.md). */
import { isItem, type Item, type Json } from "./json.js";

const SPEAKERS: Record<string, string> = { user: "user", assistant: "model", tool: "tool" };

/** Add the least trusted origin of a message's role and parts to its line; return other lines unchanged. */
export function withOrigin(line: Item): Item {
  if (line.type !== "message" || !isItem(line.data) || "origin" in line) {
    return line;
  }
  const by = saidBy(line.data);
  return by === "program" ? line : { ...line, origin: { by } };
}

function saidBy({ role, parts }: Item): string {
  if (Array.isArray(parts) && parts.some(isResult)) {
    return "tool";
  }
  return (typeof role === "string" && SPEAKERS[role]) || "program";
}

/** Return whether a part holds the result of a tool. */
function isResult(part: Json): boolean {
  if (!isItem(part) || typeof part.type !== "string") {
    return false;
  }
  const isCall = part.type.startsWith("tool-") || part.type === "dynamic-tool";
  return /(tool_result|tool-result|_call_output)$/.test(part.type) || (isCall && ("output" in part || "errorText" in part));
}
