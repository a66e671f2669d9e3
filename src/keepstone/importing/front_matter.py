"""YAML front matter of Markdown files: the part of YAML that people and tools write there."""

from __future__ import annotations

import json
import re
from typing import Any

_FENCE = "---"
_KEY = re.compile(
    r"^(?P<indent> *+)"
    r"(?P<key>\"[^\"\\]*+(?:\\.[^\"\\]*+)*\"|'[^']*+'|[^\s#:'\"\[\]{}&*!|>%@`-][^:#]*+|[^\s:#]++)"
    r"\s*+:(?:\s++(?P<value>.*+))?$"
)
_ITEM = re.compile(r"^(?P<indent> *+)-(?:\s++(?P<value>.*+))?$")
_BLOCK = re.compile(r"^[|>][+-]?\d?$")
_NUMBER = re.compile(r"^[-+]?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?$")
_SINGLE_QUOTED = re.compile(r"^'([^']*+(?:''[^']*+)*)'\s*+(?:#.*+)?$")
_PART = re.compile(
    # Quotes count at the beginning of a value only; without an end they reach to that of the text.
    r"(?:(?<![^\s:,])(?:\"[^\"\\]*+(?:\\.[^\"\\]*+)*(?:\"|\\?\Z)|'[^']*+(?:''[^']*+)*(?:'|\Z))|[^,])++",
    re.DOTALL,
)
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None, "yes": "yes", "no": "no"}
_DEEPEST = 20
_LONGEST = 1 << 20


def split_front_matter(text: str) -> tuple[str | None, str]:
    """Return the YAML at the beginning of a text, None without one, and the rest of the text."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].rstrip() != _FENCE:
        return None, text
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() in (_FENCE, "..."):
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :])
    return None, text


def parse_yaml(text: str) -> dict[str, Any]:
    """Return the mapping that a part of YAML says: scalars, lists and mappings, in blocks or in brackets.

    Raises:
        ValueError: It has something else, such as an anchor or a tag.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"the front matter has more than {_LONGEST:,} characters")
    parser = _Blocks(text.split("\n"))
    found = parser.block(0, 0)
    if parser.at < len(parser.lines):
        raise ValueError(f"line {parser.at + 1} of the front matter is not understood")
    if not isinstance(found, dict):
        raise ValueError("the front matter is not a mapping")  # noqa: TRY004  A fault of the file.
    return found


class _Blocks:
    def __init__(self, lines: list[str]) -> None:
        self.lines = [line.rstrip("\r") for line in lines]
        self.at = 0

    def _skip(self) -> None:
        while self.at < len(self.lines) and (
            not self.lines[self.at].strip() or self.lines[self.at].lstrip().startswith("#")
        ):
            self.at += 1

    def block(self, indent: int, depth: int) -> Any:
        """Parse the lines with at least this indentation: a mapping, a list, or nothing."""
        self._skip()
        if depth > _DEEPEST:
            raise ValueError("the front matter nests too deep")
        if self.at >= len(self.lines):
            return {} if depth == 0 else None
        line = self.lines[self.at]
        begin = len(line) - len(line.lstrip(" "))
        if begin < indent:
            return None
        return self._list(begin, depth) if _ITEM.match(line) else self._mapping(begin, depth)

    def _list(self, indent: int, depth: int) -> list[Any]:
        found: list[Any] = []
        while True:
            self._skip()
            item = _ITEM.match(self.lines[self.at]) if self.at < len(self.lines) else None
            if item is None or len(item["indent"]) != indent:
                return found
            value = item["value"] or ""
            if (_KEY.match(value) and not value.startswith(("'", '"', "[", "{"))) or not value:
                # A mapping that begins beside the dash stands as deep as its first key.
                self.lines[self.at] = " " * (indent + 2) + value
                if not value:
                    self.at += 1
                found.append(self.block(indent + 1, depth + 1))
            else:
                self.at += 1
                found.append(_scalar(value))

    def _mapping(self, indent: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while True:
            self._skip()
            pair = _KEY.match(self.lines[self.at]) if self.at < len(self.lines) else None
            if pair is None or len(pair["indent"]) != indent:
                return found
            key, value = str(_scalar_text(pair["key"])), (pair["value"] or "").strip()
            self.at += 1
            if _BLOCK.match(value):
                found[key] = self._text(indent, folded=value[0] == ">")
            elif value and not value.startswith("#"):
                found[key] = _scalar(value)
            else:
                # A list may stand as deep as its key.
                self._skip()
                is_item = self.at < len(self.lines) and _ITEM.match(self.lines[self.at])
                found[key] = self.block(indent if is_item else indent + 1, depth + 1)

    def _text(self, indent: int, *, folded: bool) -> str:
        lines: list[str] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.strip() and len(line) - len(line.lstrip(" ")) <= indent:
                break
            lines.append(line)
            self.at += 1
        deep = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
        cut = [line[deep:] for line in lines]
        return (" " if folded else "\n").join(cut).rstrip()


def _scalar_text(text: str) -> Any:
    if text[:1] == '"':
        return json.loads(text)
    return text[1:-1].replace("''", "'") if text[:1] == "'" and text[-1:] == "'" else text.strip()


def _scalar(text: str) -> Any:
    text = text.strip()
    if text[:1] in ("[", "{"):
        return _flow(text)
    if text[:1] == '"':
        value, end = json.JSONDecoder().raw_decode(text)
        if text[end:].strip() and not text[end:].strip().startswith("#"):
            raise ValueError(f"{text[:80]!r} goes on after its quotes")
        return value
    if text[:1] == "'":
        found = _SINGLE_QUOTED.match(text)
        if found is None:
            raise ValueError(f"{text[:80]!r} has no closing quote")
        return found[1].replace("''", "'")
    if text[:1] in ("&", "*", "!", "%", "@", "`"):
        raise ValueError(f"{text[:80]!r} is an anchor, an alias or a tag, which are not read")
    text = text.partition(" #")[0].rstrip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _NUMBER.match(text):
        return float(text) if set(text) & set(".eE") else int(text)
    return text


def _flow(text: str) -> Any:
    """Return a list or mapping in brackets; JSON, or the simple form ``[a, b]``."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    text = text.partition(" #")[0].rstrip() if text.count("]") + text.count("}") == 1 else text
    if text[:1] == "[" and text[-1:] == "]" and not set(text[1:-1]) & set("[]{}"):
        return [_scalar(part) for part in _parts(text[1:-1])]
    if text[:1] == "{" and text[-1:] == "}" and not set(text[1:-1]) & set("[]{}"):
        pairs = [part.partition(":") for part in _parts(text[1:-1])]
        return {str(_scalar_text(key.strip())): _scalar(value) for key, _, value in pairs}
    raise ValueError(f"{text[:80]!r} is not understood")


def _parts(text: str) -> list[str]:
    """Return the parts between commas, which do not count within quotes."""
    return [part.strip() for part in _PART.findall(text) if part.strip()]
