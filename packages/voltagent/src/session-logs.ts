/** The logs of one agent's sessions, by the sessions' ids. */
import { InvalidSessionIdError } from "./errors.js";
import { Folder } from "./folder.js";
import { ARCHIVE, checkAgent, logOf, sessionFile, sessionOf, sessionsFolder, shown } from "./layout.js";
import { Log } from "./log.js";

/** How many logs are kept in memory after they were read or written. */
const LOGS = 8;

export class SessionLogs {
  readonly #folder: Folder;
  readonly #logs = new Map<string, Log>();

  constructor(root: string, agent: string) {
    this.#folder = new Folder(root, sessionsFolder(checkAgent(agent)));
  }

  /** Return id, last change in nanoseconds and size of every session, in no order. */
  list(): { id: string; mtime: bigint; size: number }[] {
    return [...this.#names()].flatMap(([id, name]) => {
      const status = this.#folder.stat(name);
      return status ? [{ id, mtime: status.mtimeNs, size: Number(status.size) }] : [];
    });
  }

  /** Remove a session's log, its archive and its lock file; false if it is missing. */
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
    // One that is busy stays: another beside it would not queue behind its writes.
    const idle = [...this.#logs].filter(([, other]) => other !== log && !other.busy).map(([name]) => name);
    idle.slice(0, Math.max(this.#logs.size - LOGS, 0)).forEach((name) => this.#logs.delete(name));
    return log;
  }

  #newLog(session: string): Log {
    const [name, canonical] = [this.#name(session), sessionFile(session)];
    const isThere = (file: string): boolean => this.#folder.stat(file) !== null;
    // Where names differ only by case the file system may show this one as the canonical one: only a list tells.
    const isRenamed = (): boolean => !isThere(name) || (isThere(canonical) && this.#name(session) !== name);
    return new Log(this.#folder, name, name === canonical ? undefined : isRenamed);
  }

  /**
   * Remove what lies under other names for a session than the one in use.
   *
   * People make such files. Nothing of them is shown, and they would come back once the other is gone.
   */
  async removeHidden(session: string): Promise<void> {
    const used = this.of(session).name;
    const files = [...this.#folder.entries(), ...this.#folder.entries(ARCHIVE)].filter((entry) => entry.isFile());
    const names = new Set(files.map(({ name }) => logOf(name)));
    const hidden = [...names].filter((name) => name !== used && sessionOf(name) === session);
    await Promise.all(hidden.map((name) => new Log(this.#folder, name).remove()));
  }

  /** Return the file name of a session: the canonical one unless only one that a person made exists. */
  #name(session: string): string {
    const canonical = sessionFile(session);
    const found = this.#names().get(session);
    if (found !== undefined || !this.#folder.exists() || this.#folder.stat(canonical) === null) {
      return found ?? canonical;
    }
    // It is there and was not listed: made just now, or the file system takes another name for it.
    if (this.#folder.entries().some((entry) => entry.name === canonical)) {
      return canonical;
    }
    throw new InvalidSessionIdError(
      `session ${shown(session)} differs only by case from an existing one; use that or another name`,
    );
  }

  /** Return the file names of all sessions; of several for one id the canonical one, else the first in order. */
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

/** Tell which of two names for a session is used. */
function isBetter(name: string, other: string | undefined, session: string): boolean {
  const canonical = canonicalOf(session);
  return other === undefined || name === canonical || (other !== canonical && Buffer.from(name).compare(Buffer.from(other)) < 0);
}

/** Return the name that a session's file has; null for an id that only a person's file has. */
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
