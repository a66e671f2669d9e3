"""The system's limit on the files that a process may have open."""

from __future__ import annotations

from contextlib import suppress

_MOST = 1 << 15
"""Maximum to which the limit is raised: all open agents need less, and some systems have no maximum."""


def files_allowed() -> int | None:
    """Return how many files this process may have open, None if the system does not say."""
    try:
        import resource
    except ImportError:
        return None
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if allowed < 0 else allowed


def allow_more_files() -> None:
    """Raise the soft limit toward the hard limit. Only keepstone's own programs do so, not the library."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard < 0 else min(hard, _MOST)
    if 0 <= soft < wanted:
        with suppress(OSError, ValueError):  # Refused by the system: everything works with fewer files.
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
