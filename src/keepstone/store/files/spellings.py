"""Other files of a session: its archive, originals, and logs under other names for the same id.

If several names stand for one session, the canonical one is used, and the others are not read. Erasing from
the session also erases from the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import ARCHIVE, PREPARED, TEMPORARY, Layout, lock_file
from keepstone.filesystem.lock import Lock
from keepstone.log.log_file import Log
from keepstone.store.files.maintenance.originals import log_of, originals


def archive_of(folder: Folder, log: Log) -> Log:
    """Return the archive of a log, which need not exist. The log's lock guards it."""
    return Log(folder, f"{ARCHIVE}/{log.name}", log.lock, durable=True)


def parts(folder: Folder, log: Log) -> list[Log]:
    """Return a log, its archive and their originals. The log's lock guards them."""
    return [log, archive_of(folder, log), *originals(folder, log)]


def named_sessions(folder: Folder, layout: Layout) -> Iterator[tuple[str, str]]:
    """Yield the session id and the log name for each file that holds lines of a session, in no order."""
    for sub in ("", ARCHIVE):
        with suppress(FileNotFoundError, NotADirectoryError):
            for entry in folder.scan(sub):
                # Files of killed rewrites contain lines, too.
                name = log_of(entry.name) or entry.name.removesuffix(PREPARED).removesuffix(TEMPORARY)
                session = layout.session_of(name)
                if session is not None and entry.is_file(follow_symlinks=False):
                    yield session, name


def other_spellings(folder: Folder, layout: Layout, session: str, used: str) -> list[Log]:
    """Return the logs of a session under names other than the used one, each with a separate lock."""
    names = {name for other, name in named_sessions(folder, layout) if other == session}
    return logs_named(folder, layout, names - {used})


def logs_named(folder: Folder, layout: Layout, names: Iterable[str]) -> list[Log]:
    """Return the logs with these names, in order, each with a separate lock."""
    return [Log(folder, name, Lock(folder, lock_file(name, layout.extension))) for name in sorted(names)]


@contextmanager
def holding(log: Log) -> Iterator[None]:
    """Hold the lock of a log under another name; remove the lock file at the end if the log is missing."""
    with closing(log), log.locked():
        yield
        if log.stat() is None:
            log.lock.remove()
