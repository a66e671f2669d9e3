/**
 * Errors, each with a `code` for programs and a message that names the remedy.
 *
 *     KeepstoneError
 *     ├── InvalidAgentIdError     not a valid slug; nothing was changed
 *     ├── InvalidSessionIdError   not a valid session id
 *     ├── LockTimeoutError        another writer held the session's lock for five seconds; nothing was written
 *     ├── CorruptLogError         a link, a folder or a device is in the place of a log
 *     ├── StoreError              the disk, or the server, failed; nothing was acknowledged
 *     └── AccessDeniedError       the server refuses the token, or its access to this agent
 *
 * Invalid arguments throw a TypeError or a RangeError.
 */
export class KeepstoneError extends Error {
  constructor(
    /** A stable identifier for programs, such as `lock_timeout`. */
    readonly code: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** An agent's slug is not 1 to 128 characters of `A-Z a-z 0-9 . _ -`; nothing was changed. */
export class InvalidAgentIdError extends KeepstoneError {
  constructor(message: string) {
    super("invalid_agent", message);
  }
}

/** A session id is empty, not valid Unicode, or too long for a file name. */
export class InvalidSessionIdError extends KeepstoneError {
  constructor(message: string) {
    super("invalid_session", message);
  }
}

/** Another writer held the session's lock for five seconds; nothing was written: try again. */
export class LockTimeoutError extends KeepstoneError {
  constructor(message: string) {
    super("lock_timeout", message);
  }
}

/** A log or its folder is a link, a device or of the wrong type: move it away. */
export class CorruptLogError extends KeepstoneError {
  constructor(message: string, options?: ErrorOptions) {
    super("corrupt_log", message, options);
  }
}

/** The disk or the server failed; the write is not acknowledged. */
export class StoreError extends KeepstoneError {
  constructor(message: string, options?: ErrorOptions) {
    super("store", message, options);
  }
}

/** The server refuses the token, or its access to this agent: use another token. */
export class AccessDeniedError extends KeepstoneError {
  constructor(message: string) {
    super("access_denied", message);
  }
}
