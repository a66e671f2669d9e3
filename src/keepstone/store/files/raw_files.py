"""Export and import of sessions as raw lines, for moving a home."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keepstone.filesystem.layout import ARCHIVE
from keepstone.log.scan import Scan
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.transfer import RawLine


def raw_lines(logs: AgentLogs, session: str) -> Iterator[RawLine]:
    """Yield a session's lines, the archive's first; lines of torn batches are left out."""
    for archived in (True, False):
        log = logs.archive(session) if archived else logs.log(session)
        with log.reading() as fd:
            for line in Scan(fd, unfinished=not archived) if fd is not None else ():
                yield RawLine(line, archived)


def take_raw_lines(logs: AgentLogs, session: str, lines: Sequence[RawLine]) -> None:
    """Replace a session's log and archive by these lines. A kill may leave an archive without its log.

    Derived values of a line are written explicitly, as they would differ in another file.
    """
    log = logs.log(session)
    with log.locked():
        archived = [line.explicit() + b"\n" for line in lines if line.archived]
        if archived:
            logs.folder.make_folder(ARCHIVE)
            logs.archive(session).replace(archived)
        log.create()
        log.replace(line.explicit() + b"\n" for line in lines if not line.archived)
    logs.follow(session, log, log.stat())
