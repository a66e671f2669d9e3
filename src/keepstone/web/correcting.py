"""Correcting entries in place: the actions of the menu that entries and hits have."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from keepstone.errors import EntryNotFoundError
from keepstone.model import CHAT, Entry, Record, Version
from keepstone.session import Session
from keepstone.text.display import clipped, counted
from keepstone.web.elements import answer_of as answer_to
from keepstone.web.elements import aside, attempt, box, button, confirmed, dialog, field, link, say, tell
from keepstone.web.phrases import shown
from keepstone.web.site import Place

_UNDO_SECONDS = 20
_LEAST_MATCHED = 8
"""Characters of a text from which a purge looks for other entries that contain it."""
_CONFLICTS = 3
"""Maximum number of conflicts that are named after a change."""
_VERBS = {"duplicate": "repeats", "contradiction": "contradicts"}
_CHANGED = "This entry has changed since the page showed it: nothing was saved, look at it again"

Undo = Callable[[], object]


class Correcting:
    """Carries out what the menu of an entry asks for, and offers to undo it.

    Args:
        place: The place whose agent's entries these are.
        reload: Shows the entries again after a change.
    """

    def __init__(self, place: Place, reload: Callable[[], Awaitable[object]]) -> None:
        self._place = place
        self._reload = reload
        self._bar = box(role="status")
        self._acts: dict[str, Callable[[Session, Entry], Awaitable[None]]] = {
            "edit": self._edit,
            "pin": self._pin,
            "supersede": self._supersede,
            "link": self._link,
            "delete": self._delete,
            "purge": self._purge,
            "raw": self._raw,
        }

    async def act(self, asked: Mapping[str, Any]) -> None:
        """Do what a menu asks for: ``verb``, and the keys of the entry and its session."""
        verb = str(asked["verb"])
        if verb not in self._acts or (self._place.read_only and verb != "raw"):
            return
        session = self._place.agent.session(json.loads(asked["session"]))
        with attempt():
            entry = await aside(self._place.agent.get, json.loads(asked["entry"]), session.id)
            await self._acts[verb](session, entry)

    async def act_on_many(self, verb: str, session: Session, ids: list[str]) -> None:
        """Delete, pin or tag several entries of a session."""
        if self._place.read_only or not ids:
            return
        tags: list[str] = []
        if verb == "tag":
            tags = await _asked_tags(len(ids))
            if not tags:
                return
        with attempt():
            before = [await aside(self._place.agent.get, entry_id, session.id) for entry_id in ids]
            for entry in before:
                if verb == "delete":
                    await aside(session.delete, entry.id)
                else:
                    keys = {"pinned": True} if verb == "pin" else {"tags": _joined(entry.tags, tags)}
                    await aside(session.update, entry.id, **keys)
            done = {"delete": "Deleted", "pin": "Pinned", "tag": "Tagged"}[verb]

            def undo() -> None:
                for entry in before:
                    if verb == "delete":
                        session.restore(entry.id)
                    else:
                        _put_back(session, entry)

            self._offer(f"{done} {counted(len(ids), 'entry')}.", undo)
        await self._reload()

    async def restore_version(self, session: Session, version: Version) -> None:
        """Put an earlier version in the place of an entry; a deleted entry comes back."""
        if self._place.read_only:
            return
        with attempt():
            before = await aside(self._live, session, version.id)
            if before is None:
                await aside(session.restore, version.id)
            item = {key: version.line[key] for key in version.line if key not in _NOT_PUT}
            await aside(session.replace, version.id, item)
            undo = (
                partial(session.delete, version.id) if before is None else partial(_put_back, session, before)
            )
            self._offer("Restored this version.", undo)
        await self._reload()

    def _live(self, session: Session, entry_id: str) -> Entry | None:
        try:
            return self._place.agent.get(entry_id, session.id)
        except EntryNotFoundError:
            return None

    def _conflicts(self, entry: Entry) -> list[tuple[str, str]]:
        """Say what an entry that was just written repeats or contradicts, with the address of each."""
        found = () if entry.type in CHAT else entry.conflicts[:_CONFLICTS]
        others = [(one, self._live(self._place.agent.session(one.session), one.id)) for one in found]
        return [
            (
                f"It {_VERBS[one.kind]} “{clipped(other.text, 80)}”.",
                self._place.link("session", id=one.session, entry=one.id),
            )
            for one, other in others
            if other is not None
        ]

    def _offer(self, words: str, undo: Undo | None, conflicts: Sequence[tuple[str, str]] = ()) -> None:
        """Tell what was done, and offer to undo it for a while."""
        self._bar.clear()
        with self._bar, box(classes="bar-tools told undo"):
            say("span", words)
            for said, href in conflicts:
                link(said, href, "conflict")
            if undo is not None:
                button("Undo", lambda: self._undo(undo), "plain", data_undo="")
            ui.timer(_UNDO_SECONDS, self._bar.clear, once=True)

    async def _undo(self, undo: Undo) -> None:
        with attempt():
            await aside(undo)
            tell("Undone")
        await self._reload()
        self._bar.clear()

    async def _edit(self, session: Session, entry: Entry) -> None:
        form = EntryForm(entry)
        keys = await form.asked("Edit this entry", "Save", with_marks=True)
        if not keys:
            return
        now = await aside(self._place.agent.get, entry.id, session.id)
        if now.line != entry.line:
            raise ValueError(_CHANGED)
        changed = await aside(session.update, entry.id, **keys)
        self._offer("Saved.", lambda: _put_back(session, entry), await aside(self._conflicts, changed))
        await self._reload()

    async def _pin(self, session: Session, entry: Entry) -> None:
        await aside(session.update, entry.id, pinned=None if entry.pinned else True)
        done = "Unpinned." if entry.pinned else "Pinned: always in the context."
        self._offer(done, lambda: _put_back(session, entry))
        await self._reload()

    async def _supersede(self, session: Session, entry: Entry) -> None:
        form = EntryForm(entry)
        item = await form.asked("Supersede with a newer fact", "Supersede", with_marks=False)
        if not item:
            return
        kept = {key: entry.line[key] for key in ("text", "tags") if key in entry.line}
        item = kept | {"data": dict(entry.data)} | item if entry.data else kept | item
        newer = await aside(session.supersede, entry.id, item)
        self._offer(
            "Superseded: the old entry held until now.",
            lambda: session.reinstate(entry.id),
            await aside(self._conflicts, newer),
        )
        await self._reload()

    async def _link(self, session: Session, entry: Entry) -> None:
        with dialog("Link to another entry") as asked:
            target = field("Id of the other entry").props("autofocus")
            rel = field("Relation", value="related")
            _buttons(asked, "Link", lambda: (str(target.value or "").strip(), str(rel.value or "").strip()))
        given = await answer_to(asked)
        if given and all(given):
            await aside(self._place.agent.get, given[0])
            await aside(session.link, entry.id, *given)
            self._offer("Linked.", lambda: _put_back(session, entry))
            await self._reload()

    async def _delete(self, session: Session, entry: Entry) -> None:
        await aside(session.delete, entry.id)
        self._offer(f"Deleted “{clipped(entry.text, 60)}”.", lambda: session.restore(entry.id))
        await self._reload()

    async def _purge(self, session: Session, entry: Entry) -> None:
        versions = await aside(self._place.agent.history, entry.id, session.id)
        words = f"Dry run: removes every byte of this entry with its {counted(len(versions), 'version')}: "
        words += "from log, archive and index. This cannot be undone."
        said = entry.text.strip()
        if len(said) >= _LEAST_MATCHED:
            same = await aside(self._place.agent.purge_matching, said, dry_run=True)
            others = [each for each in same.entries if each != (session.id, entry.id)]
            kinds = ((len(others), "other entry"), (len(same.files), "file"))
            left = " and ".join(counted(count, kind) for count, kind in kinds if count)
            words += f"\n\nThe same text stays in {left}." if left else ""
        if await confirmed("Purge this entry?", f"“{clipped(said, 200)}”\n\n{words}", "Purge"):
            await aside(session.purge, entry.id)
            self._offer("Purged.", None)
            await self._reload()

    async def _raw(self, _: Session, entry: Entry) -> None:
        with dialog("The line of this entry", "broad") as asked:
            text = json.dumps(entry.line, ensure_ascii=False, indent=2)
            say("pre", text, "raw", tabindex="0", aria_label="Line as JSON")
            with box(classes="row-end"):
                button("Close", lambda: asked.submit(None), autofocus=True)
        await answer_to(asked)


_NOT_PUT = frozenset({"deleted", "modified", "access", "ts", "batch", "embedding"})
"""Keys of a version that are not put back with it."""
_MARKS = ("priority", "pinned", "tags", "links", "summary", "valid_from", "valid_to", "expires", "aliases")


def _content(entry: Entry) -> Record:
    return {key: value for key, value in entry.line.items() if key not in _NOT_PUT}


def _put_back(session: Session, entry: Entry) -> None:
    """Give an entry its earlier content and marks again."""
    session.replace(entry.id, _content(entry))
    session.update(entry.id, **{key: entry.line.get(key) for key in _MARKS})


def _joined(tags: tuple[str, ...], more: list[str]) -> list[str]:
    return [*dict.fromkeys((*tags, *more))]


async def _asked_tags(count: int) -> list[str]:
    with dialog(f"Tag {counted(count, 'entry')}") as asked:
        line = field("Tags", "auth, release").props("autofocus")
        _buttons(asked, "Tag", lambda: _names(line.value))
    return list(await answer_to(asked) or ())


def _names(words: object) -> list[str]:
    return [word.strip().removeprefix("#") for word in str(words or "").split(",") if word.strip(" #")]


def _buttons(asked: ui.dialog, verb: str, answer: Callable[[], object]) -> None:
    def submit() -> None:
        with attempt():
            asked.submit(answer())

    with box(classes="row-end"):
        button("Cancel", lambda: asked.submit(None))
        button(verb, submit, "main")


class EntryForm:
    """A form of an entry: its text, its payload as fields or as JSON, and its marks."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._as_json = False

    async def asked(self, title: str, verb: str, *, with_marks: bool) -> Record:
        """Show the form and return the keys that were changed; empty if none or if it was closed."""
        entry = self._entry
        with dialog(title, "broad form") as asked:
            self._type = field("Type", value=entry.type)
            self._text = None
            if "text" in entry.line or not entry.data:
                self._text = _area("Text", entry.text)
            if entry.data:
                self._payload()
            if with_marks:
                with box(classes="row-fields"):
                    self._tags = field("Tags", "auth, release", ", ".join(entry.tags))
                    self._priority = ui.number("Priority", value=entry.priority, min=0, max=1, step=0.05)
                    self._priority.props("outlined dense clearable")
            _buttons(asked, verb, lambda: self._changed(with_marks=with_marks))
        return await answer_to(asked) or {}

    def _payload(self) -> None:
        data = self._entry.data
        with box(classes="row-fields"):
            say("strong", "Payload")
            box(classes="fill")
            self._switch = button("As JSON", self._turn, "quiet")
        with box(classes="stack") as self._form:
            self._fields = {key: _area(shown(key), _editable(value)) for key, value in data.items()}
        self._json = _area("Payload as JSON", json.dumps(data, ensure_ascii=False, indent=2))
        self._json.classes("mono").set_visibility(False)

    def _turn(self) -> None:
        with attempt():
            data = self._data()
            if self._as_json:
                for key, value in data.items():
                    if key in self._fields:
                        self._fields[key].value = _editable(value)
            else:
                self._json.value = json.dumps(data, ensure_ascii=False, indent=2)
            self._as_json = not self._as_json
            self._json.set_visibility(self._as_json)
            self._form.set_visibility(not self._as_json)
            self._switch.text = "As form" if self._as_json else "As JSON"

    def _data(self) -> Record:
        if self._as_json:
            found = _parsed("the payload", self._json.value)
            if not isinstance(found, dict):
                raise ValueError('the payload must be a JSON object, such as {"key": "value"}')
            return found
        old = self._entry.data
        return {key: _value(key, old[key], made.value) for key, made in self._fields.items()}

    def _changed(self, *, with_marks: bool) -> Record:
        entry = self._entry
        keys: Record = {}
        type_ = str(self._type.value or "").strip()
        keys |= {"type": type_} if type_ and type_ != entry.type else {}
        if self._text is not None and self._text.value != entry.text:
            keys["text"] = str(self._text.value or "")
        if entry.data and (data := self._data()) != entry.data:
            keys["data"] = data
        if with_marks:
            tags, priority = _names(self._tags.value), self._priority.value
            keys |= {"tags": tags or None} if tags != [*entry.tags] else {}
            keys |= {"priority": priority} if priority != entry.priority else {}
        return keys


def _area(label: str, value: str) -> ui.textarea:
    made = ui.textarea(label, value=value)
    made.props("outlined dense autogrow").classes("w-full")
    return made


def _editable(value: Any) -> str:
    """Return a payload value for a field: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(key: str, old: Any, text: str) -> Any:
    """Return the value of a field: a text where there was one, else JSON."""
    return text if isinstance(old, str) else _parsed(key, text)


def _parsed(what: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not JSON: {error}") from None
