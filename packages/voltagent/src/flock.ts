/**
 * The operating system's lock on an open file: flock(2) of the C library, which Python's `filelock` also uses.
 *
 * Node has no call for flock. A lock by fcntl(2), as other packages use it, is independent of flock on Linux, and
 * would exclude nobody. See docs/decisions/0013.
 */
import { StoreError } from "./errors.js";

/** Acquires and releases an exclusive lock on a file descriptor. */
export interface Flock {
  /** Acquire the lock if it is free; return whether it was acquired. */
  tryLock(fd: number): boolean;
  unlock(fd: number): void;
}

const [LOCK_EX, LOCK_NB, LOCK_UN] = [2, 4, 8];

let loaded: Promise<Flock> | undefined;

/** Load the C library's flock; throw StoreError if it is not available. */
export function loadFlock(): Promise<Flock> {
  return (loaded ??= load());
}

async function load(): Promise<Flock> {
  const remedy = "MemoryAdapter needs it to share files safely: use KeepstoneStorage with a running server";
  if (process.platform === "win32") {
    throw new StoreError(`Windows has no flock; ${remedy}`);
  }
  try {
    // Load koffi only when a lock is needed: it is an optional package with native code, and a storage on a server
    // does not need it.
    const { default: koffi } = await import("koffi");
    const flock = koffi.load(null).func("int flock(int fd, int operation)") as (fd: number, how: number) => number;
    return locking(flock, () => koffi.errno(), koffi.os.errno);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND") {
      const install = "the optional package koffi is not installed: npm install koffi";
      throw new StoreError(`${install}. ${remedy}`, { cause: error });
    }
    throw new StoreError(`flock cannot be called on this system; ${remedy}`, { cause: error });
  }
}

function locking(
  flock: (fd: number, how: number) => number,
  errno: () => number,
  codes: Record<string, number>,
): Flock {
  const call = (fd: number, how: number): boolean => {
    for (;;) {
      if (flock(fd, how) === 0) {
        return true;
      }
      const code = errno();
      if (code === codes.EAGAIN || code === codes.EWOULDBLOCK) {
        return false;
      }
      // A signal interrupted the call, so it is repeated.
      if (code !== codes.EINTR) {
        throw new StoreError(`the system refuses a lock (errno ${code}): is this a network file system?`);
      }
    }
  };
  return {
    tryLock: (fd) => call(fd, LOCK_EX | LOCK_NB),
    unlock: (fd) => void call(fd, LOCK_UN),
  };
}
