/** The logs of one agent's sessions, by session id. */
import { InvalidSessionIdError } from "./errors.js";
import { Folder } from "./folder.js";
import { ARCHIVE, checkAgent, logOf, sessionFile, sessionOf, sessionsFolder, shown } from "./layout.js";
import { Log } from "./log.js";

/** Maximum number of idle logs kept in memory. */
const LOGS = 8;

export class SessionLogs {
  readonly #folder: Folder;
  readonly #logs = new Map<string, Log>();

  constructor(root: string, agent: string) {
    this.#folder = new Folder(root, sessionsFolder(checkAgent(agent)));
  }

  /** Return the id, last change in nanoseconds and size of every session, unordered. */
  list(): { id: string; mtime: bigint; size: number }[] {
    return [...this.#names()].flatMap(([id, name]) => {
      const status = this.#folder.stat(name);
      return status ? [{ id, mtime: status.mtimeNs, size: Number(status.size) }] : [];
    });
  }

  /** Remove a session's log, archive and lock file; return false if the session is missing. */
  async remove(session: string, check?: () => void): Promise<boolean> {
    const removed = await this.of(session).remove(check);
    this.#logs.delete(session);
    return removed;
  }

  /** Return the log of a session, which need not exist. */
  of(session: string): Log {
    const known = this.#logs.get(session);
    const log = known === undefined || known.isRenamed ? this.#newLog(session) : known;
    this.#logs.delete(session);
    this.#logs.set(session, log);
    // A busy log stays cached: a second instance would not queue behind its writes.
    const idle = [...this.#logs].filter(([, other]) => other !== log && !other.busy).map(([name]) => name);
    idle.slice(0, Math.max(this.#logs.size - LOGS, 0)).forEach((name) => this.#logs.delete(name));
    return log;
  }

  #newLog(session: string): Log {
    const [name, canonical] = [this.#name(session), sessionFile(session)];
    const isThere = (file: string): boolean => this.#folder.stat(file) !== null;
    // A case-insensitive file system may find this file under the canonical name: only a listing shows the real name.
    const isRenamed = (): boolean => !isThere(name) || (isThere(canonical) && this.#name(session) !== name);
    return new Log(this.#folder, name, name === canonical ? undefined : isRenamed);
  }

  /**
   * Remove files of a session under names other than the one in use.
   *
   * People create such files. Their entries are hidden, and would appear once the used file is removed.
   */
  async removeHidden(session: string): Promise<void> {
    const used = this.of(session).name;
    const files = [...this.#folder.entries(), ...this.#folder.entries(ARCHIVE)].filter((entry) => entry.isFile());
    const names = new Set(files.map(({ name }) => logOf(name)));
    const hidden = [...names].filter((name) => name !== used && sessionOf(name) === session);
    await Promise.all(hidden.map((name) => new Log(this.#folder, name).remove()));
  }

  /**
   * Return the file name of a session: the canonical name, unless only a file with a name that a person chose exists.
   */
  #name(session: string): string {
    const canonical = sessionFile(session);
    const found = this.#names().get(session);
    if (found !== undefined || !this.#folder.exists() || this.#folder.stat(canonical) === null) {
      return found ?? canonical;
    }
    // The file exists but was not listed: it was just created, or a file system that ignores case found another one.
    if (this.#folder.entries().some((entry) => entry.name === canonical)) {
      return canonical;
    }
    throw new InvalidSessionIdError(
      `session ${shown(session)} differs only by case from an existing one; use that or another name`,
    );
  }

  /**
   * Return the file names of all sessions. If one id has several names, the canonical one is used, else the first.
   */
  #names(): Map<string, string> {
    const names = new Map<string, string>();
    for (const entry of this.#folder.entries()) {
      const session = entry.isFile() ? sessionOf(entry.name) : null;
      if (session !== null && isBetter(entry.name, names.get(session), session)) {
        names.set(session, entry.name);
      }
    }
    return names;
  }
}

/** Return whether `name` is used for a session rather than `other`. */
function isBetter(name: string, other: string | undefined, session: string): boolean {
  const canonical = canonicalOf(session);
  return other === undefined || name === canonical || (other !== canonical && Buffer.from(name).compare(Buffer.from(other)) < 0);
}

/**
 * Return the canonical file name of a session; null for an id that is only possible in a name that a person chose.
 */
function canonicalOf(session: string): string | null {
  try {
    return sessionFile(session);
  } catch (error) {
    if (error instanceof InvalidSessionIdError) {
      return null;
    }
    throw error;
  }
}
