"""What a look at an agent's logs and index finds. Nothing is changed."""

from __future__ import annotations

from recollect.errors import CorruptLogError
from recollect.fold import Fold
from recollect.index import DamagedError, UnavailableError
from recollect.layout import TEMPORARY
from recollect.log import Log, stat_of
from recollect.model import Finding
from recollect.scan import Scan
from recollect.store.agent_logs import AgentLogs


def examine(logs: AgentLogs) -> list[Finding]:
    """Return what is wrong with an agent, or one finding that all is well."""
    findings = [*_folder(logs), *_index(logs)]
    entries = 0
    for session, _, _ in logs.files():
        fold, found = _log(f"{logs.agent}/{session}", logs.log(session))
        _, archived = _log(f"{logs.agent}/{session} (archive)", logs.archive(session))
        entries += len(fold.entries)
        findings += found + archived
    if not any(finding.level != "ok" for finding in findings):
        findings.append(Finding("ok", logs.agent, f"{entries:,} entries, every line readable, index in step"))
    return findings


def _log(subject: str, log: Log) -> tuple[Fold, list[Finding]]:
    fold = Fold()
    with log.reading() as fd:
        if fd is None:
            return fold, []
        scan = Scan(fd, unfinished=True)
        fold.take(scan)
    return fold, [*_counted(subject, fold, scan)]


def _counted(subject: str, fold: Fold, scan: Scan) -> list[Finding]:
    findings = []
    if fold.unreadable:
        remedy = "mend the lines in a text editor; recollect goes on without them"
        findings.append(Finding("error", subject, f"{fold.unreadable} unreadable line(s), skipped", remedy))
    if scan.torn:
        findings.append(
            Finding("warning", subject, f"{scan.torn} line(s) of a batch whose write was cut short, hidden")
        )
    if scan.rest:
        findings.append(Finding("warning", subject, "the last line has no newline; the next write ends it"))
    if fold.ignored:
        findings.append(Finding("warning", subject, f"{fold.ignored} patch(es) without an entry, ignored"))
    return findings


def _folder(logs: AgentLogs) -> list[Finding]:
    findings = []
    taken = {name for _, name, _ in logs.files()}
    for entry in logs.folder.scan():
        subject = f"{logs.agent}/{entry.name}"
        session = logs.session_of(entry.name)
        if entry.name.endswith(TEMPORARY):
            findings.append(
                Finding("warning", subject, "left by a rewrite that was cut short; the next write removes it")
            )
        elif session is None:
            continue
        elif not entry.is_file(follow_symlinks=False):
            findings.append(Finding("error", subject, "a link, folder or device, not a log", "move it away"))
        elif entry.name not in taken:
            message = f"a second file for session {session!r}; the canonical one is used"
            findings.append(
                Finding("error", subject, message, "move its lines to the other file, then remove it")
            )
    return findings


def _index(logs: AgentLogs) -> list[Finding]:
    try:
        known = logs.index.known()
    except (UnavailableError, DamagedError, CorruptLogError) as error:
        return [
            Finding("error", logs.agent, f"the index cannot be used: {error}", "recollect index --rebuild")
        ]
    behind = [
        session for session, name, status in logs.files() if known.get(session) != (name, stat_of(status))
    ]
    if not behind:
        return []
    message = f"the index is behind the log of {len(behind)} session(s)"
    return [Finding("warning", logs.agent, message, "recollect index")]
