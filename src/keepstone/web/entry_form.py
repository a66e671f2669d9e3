"""The form of an entry, and the merge of the reader's changes with changes by others."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from nicegui import ui

from keepstone.model import Entry, Record
from keepstone.web import conflict
from keepstone.web.elements import answer_of as answer_to
from keepstone.web.elements import attempt, box, button, dialog, field, say
from keepstone.web.phrases import shown

Save = Callable[[Record], Awaitable[bool]]
"""Saves changed keys of an entry; False to go on editing."""
_Name = tuple[str, ...]
"""A key of an entry, and for ``data`` a key of the payload."""
_TAGS: _Name = ("tags",)
_ABSENT = object()
_FIRST = ("content", "text")
"""Keys of the payload whose values are most often corrected: their fields come first."""


def names_in(words: object) -> list[str]:
    """Return the names in a comma-separated line, without a leading ``#``."""
    return [word.strip().removeprefix("#") for word in str(words or "").split(",") if word.strip(" #")]


class EntryForm:
    """A form of an entry: its text, its payload as fields or as JSON, and its marks."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._as_json = False
        self._is_saving = False

    async def ask(self, title: str, verb: str, save: Save, *, with_marks: bool) -> None:
        """Show the form until it is closed, its changes are saved, or it is submitted without changes."""
        entry = self._entry
        with dialog(title, "broad form") as question:
            # An entry whose text is made from its payload has no text of its own to edit: the fields of its
            # payload are edited instead.
            self._text = None
            if "text" in entry.line or not entry.data:
                self._text = _area("Text", entry.text)
            if entry.data:
                self._payload()
            with box(classes="row-fields"):
                self._type = field("Type", value=entry.type)
                if with_marks:
                    self._tags = field("Tags", "auth, release", ", ".join(entry.tags))
                    self._priority = ui.number("Priority", value=entry.priority, min=0, max=1, step=0.05)
                    self._priority.props("outlined dense clearable")
            with box(classes="row-end"):
                button("Cancel", lambda: question.submit(None))
                button(verb, lambda: self._submit(question, save, with_marks=with_marks), "main")
        await answer_to(question)

    async def _submit(self, question: ui.dialog, save: Save, *, with_marks: bool) -> None:
        """Save the changes. The form stays open, with the typed text, until that has succeeded."""
        # A second press while the first one saves would save a second time.
        if self._is_saving:
            return
        self._is_saving = True
        try:
            with attempt():
                keys = self._changed(with_marks=with_marks)
                if not keys or await save(keys):
                    question.submit(None)
        finally:
            self._is_saving = False

    def _payload(self) -> None:
        data = self._entry.data
        with box(classes="row-fields"):
            say("strong", "Payload")
            box(classes="fill")
            self._switch = button("As JSON", self._turn, "quiet")
        with box(classes="stack") as self._form:
            # ``sorted`` is stable, so all other keys keep the order of the entry.
            names = sorted(data, key=lambda key: key not in _FIRST)
            self._fields = {key: _area(shown(key), _editable(data[key])) for key in names}
        self._json = _area("Payload as JSON", json.dumps(data, ensure_ascii=False, indent=2))
        self._json.classes("mono").set_visibility(False)

    def _turn(self) -> None:
        with attempt():
            # Reading the fields also validates them: invalid text stays in its field, and the form does not
            # switch.
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
        return {key: _value(key, old[key], self._fields[key].value) for key in old}

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
            tags, priority = names_in(self._tags.value), self._priority.value
            keys |= {"tags": tags or None} if tags != [*entry.tags] else {}
            keys |= {"priority": priority} if priority != entry.priority else {}
        return keys


def _area(label: str, value: str) -> ui.textarea:
    made = ui.textarea(label, value=value)
    made.props("outlined dense autogrow").classes("w-full")
    return made


def _editable(value: Any) -> str:
    """Return a payload value for a field: a string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(key: str, old: Any, text: str) -> Any:
    """Return the value of a field: the text if the old value was a string, else the parsed JSON."""
    return text if isinstance(old, str) else _parsed(key, text)


def _parsed(what: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not JSON: {error}") from None


async def ask_changed(base: Entry, keys: Record, now: Entry) -> Record | None:
    """Return the keys to change in an entry that others have changed since it was shown.

    A change of only one side is kept. If both changed a value, the reader chooses or merges.

    Args:
        base: The entry when it was shown.
        keys: The reader's changes.
        now: The entry as it is now.

    Returns:
        The keys; None to go on editing.

    Raises:
        ValueError: The merged text is not a valid value.
    """
    if now.line == base.line:
        return keys
    before, mine, theirs = _values(base.line), _values({**base.line, **keys}), _values(now.line)
    chosen: dict[_Name, Any] = {}
    for name in before | mine:
        old, own, other = (values.get(name, _ABSENT) for values in (before, mine, theirs))
        # The reader did not change the value, or others have already made the same change.
        if own in (old, other):
            continue
        if other != old:
            texts = _text(name, old), _text(name, own), _text(name, other)
            kept = await conflict.ask(*texts, f"entry: {name[-1]}")
            if kept is None:
                return None
            answer, text = kept
            if answer == "theirs":
                continue
            own = _of_text(name, own, text) if answer == "merged" else own
        chosen[name] = own
    return _keys(chosen, now)


def _values(line: Record) -> dict[_Name, Any]:
    """Return the fields of an entry's form, with each key of the payload by itself."""
    found: dict[_Name, Any] = {("data", key): value for key, value in (line.get("data") or {}).items()}
    marks = {(key,): line.get(key) for key in ("type", "text", "tags", "priority")}
    return found | {name: value for name, value in marks.items() if value is not None}


def _text(name: _Name, value: Any) -> str:
    """Return a value as text for a merge by lines; each tag becomes one line."""
    if value is _ABSENT:
        return ""
    is_tags = name == _TAGS and isinstance(value, list) and all(isinstance(tag, str) for tag in value)
    return "".join(f"{tag}\n" for tag in value) if is_tags else _editable(value)


def _of_text(name: _Name, old: Any, text: str) -> Any:
    # The reader removed all of the merged text, which means that the value is to be removed.
    if not text.strip():
        return _ABSENT
    if name == _TAGS:
        return names_in(text.replace("\n", ","))
    return _value(name[-1], "" if old is _ABSENT else old, text)


def _keys(chosen: dict[_Name, Any], now: Entry) -> Record:
    keys: Record = {
        name[0]: None if value is _ABSENT else value for name, value in chosen.items() if len(name) == 1
    }
    inner = {name[1]: value for name, value in chosen.items() if len(name) > 1}
    if inner:
        # The payload is replaced as a whole, so keys that others have added or changed since then come from
        # the entry as it is now.
        data = {**now.data, **inner}
        keys["data"] = {key: value for key, value in data.items() if value is not _ABSENT}
    return keys
