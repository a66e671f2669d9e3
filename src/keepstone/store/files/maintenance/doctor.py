"""Checks of an agent's logs and index, which change nothing."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from keepstone.errors import CorruptLogError, KeepstoneError
from keepstone.filesystem.confine import MovedError
from keepstone.filesystem.layout import ARCHIVE, DROPPED, LOCK, SUGGESTIONS, TEMPORARY, Layout, lock_file
from keepstone.index import DamagedError, UnavailableError, check
from keepstone.log.conflict_copies import original_of
from keepstone.log.fold import Fold
from keepstone.log.line import format_time, id_of, microseconds, read_time
from keepstone.log.log_file import Log, stat_of
from keepstone.log.scan import Line, Scan
from keepstone.model import Finding, Record
from keepstone.secrets.detection import kinds_in, masked, secrets_in
from keepstone.store.files import suggestion_file
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.dropped import dropped_at
from keepstone.store.files.maintenance.originals import log_of, original_names, originals
from keepstone.store.files.purge_marks import PurgeMarks
from keepstone.store.suggestion_lines import unreadable_lines
from keepstone.text.display import counted

NEWEST = 1 << 20
"""Bytes at the end of each log that are searched for secrets if ``deep`` is false."""

_MOST_SECRETS = 20
"""Maximum number of entries with secrets that are listed one by one; further ones are only counted."""
_MOST_PLACES = 5
"""Maximum number of a log's unreadable lines that are listed one by one."""
_CHUNK = 1 << 20
_TIMED = 7
"""The version of UUIDs that begin with their creation time in milliseconds since 1970."""
_CONFLICT_MARKERS = (b"<<<<<<< ", b"=======\n", b">>>>>>> ", b"||||||| ")
_FIX = "keepstone doctor --fix"
_REBUILD = "keepstone index --rebuild"
_SLOWER = "recall may miss entries, or find them by words that are no longer theirs"


def examine(
    logs: AgentLogs,
    layout: Layout,
    *,
    deep: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Finding]:
    """Return counts of an agent's checked parts, and its findings. ``progress`` receives bytes of logs."""
    findings = [*_folder(logs, layout), *_archives(logs), *_marks(logs), *_index(logs, deep=deep)]
    findings += _suggestions(logs, layout)
    entries = 0
    search = SecretSearch(logs.agent, deep=deep)
    dropped = dropped_at(logs.folder)
    for session, _, status in logs.files():
        try:
            fold, found = _log(f"{logs.agent}/{session}", logs.log(session), search.watching(session))
        except MovedError:
            # The whole agent was removed, which is not a finding about this log.
            raise
        except (KeepstoneError, OSError) as error:
            findings.append(_unreadable(f"{logs.agent}/{session}", error))
            continue
        archived = search.watching(session) if deep else _unwatched
        findings += found + _log(f"{logs.agent}/{session} (archive)", logs.archive(session), archived)[1]
        entries += len(fold.entries)
        if (copied := original_of(session)) is not None and logs.log(copied).stat() is not None:
            findings.append(_copied(f"{logs.agent}/{session}", copied))
        if session in dropped:
            findings += _put_back(f"{logs.agent}/{session}", fold, dropped[session])
        if deep:
            findings += _rows(logs, session)
            for original in originals(logs.folder, logs.log(session)):
                _log("", original, archived)  # Its damage is known.
        progress(status.st_size)
    findings += search.findings()
    is_well = all(finding.level == "ok" for finding in findings)
    looked = _all_is_well(entries, deep=deep) if is_well else _looked_at(entries, deep=deep)
    return [Finding("ok", logs.agent, looked), *findings]


def _all_is_well(entries: int, *, deep: bool) -> str:
    begin = f"{counted(entries, 'entry')}, every line readable, index in step"
    if deep:
        return f"{begin} and as the logs say, no secret anywhere"
    return f"{begin}, no secret in the newest {NEWEST >> 20} MiB of each log"


def _looked_at(entries: int, *, deep: bool) -> str:
    begin = f"{counted(entries, 'entry')}; looked at every line of logs and archives, purges, the index"
    if deep:
        return f"{begin} in every row and vector, and for secrets in all lines"
    return f"{begin}, and for secrets in the newest {NEWEST >> 20} MiB of each log"


Watch = Callable[[Iterable[Line], int], Iterable[Line]]
"""Passes lines on and examines them on the way; the number is the size of their file in bytes."""


def _unwatched(lines: Iterable[Line], _size: int) -> Iterable[Line]:
    return lines


def _log(subject: str, log: Log, watch: Watch) -> tuple[Fold, list[Finding]]:
    fold = Fold()
    stat = log.stat()
    unreadable: list[int] = []
    with log.reading() as fd:
        if fd is None or stat is None:
            return fold, []
        scan = Scan(fd, unfinished=True)
        fold.take(_noting(unreadable, watch(scan, stat.size)))
        # A conflict marker of git is eight bytes long, including the space or newline after it.
        markers = [at for at in unreadable if os.pread(fd, 8, at).startswith(_CONFLICT_MARKERS)]
        found = [_conflicted(subject, _places(fd, markers))] if markers else []
        return fold, [*found, *_counted(subject, fold, scan, partial(_places, fd, unreadable))]


def _unreadable(subject: str, error: Exception) -> Finding:
    message = f"the log cannot be read: {error}"
    cost = "only its entries in the index are recalled; other sessions are not affected"
    return Finding("error", subject, message, "give its owner and mode back, or repair the disk", cost)


def _copied(subject: str, original: str) -> Finding:
    message = f"a conflicting copy that a sync service made of session {original!r:.80}"
    remedy = "merge it with a folder outside of the home: keepstone sync DIR"
    cost = "its entries are in this session and not in the original; two devices that write make more copies"
    return Finding("warning", subject, message, remedy, cost)


def _conflicted(subject: str, places: str) -> Finding:
    message = f"conflict markers of git in {places}: it was merged without keepstone's driver"
    remedy = "abort the merge, run keepstone git init, and merge again; or take only the marker lines out"
    cost = "both sides' lines count, but perhaps in the wrong order, and deletions may have come undone"
    return Finding("error", subject, message, remedy, cost)


def _put_back(subject: str, fold: Fold, dropped: datetime) -> Iterator[Finding]:
    """Find entries from before a session of this name was dropped."""
    older = sum(_is_older(folded.record, dropped) for folded in fold.entries.values())
    if older:
        message = (
            f"dropped on {format_time(dropped)}, but its log has {counted(older, 'entry')} from before: "
            "the log was put back"
        )
        remedy = f"drop the session again, or, to keep it, take its line out of {DROPPED}"
        yield Finding("warning", subject, message, remedy, "dropped entries are remembered again")


def _is_older(record: Record, moment: datetime) -> bool:
    """Return whether an entry was made before a moment.

    Its ``ts`` alone does not prove that, since imported entries keep their times. An id made by keepstone
    contains its creation time in milliseconds.
    """
    try:
        made = UUID(record["id"])
    except ValueError:
        is_older = True
    else:
        # The first 48 of the 128 bits count the milliseconds.
        is_older = made.version != _TIMED or (made.int >> 80) * 1000 <= microseconds(moment)
    written = read_time(record["ts"])
    return is_older and written is not None and written <= moment


def _noting(offsets: list[int], lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines, and collect the offsets of unreadable ones."""
    for line in lines:
        if line.record is None:
            offsets.append(line.offset)
        yield line


def _places(fd: int, offsets: Sequence[int]) -> str:
    """Return the places of the first lines as text: line numbers, as editors count them, and byte offsets."""
    named = offsets[:_MOST_PLACES]
    places = [f"line {number:,} (byte {at:,})" for number, at in zip(_numbers(fd, named), named, strict=True)]
    more = len(offsets) - len(named)
    return ", ".join(places) + (f" and {more:,} more" if more else "")


def _numbers(fd: int, offsets: Iterable[int]) -> Iterator[int]:
    """Yield the number of the line that begins at each offset; the offsets must be sorted."""
    number, at = 1, 0
    for offset in offsets:
        # Read in pieces, as a log may be larger than the memory.
        while at < offset and (chunk := os.pread(fd, min(_CHUNK, offset - at), at)):
            number += chunk.count(b"\n")
            at += len(chunk)
        yield number


def _counted(subject: str, fold: Fold, scan: Scan, places: Callable[[], str]) -> Iterator[Finding]:
    if fold.unreadable:
        message = f"{counted(fold.unreadable, 'unreadable line')}, skipped: {places()}"
        remedy = f"mend the lines in a text editor, or take them out: {_FIX}"
        yield Finding(
            "error", subject, message, remedy, "their content is not remembered; all other lines are"
        )
    if scan.torn:
        message = f"{counted(scan.torn, 'line')} at the end, the beginning of a batch, hidden"
        cost = (
            "nothing if a write was cut short: it never succeeded. If you removed the end of the batch, "
            'delete the key "batch" in these lines to see them; the next write moves them to an original'
        )
        yield Finding("warning", subject, message, _FIX, cost)
    if scan.rest:
        message = "the last line has no newline; the next write ends it"
        cost = "its content is not remembered" if scan.unread else "it is not recalled before that"
        yield Finding("warning", subject, message, _FIX, cost)
    if fold.ignored:
        message = f"{counted(fold.ignored, 'patch')} without an entry, ignored"
        cost = "nothing: they speak of entries that are gone"
        yield Finding("warning", subject, message, "keepstone compact", cost)


def _folder(logs: AgentLogs, layout: Layout) -> Iterator[Finding]:
    taken = {name for _, name, _ in logs.files()}
    entries = list(logs.folder.scan())
    locks = {lock_file(entry.name, layout.extension) for entry in entries}
    for entry in entries:
        subject = f"{logs.agent}/{entry.name}"
        session = logs.layout.session_of(entry.name)
        if entry.name.endswith(TEMPORARY):
            yield _left_by_a_rewrite(subject)
        elif entry.name.endswith(LOCK) and not entry.name.startswith(".") and entry.name not in locks:
            yield Finding("warning", subject, "a lock file without its log", _FIX, "nothing")
        elif session is None or entry.name in taken:
            continue
        elif not entry.is_file(follow_symlinks=False):
            cost = "its entries are not seen, and nothing can be added to the session"
            yield Finding("error", subject, "a link, folder or device, not a log", "move it away", cost)
        else:
            message = f"a second file for session {session!r}; the canonical one is used"
            remedy = "move its lines to the other file, then remove it"
            yield Finding("error", subject, message, remedy, "its entries are not seen")


def _left_by_a_rewrite(subject: str) -> Finding:
    message = "left by a rewrite that was cut short; the next write removes it"
    return Finding("warning", subject, message, _FIX, "entries that are purged until then stay in it")


def _archives(logs: AgentLogs) -> Iterator[Finding]:
    """Check the other files in the archive folder; sessions' archives are checked with their logs."""
    try:
        names = [entry.name for entry in logs.folder.scan(ARCHIVE)]
    except FileNotFoundError:
        return
    taken = {name for _, name, _ in logs.files()}
    for name in sorted(names):
        subject = f"{logs.agent}/{ARCHIVE}/{name}"
        if name.endswith(TEMPORARY):
            yield _left_by_a_rewrite(subject)
        elif log_of(name) is None and logs.layout.session_of(name) is not None and name not in taken:
            remedy = "put its log back, or remove it"
            yield Finding(
                "warning", subject, "an archive without its log", remedy, "its entries are not seen"
            )
    for name in sorted(original_names(logs.folder)):
        message = "a log as it was before a repair; remove it when you no longer need it"
        cost = "space; a purge finds there only lines that can be read"
        yield Finding("ok", f"{logs.agent}/{ARCHIVE}/{name}", message, "", cost)


def _marks(logs: AgentLogs) -> list[Finding]:
    marks = PurgeMarks(logs.folder)
    try:
        pending = len(marks.pending())
    finally:
        marks.close()
    if not pending:
        return []
    message = f"{pending} purge(s) begun and not yet ended"
    remedy = f"end the programs that still read this home, then: {_FIX}"
    return [Finding("warning", logs.agent, message, remedy, "purged bytes may still be on the disk")]


def _suggestions(logs: AgentLogs, layout: Layout) -> Iterator[Finding]:
    """Find lines that are neither a suggestion nor a decision about one, and are ignored."""
    # A home whose layout has only one agent has no such file.
    if "{agent}" not in layout.sessions:
        return
    path = layout.beside(logs.root, logs.agent, SUGGESTIONS)
    try:
        unread = len(unreadable_lines(suggestion_file.read(path, logs.root)))
    except KeepstoneError as error:
        yield Finding(
            "error", f"{logs.agent}/{path.name}", str(error), "move it away", "no entry can be purged"
        )
        return
    if unread:
        message = f"{counted(unread, 'line')} that say no suggestion, or another state than was decided"
        yield Finding("warning", f"{logs.agent}/{path.name}", message, "remove them", "they are ignored")


def _index(logs: AgentLogs, *, deep: bool) -> list[Finding]:
    try:
        known = logs.index.known()
        damage = [*check.damage(logs.index)] if deep else []
        files = check.damaged_files(logs.index) if deep else []
    except (UnavailableError, DamagedError, CorruptLogError) as error:
        message = f"the index cannot be used: {error}"
        return [
            Finding(
                "error", logs.agent, message, _REBUILD, "recall answers from a part of the memory, or fails"
            )
        ]
    findings = [
        Finding("error", logs.agent, f"the index: {trouble}", _REBUILD, _SLOWER) for trouble in damage
    ]
    if files:
        message = f"{len(files)} file(s) of vectors or graphs damaged or left over: {', '.join(files[:3])}"
        cost = "nothing is answered from them; recall by meaning is slower"
        findings.append(Finding("warning", logs.agent, message, f"{_FIX} --deep", cost))
    behind = [
        session for session, name, status in logs.files() if known.get(session) != (name, stat_of(status))
    ]
    if behind:
        message = f"the index is behind the log of {len(behind)} session(s)"
        cost = "nothing: the next recall takes in the missing lines, and takes longer"
        findings.append(Finding("warning", logs.agent, message, "keepstone index", cost))
    return findings


def _rows(logs: AgentLogs, session: str) -> list[Finding]:
    try:
        count = check.differing(logs.index, session, logs.log(session))
    except UnavailableError as error:
        message = f"the index could not be compared: {error}"
        return [Finding("warning", f"{logs.agent}/{session}", message, "keepstone doctor --deep", "")]
    if not count:
        return []
    message = f"the index holds {counted(count, 'entry')} otherwise than the log"
    return [Finding("error", f"{logs.agent}/{session}", message, _REBUILD, _SLOWER)]


class SecretSearch:
    """Searches lines that others read for secrets; reports the secrets' places, never their values."""

    def __init__(self, agent: str, *, deep: bool) -> None:
        self._agent = agent
        self._deep = deep
        self._found: dict[tuple[str, str], list[str]] = {}

    def watching(self, session: str) -> Watch:
        """Return a ``Watch`` that searches the lines of a session's log."""

        def watch(lines: Iterable[Line], size: int) -> Iterator[Line]:
            begin = 0 if self._deep else size - NEWEST
            for line in lines:
                if line.offset >= begin:
                    self._note_secrets(session, line)
                yield line

        return watch

    def _note_secrets(self, session: str, line: Line) -> None:
        # Search the bytes first, as hardly any line has a secret; search each value only if the bytes contain
        # one.
        kinds = kinds_in(line.raw.decode("utf-8", "replace"))
        if not kinds:
            return
        entry_id = id_of(line.record) if line.record is not None else None
        if line.record is not None:
            # If a secret is spread over several values, no single value has it: report the kinds in the
            # bytes.
            kinds = [secret.kind for secret in secrets_in(line.record)] or kinds
        known = self._found.setdefault((session, entry_id or ""), [])
        known += [kind for kind in dict.fromkeys(kinds) if kind not in known]

    def findings(self) -> Iterator[Finding]:
        """Yield a warning for each of the first twenty entries with a secret, and one for the rest."""
        cost = "anyone who can read the home, a copy of it or a prompt made from it has the secret"
        for (session, entry_id), kinds in list(self._found.items())[:_MOST_SECRETS]:
            subject = f"{self._agent}/{masked(session)}"
            suspect = f"what looks like a secret: {', '.join(kinds)}"
            if entry_id:
                words = ("purge", masked(entry_id), "--session", masked(session), "--agent", self._agent)
                message, remedy = (
                    f"entry {masked(entry_id)} holds {suspect}",
                    f"keepstone {shlex.join(words)}",
                )
            else:
                message, remedy = f"a line without an entry holds {suspect}", "take it out with a text editor"
            yield Finding("warning", subject, message, remedy, cost)
        more = len(self._found) - _MOST_SECRETS
        if more > 0:
            message = f"{more:,} more entries hold what looks like a secret"
            yield Finding("warning", self._agent, message, "purge the first ones, then look again", cost)
