/** How many lives of an id are over, by the journal of erasures beside the logs (docs/formats/log.md). */
import { createHash } from "node:crypto";
import { closeSync, constants, readFileSync } from "node:fs";

import { type Folder, ifThere } from "./folder.js";
import { sessionOf } from "./layout.js";
import { lifeOf, parse } from "./line.js";

const JOURNAL = ".purged.ndjson";

/** Return how many lives of some ids of a session were erased; ids without any are left out. */
export function erasedLives(folder: Folder, logName: string, ids: readonly string[]): Map<string, number> {
  const fd = ids.length ? ifThere(() => folder.open(JOURNAL, constants.O_RDONLY)) : null;
  const found = new Map<string, number>();
  if (fd === null) {
    return found;
  }
  try {
    const session = sessionOf(logName) ?? logName;
    const wanted = new Map(ids.map((id) => [digest(session, id), id]));
    for (const raw of readFileSync(fd, "latin1").split("\n")) {
      const line = parse(Buffer.from(raw, "latin1"));
      const id = line && wanted.get(String(line.purged));
      if (line && id !== undefined && id !== null) {
        found.set(id, Math.max(lifeOf(line), found.get(id) ?? 0));
      }
    }
  } finally {
    closeSync(fd);
  }
  return found;
}

/** Return the digest of an entry's id in its session, as Python's `json.dumps` writes both. */
export function digest(session: string, id: string): string {
  const ascii = (text: string): string =>
    JSON.stringify(text).replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return createHash("sha256").update(`[${ascii(session)}, ${ascii(id)}]`).digest("hex");
}
