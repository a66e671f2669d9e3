/** File layout of a home: agent slugs, session ids, and the names of their files. */
import { createHash } from "node:crypto";
import { join } from "node:path";

import { InvalidAgentIdError, InvalidSessionIdError } from "./errors.js";

// These names are on disk, and other programs that open a home use them as well. They never change.
/** The extension of a log. */
const EXTENSION = ".ndjson";
/** The folder of archives, inside a sessions folder. */
export const ARCHIVE = ".archive";
/** Suffix of a log's temporary file, after the log's whole name. */
export const TEMPORARY = ".tmp";
/** Suffix of the file with which Python will replace a log while others still write to the log. */
export const PREPARED = `.next${TEMPORARY}`;

const LOCK = ".lock";
const LONGEST_SESSION = 200;
/** Names that cannot be a part of a URL's path: the empty name, `.` and `..`. */
const NO_PART = /^\.{0,2}$/;
const SLUG = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_-])?$/;

/** Return `agent` if it is a slug; `InvalidAgentIdError` otherwise. */
export function checkAgent(agent: unknown): string {
  if (typeof agent !== "string") {
    throw new TypeError(`an agent's slug is a string, not ${typeof agent}`);
  }
  // Unlike in other languages, `$` does not match before a final newline in JavaScript.
  if (!SLUG.test(agent)) {
    throw new InvalidAgentIdError(
      `${shown(agent)} is no agent slug; use 1 to 128 of A-Z a-z 0-9 . _ -, a letter or digit first and no dot last`,
    );
  }
  return agent;
}

/** Return the names of the folders from the root to an agent's logs. */
export function sessionsFolder(agent: string): string[] {
  return ["agents", checkAgent(agent), "memory", "sessions"];
}

/**
 * Return the name of a session's log: the id, percent-encoded, and the extension.
 *
 * `A-Z a-z 0-9 - _ . ~` stay, except a leading dot; every other UTF-8 byte becomes `%XX`.
 *
 * @example sessionFile("../x") === "%2E.%2Fx.ndjson"
 */
export function sessionFile(session: unknown): string {
  if (typeof session !== "string") {
    throw new TypeError(`a session id is a string, not ${typeof session}`);
  }
  if (!session) {
    throw new InvalidSessionIdError("session id must not be empty");
  }
  if (!session.isWellFormed()) {
    throw new InvalidSessionIdError(`${shown(session)} has a lone surrogate; use valid Unicode`);
  }
  const stem = encode(session);
  if (stem.length > LONGEST_SESSION) {
    throw new InvalidSessionIdError(
      `session id ${shown(session)} has more than ${LONGEST_SESSION} bytes as a file name; shorten it`,
    );
  }
  return stem + EXTENSION;
}

function encode(session: string): string {
  // encodeURIComponent leaves five more characters unencoded than this format.
  const stem = encodeURIComponent(session).replace(/[!'()*]/g, hex);
  return stem.startsWith(".") ? `%2E${stem.slice(1)}` : stem;
}

function hex(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

/**
 * Return the session id for a conversation, whose id may be any string. If the id does not fit into a file name or
 * URL, the session id is the readable part of it and a digest, as from Python's `Layout.session_name`.
 */
export function sessionFor(conversation: string): string {
  const id = conversation.toWellFormed();
  if (encode(id).length <= LONGEST_SESSION && !NO_PART.test(id)) {
    return id;
  }
  const readable = id.replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 40).replace(/^[.-]+|[.-]+$/g, "");
  const digest = createHash("sha256").update(`${Buffer.byteLength(id)}:${id}`).digest("hex");
  return `${readable}-${digest}`.replace(/^-/, "");
}

/** Return the id of the entry for a message: the message's id, unless it cannot be part of a URL. */
export function entryFor(message: string): string {
  return NO_PART.test(message) ? sessionFor(message) : message.toWellFormed();
}

/** Return the file name, without extension, for an id of any length. The same id always gets the same name. */
export function fileStem(id: string): string {
  return encode(sessionFor(id));
}

/**
 * Return the session id for a file name, or null if it is not the name of a log.
 *
 * Names chosen by people are also accepted: valid `%XX` are decoded if the result is UTF-8; otherwise the name
 * without its extension is the id.
 */
export function sessionOf(fileName: string): string | null {
  const stem = fileName.endsWith(EXTENSION) ? fileName.slice(0, -EXTENSION.length) : "";
  if (!stem || stem.startsWith(".") || stem.includes("\uFFFD")) {
    return null;
  }
  // A percent sign that is not followed by two hexadecimal digits is literal.
  const escaped = stem.replace(/%(?![0-9A-Fa-f]{2})/g, "%25");
  try {
    return decodeURIComponent(escaped);
  } catch (error) {
    if (error instanceof URIError) {
      return stem;
    }
    throw error;
  }
}

/** Return the name of the lock file of a log: `s1.ndjson` is locked by `s1.lock`. */
export function lockFile(logName: string): string {
  return logName.slice(0, -EXTENSION.length) + LOCK;
}

/**
 * Return the name of the log that a file belongs to. The file is the log, its archive, an original that was copied
 * before a repair, or a temporary file of one of them.
 */
export function logOf(fileName: string): string {
  return fileName.replace(new RegExp(`${TEMPORARY.replace(".", "\\.")}$`), "").replace(/\.\d{8}T\d{12}Z\.original$/, "");
}

/** Return the name of a log's archive, relative to the sessions folder. */
export function archiveFile(logName: string): string {
  return join(ARCHIVE, logName);
}

/** Return a value for messages: quoted, and shortened if it is long. */
export function shown(value: string): string {
  const quoted = JSON.stringify(value);
  return quoted.length > 80 ? `${quoted.slice(0, 80)}…` : quoted;
}
