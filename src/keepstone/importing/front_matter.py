"""YAML front matter of Markdown files, parsed to JSON values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

_FENCE = "---"
# Python refuses integers of more than 4,300 digits, so the pattern for integers is bounded; floats may have
# any number of digits. Their repetitions are possessive (*+), so that other texts are rejected in linear
# time.
_INT = re.compile(r"^[-+]?(?:0|[1-9][0-9]{0,999})$")
_FLOAT = re.compile(r"^[-+]?(?:0|[1-9][0-9]*+)(?:\.[0-9]*+)?(?:[eE][-+]?[0-9]++)?$")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_STANDARD = "tag:yaml.org,2002:"
_READ = frozenset({"str", "int", "float", "bool", "null", "timestamp", "seq", "map"})
_LONGEST = 1 << 20
_DEEPEST = 50
_MOST = 2 * _LONGEST
"""Maximum number of values and their characters, each counted again wherever an alias repeats it."""


def split_front_matter(text: str) -> tuple[str | None, str]:
    """Return the YAML at the beginning of a text, or None, and the rest of the text."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].rstrip() != _FENCE:
        return None, text
    # YAML's own mark for the end of a document, ``...``, closes front matter as well.
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() in (_FENCE, "..."):
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :])
    return None, text


def parse_yaml(text: str) -> dict[str, Any]:
    """Parse YAML and return its mapping.

    Plain scalars follow YAML 1.2: ``yes`` and ``12:30`` are strings. Dates are strings, too.

    Raises:
        ValueError: The text is not YAML, not a mapping, too large, or has a non-standard tag.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"the front matter has more than {_LONGEST:,} characters")
    # Exports have one line for each key with its value as JSON, which the standard parser reads many times
    # faster than PyYAML.
    found = _json_lines(text)
    if found is None:
        found = _Builder().document(_events(text))
    if not isinstance(found, dict):
        raise ValueError("the front matter is not a mapping")  # noqa: TRY004  A fault of the file.
    return found


def _json_lines(text: str) -> dict[str, Any] | None:
    """Parse front matter in which each line is a key and a JSON value, as exports write it.

    Return None for other YAML.

    Unlike YAML, JSON also allows keys of more than 1,024 characters inside a value.
    """
    found: dict[str, Any] = {}
    for line in text.split("\n"):
        key, colon, value = line.partition(": ")
        if not colon or not key.isidentifier():
            return None
        try:
            found[key] = json.loads(value, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            return None
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _events(text: str) -> Iterator[Any]:
    import yaml  # Imported late, as only Markdown needs it.

    try:
        # Only PyYAML's events are used: its constructors would read ``yes`` and dates as YAML 1.1 does, and
        # resolve aliases without bounds. The C parser is missing if PyYAML was built without libyaml.
        yield from yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1} of the front matter" if mark is not None else "the front matter"
        raise ValueError(f"{place} is not YAML: {problem}") from error


@dataclass(slots=True)
class _Open:
    """A list or mapping that is not complete yet."""

    value: list[Any] | dict[str, Any]
    anchor: str | None = None
    begin: int = 0
    """The builder's count when the value began."""
    key: str | None = None
    defaults: list[dict[str, Any]] = field(default_factory=list)
    """Mappings merged by ``<<``: their keys apply only if the mapping does not have them."""


class _Builder:
    """Builds values from the events of a YAML parser, without recursion and with limits."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        """Each value with an anchor, and its size as counted against ``_MOST``."""
        self._count = 0
        self._root: Any = {}

    def document(self, events: Iterator[Any]) -> Any:
        """Return the value of the first document."""
        for event in events:
            kind = type(event).__name__  # The classes are those of PyYAML, which is imported late.
            if kind in ("MappingStartEvent", "SequenceStartEvent"):
                _check_tag(event.tag)
                if len(self._open) >= _DEEPEST:
                    raise ValueError(f"the front matter nests deeper than {_DEEPEST} levels")
                made: Any = {} if kind == "MappingStartEvent" else []
                # An anchor names a list or mapping only once it is complete, so that nothing can contain
                # itself.
                self._open.append(_Open(made, event.anchor, self._count))
                self._counted(1)
            elif kind in ("MappingEndEvent", "SequenceEndEvent"):
                self._close()
            elif kind == "ScalarEvent":
                self._counted(1 + len(event.value))
                value = _scalar(event)
                self._name(event.anchor, value, 1 + len(event.value))
                self._add(value, event.value)
            elif kind == "AliasEvent":
                if event.anchor not in self._anchors:
                    raise ValueError(
                        f"the alias *{event.anchor:.80} refers to an anchor that is missing or incomplete"
                    )
                value, count = self._anchors[event.anchor]
                self._counted(count)
                self._add(value, None if isinstance(value, dict | list) else str(value))
            elif kind == "DocumentEndEvent":
                break
        return self._root

    def _counted(self, more: int) -> None:
        self._count += more
        # A few lines of nested aliases would otherwise expand to billions of values.
        if self._count > _MOST:
            raise ValueError("the front matter is too large: its aliases repeat too much")

    def _name(self, anchor: str | None, value: Any, count: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = value, count

    def _close(self) -> None:
        done = self._open.pop()
        if isinstance(done.value, dict):
            for more in done.defaults:
                # The keys of the mapping itself override merged ones, wherever ``<<`` is in the mapping.
                done.value = more | done.value
        self._name(done.anchor, done.value, self._count - done.begin)
        self._add(done.value, None)

    def _add(self, value: Any, key: str | None) -> None:
        """Add a value to the open list or mapping; ``key`` is its text in case it is a mapping's key."""
        if not self._open:
            # An empty document, such as two fences without a line between them, is one null.
            self._root = {} if value is None else value
            return
        inner = self._open[-1]
        if isinstance(inner.value, list):
            inner.value.append(value)
        elif inner.key is None:
            if key is None:
                raise ValueError("the front matter has a list or mapping as a key")
            inner.key = key
        # ``<<`` is an ordinary key unless its value is a mapping or a list of mappings.
        elif inner.key == "<<" and (merged := _mappings(value)):
            inner.key = None
            inner.defaults += merged
        else:
            inner.value[inner.key] = value
            inner.key = None


def _mappings(value: Any) -> list[dict[str, Any]]:
    found = value if isinstance(value, list) else [value]
    return found if all(isinstance(item, dict) for item in found) else []


def _check_tag(tag: str | None) -> str | None:
    """Return a standard tag without its prefix. Other tags are refused, as their meaning is unknown."""
    name = tag.removeprefix(_STANDARD) if tag and tag != "!" else None
    if name is not None and name not in _READ:
        raise ValueError(f"the front matter has the tag {tag!r:.80}, which is not read")
    return name


def _scalar(event: Any) -> Any:
    text: str = event.value
    tag = _check_tag(event.tag)
    if tag in ("str", "timestamp") or (tag is None and not event.implicit[0]):
        return text  # It is quoted, or a block of lines.
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text) and math.isfinite(float(text)):
        return float(text)
    return text
