"""Repairs of the doctor's findings in an agent's logs and index.

Before each change of a log or an archive, a copy of it is kept: see ``originals``.
"""

from __future__ import annotations

from collections.abc import Iterator

from keepstone.errors import KeepstoneError
from keepstone.filesystem.layout import ARCHIVE, LOCK, PREPARED, TEMPORARY, Layout
from keepstone.filesystem.lock import Lock
from keepstone.index import DamagedError, UnavailableError, check
from keepstone.log import rewrite
from keepstone.log.log_file import Log, stat_of
from keepstone.log.scan import Scan
from keepstone.model import Finding
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.maintenance.originals import keep_original
from keepstone.text.display import counted


def mend(logs: AgentLogs, layout: Layout, *, deep: bool = False) -> list[Finding]:
    """Repair an agent's logs, then its index; return findings about the repairs and the failed ones."""
    mended = [*_left_over(logs), *_locks(logs, layout)]
    for session, _, _ in list(logs.files()):
        for log in (logs.log(session), logs.archive(session)):
            mended += _log(logs, session, log)
    return [*mended, *_index(logs, deep=deep)]


def _done(subject: str, message: str) -> Finding:
    return Finding("ok", subject, f"mended: {message}")


def _left_over(logs: AgentLogs) -> Iterator[Finding]:
    """Remove the temporary files of rewrites, each under its log's lock, as a rewrite may be in progress."""
    for sub in ("", ARCHIVE):
        for name in _names(logs, sub):
            log_name = name.removesuffix(PREPARED).removesuffix(TEMPORARY)
            session = logs.layout.session_of(log_name) if name.endswith(TEMPORARY) else None
            if session is None:
                continue
            path = f"{sub}/{name}" if sub else name
            log = logs.log(session)
            with log.locked():
                log.clear_away()
                if name in _names(logs, sub) and not name.endswith(PREPARED):
                    logs.folder.unlink(path)
            yield _done(f"{logs.agent}/{path}", "removed")


def _names(logs: AgentLogs, sub: str) -> list[str]:
    try:
        return [entry.name for entry in logs.folder.scan(sub)]
    except FileNotFoundError:
        return []


def _locks(logs: AgentLogs, layout: Layout) -> Iterator[Finding]:
    for name in _names(logs, ""):
        log = name.removesuffix(LOCK) + layout.extension
        if not name.endswith(LOCK) or name.startswith(".") or log in _names(logs, ""):
            continue
        lock = Lock(logs.folder, name)
        try:
            with lock.hold():
                # Another process may have created the log before this one got the lock.
                if log not in _names(logs, ""):
                    lock.remove()
                    yield _done(f"{logs.agent}/{name}", "removed")
        finally:
            lock.close()


def _log(logs: AgentLogs, session: str, log: Log) -> list[Finding]:
    if not _damage(log):
        return []
    with logs.log(session).locked():
        # Check again, as another process may have repaired the log before this one got the lock.
        damage = _damage(log)
        if not damage:
            return []
        original = keep_original(logs.folder, log)
        with log.reading() as fd:
            lines = Scan(fd, unfinished=True) if fd is not None else ()
            log.replace(rewrite.explicit(line) for line in lines if line.record is not None)
    return [_done(f"{logs.agent}/{log.name}", f"{damage}; it was kept as {ARCHIVE}/{original}")]


def _damage(log: Log) -> str:
    """Return a text about the damage that a rewrite of a log corrects; empty if there is none."""
    with log.reading() as fd:
        if fd is None:
            return ""
        scan = Scan(fd, unfinished=True)
        unreadable = sum(line.record is None for line in scan) + bool(scan.unread)
    if unreadable:
        return f"took {counted(unreadable, 'unreadable line')} out"
    if scan.torn:
        return f"took {counted(scan.torn, 'line')} out, the beginning of a batch at the end"
    return "ended its last line" if scan.rest else ""


def _index(logs: AgentLogs, *, deep: bool) -> list[Finding]:
    try:
        if _needs_rebuilding(logs, deep=deep):
            logs.rebuild(lambda _: None)
            return [_done(logs.agent, "rebuilt the index from the logs; vectors are made again when needed")]
        mended = []
        if deep and (files := check.damaged_files(logs.index)):
            check.forget_damaged_files(logs.index)
            mended.append(_done(logs.agent, f"removed {len(files)} file(s) of vectors or graphs"))
        known = logs.index.known()
        if any(known.get(session) != (name, stat_of(status)) for session, name, status in logs.files()):
            # With age 0, no earlier refresh counts.
            logs.refresh(0)
            mended.append(_done(logs.agent, "brought the index up to the logs"))
    except (UnavailableError, DamagedError, KeepstoneError) as error:
        return [Finding("error", logs.agent, f"the index could not be mended: {error}", "free disk space")]
    return mended


def _needs_rebuilding(logs: AgentLogs, *, deep: bool) -> bool:
    if not deep:
        return False
    if check.damage(logs.index):
        return True
    return any(check.differing(logs.index, session, logs.log(session)) for session, _, _ in logs.files())
