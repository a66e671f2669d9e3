/** Where things live: agent slugs, session ids, and the names of their files. */
import { createHash } from "node:crypto";
import { join } from "node:path";

import { InvalidAgentIdError, InvalidSessionIdError } from "./errors.js";

// These names are on disk and shared with every other program that opens a home. They never change.
/** The ending of a log's name. */
const EXTENSION = ".ndjson";
/** The folder of archives, inside a sessions folder. */
export const ARCHIVE = ".archive";
/** The ending that a log's temporary file has after the log's whole name. */
export const TEMPORARY = ".tmp";
/** The ending of the file that Python prepares to replace a log to which others still write. */
export const PREPARED = `.next${TEMPORARY}`;

const LOCK = ".lock";
const LONGEST_SESSION = 200;
/** Names that cannot be a part of an address: the empty one, and those that mean folders there. */
const NO_PART = /^\.{0,2}$/;
const SLUG = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_-])?$/;

/** Return `agent` if it is a slug; `InvalidAgentIdError` otherwise. */
export function checkAgent(agent: unknown): string {
  if (typeof agent !== "string") {
    throw new TypeError(`an agent's slug is a string, not ${typeof agent}`);
  }
  // A dollar sign also matches before a final newline in other languages; in JavaScript it does not.
  if (!SLUG.test(agent)) {
    throw new InvalidAgentIdError(
      `${shown(agent)} is no agent slug; use 1 to 128 of A-Z a-z 0-9 . _ -, a letter or digit first and no dot last`,
    );
  }
  return agent;
}

/** Return the names, below the root, of the folders that lead to an agent's logs. */
export function sessionsFolder(agent: string): string[] {
  return ["agents", checkAgent(agent), "memory", "sessions"];
}

/**
 * Return the name of a session's log: the id, percent-encoded, and the extension.
 *
 * `A-Z a-z 0-9 - _ . ~` stay (a leading dot does not), every other UTF-8 byte becomes `%XX`.
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
  // encodeURIComponent leaves five more characters alone than the rule does.
  const stem = encodeURIComponent(session).replace(/[!'()*]/g, hex);
  return stem.startsWith(".") ? `%2E${stem.slice(1)}` : stem;
}

function hex(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

/**
 * Return the session that holds a conversation, whose id may be any string: the id itself, or where no file or
 * address can be named so what is readable of it and a digest, as the Python side's `Layout.session_name` makes.
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

/** Return the id of the entry that holds a message: the message's own, unless no address can name that. */
export function entryFor(message: string): string {
  return NO_PART.test(message) ? sessionFor(message) : message.toWellFormed();
}

/** Return the name of a file for an id of any length, without an extension; the same id always has the same. */
export function fileStem(id: string): string {
  return encode(sessionFor(id));
}

/**
 * Return the session that a file name stands for, or null if it is no log's name.
 *
 * Names that people made are read too: valid `%XX` are decoded if that gives UTF-8,
 * otherwise the name without its extension is the id.
 */
export function sessionOf(fileName: string): string | null {
  const stem = fileName.endsWith(EXTENSION) ? fileName.slice(0, -EXTENSION.length) : "";
  if (!stem || stem.startsWith(".") || stem.includes("\uFFFD")) {
    return null;
  }
  // A percent sign without two hexadecimal digits behind it stands for itself.
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
 * Return the name of the log that a file has lines of: the log itself, its archive or what was copied of them
 * before they were mended, each finished or not.
 */
export function logOf(fileName: string): string {
  return fileName.replace(new RegExp(`${TEMPORARY.replace(".", "\\.")}$`), "").replace(/\.\d{8}T\d{12}Z\.original$/, "");
}

/** Return the name of a log's archive, relative to the sessions folder. */
export function archiveFile(logName: string): string {
  return join(ARCHIVE, logName);
}

/** Return a value as messages show it: quoted, and not too long. */
export function shown(value: string): string {
  const quoted = JSON.stringify(value);
  return quoted.length > 80 ? `${quoted.slice(0, 80)}…` : quoted;
}
