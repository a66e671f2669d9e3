"""The JSON documents of ``--json`` and the server.

docs/json.md is their contract: fields are never removed, new ones may be added.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from keepstone.context.block import Context, Part
from keepstone.errors import StoreError
from keepstone.log.line import format_time, payload_of
from keepstone.model import (
    CHAT,
    PROGRAM,
    BackupInfo,
    Conflict,
    ConflictingPair,
    Entry,
    Finding,
    Hit,
    Hits,
    Purged,
    Record,
    SessionInfo,
    SessionSummary,
    Suggestion,
    Version,
    Why,
)
from keepstone.notes.importing import Offer
from keepstone.notes.notes import MemoryEntry, SaveResult
from keepstone.operations import answers
from keepstone.store.changes import Change
from keepstone.store.sharing.grants import Grant
from keepstone.text.display import clipped, one_line

Document = Mapping[str, Any]
"""A JSON object to print or send."""


def entry_document(entry: Entry) -> answers.Entry:
    """Return an entry in the shape of its log line, with its agent and session.

    The document has ``trust`` unless that is ``program``, and ``stale``, the reason, if the entry is stale. A
    flat payload that has one of these keys is nested under ``data``.
    """
    # The document is flat: a payload's own ``trust``, which may have any value, would look like ours.
    line = entry.line if _JUDGED.isdisjoint(entry.line) else _nested(entry.line)
    judged = {"trust": None if entry.trust == PROGRAM else entry.trust, "stale": entry.stale}
    shown = {key: value for key, value in judged.items() if value is not None}
    return cast("answers.Entry", {**record_document(entry.agent, entry.session, line), **shown})


_JUDGED = frozenset({"trust", "stale"})


def added_document(entry: Entry) -> answers.AddedEntry:
    """Return an entry that was just added, with its conflicts if it has any; chat entries have none."""
    found: tuple[Conflict, ...] = ()
    with suppress(StoreError):  # The entry is already stored: after an error, callers would add it twice.
        found = () if entry.type in CHAT else entry.conflicts
    conflicts: list[answers.Conflict] = [
        {"id": conflict.id, "session": conflict.session, "kind": conflict.kind} for conflict in found
    ]
    if not conflicts:
        return cast("answers.AddedEntry", entry_document(entry))
    if "conflicts" not in entry.line:
        return {**entry_document(entry), "conflicts": conflicts}
    return {**record_document(entry.agent, entry.session, _nested(entry.line)), "conflicts": conflicts}


def record_document(agent: str, session: str, record: Record) -> answers.Entry:
    """Return the document of a record of ``Session.records``, many times faster than ``entry_document``.

    As in ``Entry.as_dict``, the number of the entry's life is left out.
    """
    document = line_document(agent, session, record)
    document.pop("life", None)
    return cast("answers.Entry", document)


def line_document(agent: str, session: str, record: Record) -> Record:
    """Return a log line with its agent and session, as in exports, including the number of its life."""
    # A payload's own ``agent`` or ``session`` must not replace those of the entry.
    if "agent" in record or "session" in record:
        record = _nested(record)
    return {"agent": agent, "session": session, **record}


def _nested(line: Record) -> Record:
    payload = payload_of(line)
    beside = {"agent", "session", *_JUDGED} if payload is line.get("data") else payload.keys()
    return {key: value for key, value in line.items() if key not in beside} | {"data": payload}


def version_document(version: Version) -> answers.Version:
    """Return a version of an entry: the entry, when it was written and whether it is a deletion.

    A flat payload that has a key ``written`` is also nested under ``data``.
    """
    line = _nested(version.line) if "written" in version.line else version.line
    entry = record_document(version.agent, version.session, line)
    return {**entry, "written": format_time(version.written), "deleted": version.deleted}


def why_document(why: Why) -> answers.Why:
    """Return the reasons why a hit was found."""
    supersedes: Mapping[str, Any] = {"supersedes": list(why.supersedes)} if why.supersedes else {}
    document: Document = {
        "ranks": dict(why.ranks),
        "words": list(why.words),
        "parts": dict(why.parts),
        "cosine": why.cosine,
        "boosts": list(why.boosts),
        "text": str(why),
    }
    return cast("answers.Why", {**document, **supersedes})


def hit_document(hit: Hit) -> answers.Hit:
    """Return one hit."""
    return {
        "kind": hit.kind,
        "entry": None if hit.excerpt is not None else entry_document(hit.entry),
        "path": hit.path,
        "line": hit.line,
        "text": hit.text,
        "trust": hit.entry.trust if hit.excerpt is None else None,
        "stale": hit.entry.stale if hit.excerpt is None else None,
        "passage": hit.passage,
        "score": hit.score,
        "relevance": hit.relevance,
        "why": why_document(hit.why),
        "neighbours": [entry_document(entry) for entry in hit.neighbours],
    }


def grant_document(grant: Grant) -> answers.Grant:
    """Return a grant in the shape of its line."""
    return cast("answers.Grant", grant.as_dict())


def pair_document(pair: ConflictingPair) -> answers.ConflictingPair:
    """Return two entries that repeat or contradict one another, the newer one first."""
    return {"kind": pair.kind, "entries": [entry_document(entry) for entry in pair]}


def hits_document(hits: Hits) -> answers.Recall:
    """Return the hits of a recall, best first, and how they were found."""
    return {"hits": [hit_document(hit) for hit in hits], **recall_state_document(hits)}


def recall_state_document(hits: Hits) -> answers.RecallState:
    """Return the state of a recall, such as its embedder and the number of entries without a vector."""
    return {
        "nothing_relevant": hits.nothing_relevant,
        "lexical_only": hits.lexical_only,
        "embedder": hits.embedder,
        "reason": hits.reason,
        "pending": hits.pending,
        "stale": hits.stale,
        "skipped": list(hits.skipped),
        "took_ms": hits.took_ms,
    }


def context_document(context: Context) -> answers.Context:
    """Return a context block, the entries of its parts, and what was left out."""
    return {
        "text": context.text,
        "tokens": context.tokens,
        "stable": context.stable,
        "parts": [part_document(part) for part in context.parts],
        "left_out": [
            {"kind": left.kind, "source": left.source, "reason": left.reason, "count": left.count}
            for left in context.left_out
        ],
        "sources": [
            {"ref": source.ref, "session": source.session, "id": source.id} for source in context.sources
        ],
    }


def part_document(part: Part) -> answers.Part:
    """Return one part of a context."""
    return {
        "kind": part.kind,
        "text": part.text,
        "tokens": part.tokens,
        "entries": [entry_document(entry) for entry in part.entries],
        "items": [
            {"source": item.source, "tokens": item.tokens, "remark": item.remark} for item in part.items
        ],
    }


def session_document(info: SessionInfo) -> answers.Session:
    """Return a session's id, time of change and size."""
    return {"id": info.id, "modified": format_time(info.modified), "size": info.size}


def summary_document(summary: SessionSummary) -> answers.SessionSummary:
    """Return a session's title, number of entries, time of change and preview."""
    return {
        "id": summary.id,
        "title": summary.title,
        "named": summary.named,
        "entries": summary.entries,
        "changed": format_time(summary.changed),
        "preview": summary.preview,
    }


def change_document(change: Change) -> answers.SessionChange:
    """Return a change of a session."""
    return {
        "agent": change.agent,
        "session": change.session,
        "id": change.id,
        "kind": change.kind,
        "cursor": change.cursor,
    }


def finding_document(finding: Finding) -> answers.Finding:
    """Return one finding of the doctor."""
    return {
        "level": finding.level,
        "subject": finding.subject,
        "message": finding.message,
        "cost": finding.cost,
        "remedy": finding.remedy,
    }


def backup_document(info: BackupInfo) -> answers.Backup:
    """Return the result of a backup."""
    return {
        "folder": str(info.folder),
        "agents": info.agents,
        "sessions": info.sessions,
        "entries": info.entries,
        "files": info.files,
        "size": info.size,
        "findings": [finding_document(finding) for finding in info.findings],
    }


def suggestion_document(suggestion: Suggestion) -> answers.Suggestion:
    """Return a suggestion in the shape of its line, with its state and its decision."""
    return {
        "id": suggestion.id,
        "do": suggestion.do,
        "entries": [*suggestion.entries],
        "item": suggestion.item,
        "why": suggestion.why,
        "evidence": [*suggestion.evidence],
        "by": suggestion.by,
        "ts": format_time(suggestion.ts),
        "state": suggestion.state,
        "decided_by": suggestion.decided_by,
        "decided": None if suggestion.decided is None else format_time(suggestion.decided),
    }


def purged_document(found: Purged, *, dry_run: bool) -> answers.PurgedMatches:
    """Return the entries, sessions and files that contained a text and were purged, or would be."""
    document: answers.PurgedMatches = {
        "purged": not dry_run,
        "entries": [{"session": session, "id": entry_id} for session, entry_id in found.entries],
        "sessions": list(found.sessions),
        "files": list(found.files),
    }
    if found.suggestions:
        document["suggestions"] = list(found.suggestions)
    return document


def note_document(note: MemoryEntry) -> answers.Note:
    """Return a note with its file and line."""
    return {"content": note.content, "type": note.type, "source": note.source, "line": note.line}


def saved_document(result: SaveResult) -> answers.SavedNote:
    """Return the result of saving a note."""
    twin = result.duplicate_of
    return {
        "saved": result.saved,
        "note": note_document(result.entry),
        "duplicate_of": None if twin is None else note_document(twin),
    }


_SHORT = 200
"""Maximum characters of a note in a sentence."""


def saved_words(result: SaveResult) -> str:
    """Return where a note was saved, or which note says the same, as a sentence for people.

    Examples:
        >>> saved_words(Notes(".", user_file="memory.md").add("Use pnpm", "Project"))
        'Saved as a Project note: …AGENTS.md:3'
    """
    entry, twin = result.entry, result.duplicate_of
    where = f"{entry.source}:{entry.line}"
    if not result.saved:
        return one_line(f"Not saved: {where} already says “{clipped(entry.content, _SHORT)}”")
    also = f". The {twin.type} notes say the same: {twin.source}:{twin.line}" if twin else ""
    return one_line(f"Saved as a {entry.type} note: {where}{also}")


def offer_document(offer: Offer) -> answers.Offer:
    """Return a bullet of another agent's file that can be imported."""
    return {
        "content": offer.content,
        "source": offer.source,
        "line": offer.line,
        "duplicate_of": offer.duplicate_of,
    }
