/** Who says a chat message, as the key `origin` of its line has it (docs/formats/log.md). */
import { isItem, type Item, type Json } from "./json.js";

const SPEAKERS: Record<string, string> = { user: "user", assistant: "model", tool: "tool" };

/** Return the line of a message with the least origin of its role and its parts; other lines as they are. */
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

/** Return whether a part holds what a tool returned. */
function isResult(part: Json): boolean {
  if (!isItem(part) || typeof part.type !== "string") {
    return false;
  }
  const isCall = part.type.startsWith("tool-") || part.type === "dynamic-tool";
  return /(tool_result|tool-result|_call_output)$/.test(part.type) || (isCall && ("output" in part || "errorText" in part));
}
