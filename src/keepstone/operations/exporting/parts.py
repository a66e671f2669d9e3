"""Separation of an entry's main text from the rest of its log line, for formats that people read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from keepstone.model import Record

_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_AT = "at"
_IN_DATA = ("content", "text")
_TAKEN = frozenset({_AT, "line", "session"})
"""Keys that an export adds; a line whose flat payload has one of them is not split."""


def split_text(line: Record) -> tuple[Record, str | None]:
    """Return a log line without its main text, with the text's path under ``at``, and the text.

    A line without a main text is returned whole under ``line``, with None.

    Examples:
        >>> split_text({"id": "a", "data": {"role": "user", "content": "Hi"}})
        ({'id': 'a', 'data': {'role': 'user'}, 'at': ['data', 'content']}, 'Hi')
    """
    path = _place_of(line)
    if path is None:
        return {"line": line}, None
    rest = dict(line)
    holder = rest
    for key in path[:-1]:
        # Copy along the path, as the line belongs to an entry that others may use.
        holder[key] = dict(holder[key])
        holder = holder[key]
    text = holder.pop(path[-1])
    # An import would take these keys of a flat payload for those of the export.
    if not _TAKEN.isdisjoint(rest):
        return {"line": line}, None
    return rest | {_AT: path}, str(text)


def _place_of(line: Record) -> list[str] | None:
    if isinstance(line.get("text"), str):
        return ["text"]
    data = line.get("data")
    if isinstance(data, dict):
        return next((["data", key] for key in _IN_DATA if isinstance(data.get(key), str)), None)
    return ["content"] if isinstance(line.get("content"), str) else None


def join_text(rest: Record, text: str) -> Record:
    """Return the log line that ``split_text`` split, with the given text.

    Raises:
        ValueError: ``rest`` is not of the form that ``split_text`` returns.
    """
    if isinstance(rest.get("line"), dict) and len(rest) == 1:
        return dict(rest["line"])
    path = rest.get(_AT)
    is_path = isinstance(path, list) and path and all(isinstance(key, str) for key in path)
    if not isinstance(path, list) or not is_path:
        raise ValueError("what is kept beside the text does not say where the text belongs")
    line = {key: value for key, value in rest.items() if key != _AT}
    holder = line
    for key in path[:-1]:
        if not isinstance(holder.get(key), dict):
            raise ValueError(f"what is kept beside the text has no {key!r:.80}")  # noqa: TRY004  A fault of the file.
        holder = holder[key]
    holder[path[-1]] = text
    return line


def flow(value: Any) -> str:
    """Return a value as JSON on one line that is also valid YAML."""
    coded = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", coded)


def front_matter(keys: Mapping[str, Any]) -> str:
    """Return YAML front matter with one line for each key."""
    return "---\n" + "".join(f"{key}: {flow(value)}\n" for key, value in keys.items()) + "---\n"


def is_plain(text: str) -> bool:
    """Return whether a text can be written to a Markdown file and read back unchanged."""
    return "\r" not in text and "\0" not in text and not _UNPRINTABLE.search(text)


def title_of(text: str, longest: int = 80) -> str:
    """Return the beginning of a text as a title on one line."""
    words = " ".join(text.split())
    return words if len(words) <= longest else words[: longest - 1].rstrip() + "…"
