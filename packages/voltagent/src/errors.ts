/**
 * The errors, each with a `code` for programs and a message that says what to do.
 *
 *     KeepstoneError
 *     ├── InvalidAgentIdError     no slug; nothing was touched
 *     ├── InvalidSessionIdError   no id that a file name can hold
 *     ├── LockTimeoutError        another writer kept the session for five seconds; nothing was written
 *     ├── CorruptLogError         a log's place is taken by a link, a folder or a device
 *     ├── StoreError              the disk, or the server, failed; nothing was acknowledged
 *     └── AccessDeniedError       the server refuses the token, or the token this agent
 *
 * Wrong arguments are a TypeError or a RangeError.
 */
export class KeepstoneError extends Error {
  constructor(
    /** A word for programs, such as `lock_timeout`; it stays the same when messages change. */
    readonly code: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** An agent's slug is not 1 to 128 of `A-Z a-z 0-9 . _ -`; nothing was touched. */
export class InvalidAgentIdError extends KeepstoneError {
  constructor(message: string) {
    super("invalid_agent", message);
  }
}

/** A session id is empty, no valid Unicode, or too long for a file name. */
export class InvalidSessionIdError extends KeepstoneError {
  constructor(message: string) {
    super("invalid_session", message);
  }
}

/** Another writer kept the session's lock for five seconds; nothing was written: try again. */
export class LockTimeoutError extends KeepstoneError {
  constructor(message: string) {
    super("lock_timeout", message);
  }
}

/** Something other than a regular file is in the place of a log or its folder: move it away. */
export class CorruptLogError extends KeepstoneError {
  constructor(message: string, options?: ErrorOptions) {
    super("corrupt_log", message, options);
  }
}

/** The disk or the server failed; what the call was to store is not acknowledged. */
export class StoreError extends KeepstoneError {
  constructor(message: string, options?: ErrorOptions) {
    super("store", message, options);
  }
}

/** The server refuses this token, or this token this agent: give another one. */
export class AccessDeniedError extends KeepstoneError {
  constructor(message: string) {
    super("access_denied", message);
  }
}
