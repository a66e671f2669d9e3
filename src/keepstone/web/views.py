"""View data for the list components: sessions, entries, hits and notes as plain objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from keepstone.log.line import format_time
from keepstone.model import Entry, Hit, Hits, SessionInfo, SessionSummary, Version
from keepstone.notes.notes import MemoryEntry
from keepstone.operations.payload import unindexed
from keepstone.operations.shown_hits import by_relevance, reasons_of, sureness_of
from keepstone.recall.echo import QUOTES
from keepstone.store.decay import worth_of
from keepstone.text.display import clipped, counted, size
from keepstone.text.tokenizer import WORD, stem
from keepstone.web.diff import MOST_STEPS, Budget, word_diff
from keepstone.web.message_parts import is_held, part_views
from keepstone.web.phrases import LONGEST, ago, key_of, local, moment, shown
from keepstone.web.site import Place

View = dict[str, Any]

_SIDES = {"user": "me", "human": "me", "assistant": "agent", "ai": "agent", "model": "agent"}
_TONES = ("decision", "finding", "preference")
_NAMES = {"words": "words", "vectors": "meaning", "neighbours": "near it", "exact": "rare words"}
_COLOURS = {"words": "words", "vectors": "meaning", "neighbours": "near"}
_START = 40
_PIECES = re.compile(f"({WORD.pattern})")
_NEAR = 600
_MOST_COMPARED = 5
"""Minimum number of versions compared per entry; versions that differ little cost almost nothing."""


def session_view(
    info: SessionInfo, place: Place, now: datetime, summary: SessionSummary | None = None
) -> View:
    """Return a session as a row."""
    changed = info.modified if summary is None else summary.changed
    is_chat = summary is not None and summary.is_chat and place.sees_notes
    return {
        "key": key_of(info.id),
        "shown": shown(info.id),
        "title": shown(summary.title or "") if summary else "",
        "entries": f"{summary.entries:,}" if summary else "",
        "preview": shown(summary.preview) if summary else "",
        "href": place.link("chat", session=info.id) if is_chat else place.link("session", id=info.id),
        "chat": is_chat,
        "exported": place.link("export", session=info.id),
        "iso": format_time(changed),
        "moment": moment(changed),
        "ago": ago(changed, now),
        "size": size(info.size),
    }


def entry_views(
    entries: Iterable[Entry],
    now: datetime,
    whole: frozenset[str] = frozenset(),
    place: Place | None = None,
) -> list[View]:
    """Return entries as a conversation with a heading per day; those in ``whole`` are not clipped.

    With a place, the tags are links, and each entry has its own address.
    """
    views, day = [], ""
    for entry in entries:
        views.append(_entry_view(entry, now, place, whole=entry.id in whole))
        today = f"{local(entry.ts):%A, %-d %B %Y}"
        views[-1]["day"] = "" if today == day else today
        day = today
    return views


def _entry_view(entry: Entry, now: datetime, place: Place | None, *, whole: bool) -> View:
    text, role = words_of(entry), entry.data.get("role")
    return {
        "key": key_of(entry.id),
        "id": shown(entry.id),
        "type": shown(entry.type),
        "tone": tone_of(entry.type),
        "who": _speaker(entry),
        "side": _SIDES.get(role, "nobody") if isinstance(role, str) else "nobody",
        "text": shown(text if whole else clipped(text, LONGEST)),
        "parts": _quote_parts(entry, text if whole else clipped(text, LONGEST), place),
        "chips": [part["text"] for part in part_views(entry) if part["kind"] == "file"],
        "iso": format_time(entry.ts),
        "moment": moment(entry.ts),
        "time": f"{local(entry.ts):%H:%M}",
        **marks_of(entry, now, place),
    }


def _quote_parts(entry: Entry, text: str, place: Place | None) -> list[View]:
    """Return the parts of an answer that quotes entries: the line below each quote leads to its entry."""
    parts: list[View] = []
    begin = 0
    for link in entry.links if place else ():
        session, target = (link.get("session"), link.get("to")) if isinstance(link, dict) else (None, None)
        if not (isinstance(session, str) and isinstance(target, str) and link.get("rel") == QUOTES):
            continue
        # This is the line that the offline answer writes below each quote: two spaces, a date of ten
        # characters, and the session.
        line = re.compile(rf"(?<=\n)  .{{10}}, .*, session {re.escape(session)}$", re.MULTILINE)
        if place and (found := line.search(text, begin)):
            href = place.link("session", id=session, entry=target)
            parts += [
                {"text": shown(text[begin : found.start() + 2]), "href": ""},
                {"text": shown(found[0].strip()), "href": href},
            ]
            begin = found.end()
    return [*parts, {"text": shown(text[begin:]), "href": ""}] if parts else []


def marks_of(entry: Entry, now: datetime, place: Place | None) -> View:
    """Return the values that entries and hits show beside their text."""
    return {
        "entryKey": key_of(entry.id),
        "sessionKey": key_of(entry.session),
        "session": shown(entry.session),
        "pinned": entry.pinned,
        "tags": [
            {"name": shown(tag), "href": place.link("timeline", tag=tag) if place else None}
            for tag in entry.tags
        ],
        "href": place.link("session", id=entry.session, entry=entry.id) if place else "",
        "rest": [
            {"key": shown(key), "value": shown(clipped(value, _NEAR))}
            for key, value in unindexed(entry)
            if not is_held(entry, key)
        ],
        "note": shown("; ".join(filter(None, (_validity(entry, now), *_doubts(entry))))),
        "worth": _worth(entry, now),
    }


def _validity(entry: Entry, now: datetime) -> str:
    """Return why an entry is not valid now; empty if it is."""
    since, until, expires = entry.valid_from, entry.valid_to, entry.expires
    if until is not None and until <= now:
        return f"superseded {moment(until)}"
    if expires is not None and expires <= now:
        return f"expired {moment(expires)}"
    return f"holds from {moment(since)}" if since is not None and since > now else ""


def _doubts(entry: Entry) -> list[str]:
    """Return an entry's origin, unless it is a person's or missing, and the reason why it is stale."""
    origin, stale = entry.origin or {}, entry.stale
    said = "confirmed" if origin.get("vouched") else f"from {entry.trust}"
    via = f" via {via}" if isinstance(via := origin.get("via"), str) and not origin.get("vouched") else ""
    is_plain = not origin or (origin.get("by") == "user" and not origin.get("vouched"))
    return [*([] if is_plain else [said + via]), *([f"stale: {stale}"] if stale else [])]


def _worth(entry: Entry, now: datetime) -> str:
    """Return the current value of a stored priority; empty if the entry has no priority."""
    if entry.priority is None:
        return ""
    faded = worth_of(entry.line).at(now)
    return f"{faded:.2f} today, {entry.priority:.2f} as stored, {counted(entry.access, 'access')}"


def words_of(entry: Entry) -> str:
    """Return an entry's text without its speaker."""
    speaker = speaker_of(entry)
    return entry.text.removeprefix(f"{speaker}: ") if speaker else entry.text


def _speaker(entry: Entry) -> str:
    who = speaker_of(entry)
    return shown(who[:1].upper() + who[1:])


def speaker_of(entry: Entry) -> str:
    """Return the speaker or role of an entry; empty if it has none."""
    named = (entry.data.get(key) for key in ("speaker", "name", "role"))
    return next((name for name in named if isinstance(name, str) and name.strip()), "")


def tone_of(type_: str) -> str:
    """Return the colour class of a type."""
    return type_ if type_ in _TONES else "other"


def version_views(versions: Sequence[Version]) -> list[View]:
    """Return the versions of an entry, latest first."""
    views: list[View] = []
    # An entry may have hundreds of versions. Together they share the steps of five full comparisons,
    # beginning with the newest.
    budget = Budget(_MOST_COMPARED * MOST_STEPS)
    for number, version in reversed([*enumerate(versions)]):
        before = clipped(words_of(versions[number - 1]), LONGEST) if number else None
        text = clipped(words_of(version), LONGEST)
        said = [("", text)] if before is None or version.deleted else word_diff(before, text, budget)
        views.append(
            {
                "at": number,
                "moment": moment(version.written),
                "what": _change(number, version),
                "parts": [{"kind": kind, "text": shown(part)} for kind, part in said],
                "restorable": not version.deleted and number < len(versions) - 1,
            }
        )
    return views


def _change(number: int, version: Version) -> str:
    if version.deleted:
        return "deleted"
    return "changed" if number else "made"


def hit_views(hits: Hits, place: Place, now: datetime | None = None) -> list[View]:
    """Return hits, the most relevant first, with the parts of their scores scaled to the best one."""
    # Bars of all hits have one scale, so that their lengths can be compared.
    scale = max((_total(hit.why.parts) for hit in hits), default=0.0)
    moment_now = now or datetime.now(UTC)
    return [_hit_view(hit, place, scale, moment_now) for hit in by_relevance(hits)]


def _hit_view(hit: Hit, place: Place, scale: float, now: datetime) -> View:
    entry = hit.entry
    is_shared = entry.agent != place.agent.slug
    parts = [_part(name, value, scale) for name, value in hit.why.parts.items() if value]
    return {
        "key": "".join(map(key_of, entry.key)),
        "id": shown(entry.id),
        "who": _speaker(entry),
        # Another agent's shared entries can be read here, but changed only on the pages of that agent.
        **marks_of(entry, now, None if is_shared else place),
        "shared": is_shared,
        "session": shown(f"{entry.agent}: {entry.session}" if is_shared else entry.session),
        "type": shown(entry.type),
        "tone": tone_of(entry.type),
        "iso": format_time(entry.ts),
        "moment": moment(entry.ts),
        "text": shown(clipped(words_of(entry), 1200)),
        "marked": _marked(shown(clipped(words_of(entry), 1200)), hit.why.words),
        "score": f"{hit.score:.2f}",
        "relevance": f"{hit.relevance:.2f}",
        "length": f"{hit.relevance:.0%}",
        "sureness": sureness_of(hit.relevance),
        "parts": parts,
        "sum": "Score is the sum of " + ", ".join(part["label"] for part in parts),
        "said": _sentence(hit),
        "details": _details(hit),
        "before": [_near(near) for near in hit.neighbours if near.ts < entry.ts],
        "after": [_near(near) for near in hit.neighbours if near.ts >= entry.ts],
    }


def _marked(text: str, words: Iterable[str]) -> list[View]:
    """Return the parts of a text, with the query's words marked in all their forms."""
    wanted = {stem(word) for word in words}
    parts: list[View] = []
    for piece in filter(None, _PIECES.split(text)):
        kind = "mark" if stem(piece.casefold()) in wanted else ""
        # Pieces without a mark are joined, as each part becomes an element in the browser.
        if parts and parts[-1]["kind"] == kind == "":
            parts[-1]["text"] += piece
        else:
            parts.append({"kind": kind, "text": piece})
    return parts


def _total(parts: Mapping[str, float]) -> float:
    return sum(abs(value) for value in parts.values())


def _part(name: str, value: float, scale: float) -> View:
    return {
        "name": name,
        "label": f"{_NAMES.get(name, name)} {value:.2f}".replace("-", "\u2212"),
        "tone": "less" if value < 0 else _COLOURS.get(name, "more"),
        "width": f"{100 * abs(value) / scale:.1f}%",
    }


def _sentence(hit: Hit) -> list[View]:
    """Return why a hit was found as the parts of a sentence, the query's words marked."""
    parts: list[View] = []
    for reason, *words in reasons_of(hit):
        parts.append({"kind": "", "text": ("; " if parts else "") + shown(reason)})
        for at, word in enumerate(words):
            between = " " if at == 0 else " and " if at == len(words) - 1 else ", "
            parts += [{"kind": "", "text": between}, {"kind": "em", "text": shown(word)}]
    return parts


def _details(hit: Hit) -> list[str]:
    why = hit.why
    cosine = [f"cosine {why.cosine:.2f}"] if why.cosine is not None else []
    replaced = [f"supersedes {', '.join(why.supersedes)}"] if why.supersedes else []
    return [shown(detail) for detail in (*cosine, *replaced)]


def _near(entry: Entry) -> View:
    return {"key": key_of(entry.id), "text": shown(clipped(words_of(entry), _NEAR))}


def note_views(notes: Iterable[MemoryEntry]) -> list[View]:
    """Return notes as rows."""
    return [
        {
            "key": f"{note.line}:{note.content}",
            "content": note.content,
            "shown": shown(note.content),
            "start": shown(clipped(note.content, _START)),
            "line": note.line,
        }
        for note in notes
    ]
