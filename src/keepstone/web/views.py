"""View data for the list components: sessions, entries, hits and notes as plain objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from keepstone.log.line import format_time
from keepstone.model import Entry, Hit, Hits, SessionInfo, Version
from keepstone.notes.notes import MemoryEntry
from keepstone.store.decay import worth_of
from keepstone.text.display import clipped, counted, size
from keepstone.web.phrases import LONGEST, ago, key_of, moment, shown
from keepstone.web.site import Place

View = dict[str, Any]

_SIDES = {"user": "me", "human": "me", "assistant": "agent", "ai": "agent", "model": "agent"}
_TONES = ("decision", "finding", "preference")
_NAMES = {"words": "words", "vectors": "meaning", "neighbours": "near it", "boosts": "named in the query"}
_COLOURS = {"words": "words", "vectors": "meaning", "neighbours": "near"}
_START = 40
_NEAR = 600


def session_view(info: SessionInfo, place: Place, now: datetime) -> View:
    """Return a session as a row."""
    return {
        "key": key_of(info.id),
        "shown": shown(info.id),
        "href": place.link("session", id=info.id),
        "iso": format_time(info.modified),
        "moment": moment(info.modified),
        "ago": ago(info.modified, now),
        "size": size(info.size),
    }


def entry_views(entries: Iterable[Entry], now: datetime, whole: frozenset[str] = frozenset()) -> list[View]:
    """Return entries as a conversation with a heading per day; those in ``whole`` are not clipped."""
    views, day = [], ""
    for entry in entries:
        views.append(_entry_view(entry, now, whole=entry.id in whole))
        today = f"{entry.ts:%A, %-d %B %Y}"
        views[-1]["day"] = "" if today == day else today
        day = today
    return views


def _entry_view(entry: Entry, now: datetime, *, whole: bool) -> View:
    text, role = words_of(entry), entry.data.get("role")
    who = speaker_of(entry)
    return {
        "key": key_of(entry.id),
        "id": shown(entry.id),
        "type": shown(entry.type),
        "tone": tone_of(entry.type),
        "who": shown(who[:1].upper() + who[1:]),
        "side": _SIDES.get(role, "nobody") if isinstance(role, str) else "nobody",
        "text": shown(text if whole else clipped(text, LONGEST)),
        "clipped": not whole and len(text) > LONGEST,
        "iso": format_time(entry.ts),
        "moment": moment(entry.ts),
        "time": f"{entry.ts:%H:%M}",
        "pinned": entry.pinned,
        "tags": [shown(tag) for tag in entry.tags],
        **_worth(entry, now),
    }


def _worth(entry: Entry, now: datetime) -> View:
    """Return the current value of a stored priority; entries without one show none."""
    if entry.priority is None:
        return {"worth": "", "worthTitle": "", "worthWidth": "0%"}
    faded = worth_of(entry.line).at(now)
    title = f"Priority {faded:.2f} today, {entry.priority:.2f} as stored, {counted(entry.access, 'access')}"
    share = min(1.0, max(0.0, faded))
    return {
        "worth": f"{faded:.2f}",
        "worthTitle": title,
        "worthWidth": f"{share:.0%}",
    }


def words_of(entry: Entry) -> str:
    """Return an entry's text without its speaker."""
    speaker = speaker_of(entry)
    return entry.text.removeprefix(f"{speaker}: ") if speaker else entry.text


def speaker_of(entry: Entry) -> str:
    """Return the speaker or role of an entry; empty if it has none."""
    named = (entry.data.get(key) for key in ("speaker", "name", "role"))
    return next((name for name in named if isinstance(name, str) and name.strip()), "")


def tone_of(type_: str) -> str:
    """Return the colour class of a type."""
    return type_ if type_ in _TONES else "other"


def version_views(versions: Sequence[Version]) -> list[View]:
    """Return the versions of an entry, latest first."""
    views = [
        {
            "moment": moment(version.written),
            "what": _change(number, version),
            "text": shown(clipped(words_of(version), LONGEST)),
        }
        for number, version in enumerate(versions)
    ]
    return views[::-1]


def _change(number: int, version: Version) -> str:
    if version.deleted:
        return "deleted"
    return "changed" if number else "made"


def hit_views(hits: Hits, place: Place) -> list[View]:
    """Return hits, with bars scaled to the best one."""
    scale = max((_total(hit.why.parts) for hit in hits), default=0.0)
    return [_hit_view(hit, place, scale) for hit in hits]


def _hit_view(hit: Hit, place: Place, scale: float) -> View:
    entry = hit.entry
    parts = [_part(name, value, scale) for name, value in hit.why.parts.items() if value]
    return {
        "key": key_of(entry.session) + key_of(entry.id),
        "id": shown(entry.id),
        "session": shown(entry.session),
        "href": place.link("session", id=entry.session, entry=entry.id),
        "type": shown(entry.type),
        "tone": tone_of(entry.type),
        "iso": format_time(entry.ts),
        "moment": moment(entry.ts),
        "text": shown(clipped(words_of(entry), 1200)),
        "score": f"{hit.score:.2f}",
        "parts": parts,
        "sum": "Score is the sum of " + ", ".join(part["label"] for part in parts),
        "reasons": _reasons(hit),
        "before": [_near(near) for near in hit.neighbours if near.ts < entry.ts],
        "after": [_near(near) for near in hit.neighbours if near.ts >= entry.ts],
    }


def _total(parts: Mapping[str, float]) -> float:
    return sum(abs(value) for value in parts.values())


def _part(name: str, value: float, scale: float) -> View:
    return {
        "name": name,
        "label": f"{_NAMES.get(name, name)} {value:.2f}".replace("-", "\u2212"),
        "tone": "less" if value < 0 else _COLOURS.get(name, "more"),
        "width": f"{100 * abs(value) / scale:.1f}%",
    }


def _reasons(hit: Hit) -> list[str]:
    why = hit.why
    words = [f"holds: {', '.join(why.words)}"] if why.words else []
    cosine = [f"cosine {why.cosine:.2f}"] if why.cosine is not None else []
    return [shown(reason) for reason in (*words, *cosine, *why.boosts)]


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
