"""Edits of JSON with comments that leave every other byte unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(
    r'(?P<skip>[\s\ufeff]+|//[^\n]*|/\*.*?\*/)|(?P<text>"(?:[^"\\\x00-\x1f]|\\.)*")'
    r"|(?P<sign>[{}\[\]:,])|(?P<word>[^\s{}\[\]:,\"/]+)",
    re.DOTALL,
)


@dataclass(slots=True)
class _Node:
    start: int
    value: Any
    end: int = 0
    members: list[_Member] = field(default_factory=list)


@dataclass(slots=True)
class _Member:
    key: str
    start: int
    node: _Node
    comma: int | None = None
    """The offset of the comma after the member; None if there is no comma."""


def load(text: str) -> Any:
    """Return the value of a text; an empty object for a text without any value.

    Raises:
        ValueError: The text is not JSON, comments and trailing commas aside; the message names the line.
    """
    return _parsed(text).value if _tokens_of(text) else {}


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Return a text with a value at a path of keys; missing objects on the path are created.

    Raises:
        ValueError: As for ``load``; or a value on the path is not an object.
    """
    if not _tokens_of(text):
        text = f"{text}{{}}\n"
    newline = "\r\n" if "\r\n" in text else "\n"
    node, left = _parsed(text), list(path)
    unit = _unit_of(text, node)
    while left:
        if not isinstance(node.value, dict):
            raise ValueError(  # noqa: TRY004  It is what the file says.
                f"{'.'.join(path[: len(path) - len(left)]) or 'the file'} is not an object"
            )
        found = _member(node, left[0])
        if found is None:
            break
        node = found.node
        left.pop(0)
    depth = len(path) - len(left)
    for key in reversed(left[1:]):
        value = {key: value}
    shown = json.dumps(value, indent=unit, ensure_ascii=False)
    if not left:
        if node.value == value:
            return text
        return text[: node.start] + _indented(shown, unit * depth, newline) + text[node.end :]
    inner = f"{json.dumps(left[0], ensure_ascii=False)}: {shown}"
    return _appended(text, node, _indented(inner, unit * (depth + 1), newline), unit * depth, unit, newline)


def remove(text: str, path: Sequence[str]) -> str:
    """Return a text without the value at a path of keys; a missing path changes nothing.

    Raises:
        ValueError: As for ``load``.
    """
    if not _tokens_of(text):
        return text
    node = _parsed(text)
    for key in path[:-1]:
        found = _member(node, key)
        if found is None:
            return text
        node = found.node
    gone = _member(node, path[-1])
    if gone is None:
        return text
    place = node.members.index(gone)
    end = gone.node.end if gone.comma is None else gone.comma + 1
    start = gone.start
    # Remove the member with its line, so that no blank line is left.
    while text[start - 1] in " \t":
        start -= 1
    if text[start - 1] == "\n":
        start -= 2 if text[start - 2 : start] == "\r\n" else 1
    # If the last member has no comma after it, remove the comma before it, as strict readers refuse a
    # trailing comma.
    comma = node.members[place - 1].comma if place and gone.comma is None else None
    head = text[:start] if comma is None else text[:comma] + text[comma + 1 : start]
    return head + text[end:]


def _appended(text: str, node: _Node, member: str, indent: str, unit: str, newline: str) -> str:
    """Return a text with a member appended to an object, after the comments that follow its members."""
    at = node.end - 1
    while text[at - 1] in " \t\r\n":
        at -= 1
    tail = text[at:] if "\n" in text[at : node.end] else f"{newline}{indent}{text[at:].lstrip()}"
    last = node.members[-1] if node.members else None
    member = f"{newline}{indent}{unit}{member}"
    if last is None:
        return text[:at] + member + tail
    # Keep the trailing comma, as it is the style of this file.
    if last.comma is not None:
        return f"{text[:at]}{member},{tail}"
    return f"{text[: last.node.end]},{text[last.node.end : at]}{member}{tail}"


def _indented(shown: str, indent: str, newline: str) -> str:
    return shown.replace("\n", f"{newline}{indent}")


def _unit_of(text: str, root: _Node) -> str:
    """Return the indentation of the first member that begins a line; two spaces if no member does."""
    for member in root.members:
        found = re.search(r"\n([ \t]+)\Z", text[: member.start])
        if found:
            return found[1]
    return "  "


def _member(node: _Node, key: str) -> _Member | None:
    # If a key occurs twice, programs use the last one.
    return next((member for member in reversed(node.members) if member.key == key), None)


def _tokens_of(text: str) -> bool:
    return next(_tokens(text), None) is not None


def _tokens(text: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _wrong(text, at)
        at = found.end()
        if found.lastgroup != "skip":
            yield found


def _wrong(text: str, at: int) -> ValueError:
    line = text.count("\n", 0, at) + 1
    return ValueError(f"line {line} is not JSON: {text[at : at + 20]!r}")


def _parsed(text: str) -> _Node:
    parser = _Parser(text)
    try:
        node = parser.node()
    except RecursionError:
        raise ValueError("the file is nested too deeply") from None
    if parser.next is not None:
        raise _wrong(text, parser.next.start())
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._rest = _tokens(text)
        self.next = next(self._rest, None)

    def node(self) -> _Node:
        token = self._take()
        if token[0] == "{":
            return self._object(_Node(token.start(), {}))
        if token[0] == "[":
            return self._array(_Node(token.start(), []))
        if token.lastgroup == "sign":
            raise _wrong(self._text, token.start())
        return _Node(token.start(), self._scalar(token), token.end())

    def _object(self, node: _Node) -> _Node:
        while not self._closes(node, "}"):
            key = self._take()
            if key.lastgroup != "text" or self._take()[0] != ":":
                raise _wrong(self._text, key.start())
            member = _Member(self._scalar(key), key.start(), self.node())
            node.members.append(member)
            node.value[member.key] = member.node.value
            if self.next is not None and self.next[0] == ",":
                member.comma = self._take().start()
            elif self.next is None or self.next[0] != "}":
                raise _wrong(self._text, self.next.start() if self.next else len(self._text))
        return node

    def _array(self, node: _Node) -> _Node:
        while not self._closes(node, "]"):
            node.value.append(self.node().value)
            if self.next is not None and self.next[0] == ",":
                self._take()
            elif self.next is None or self.next[0] != "]":
                raise _wrong(self._text, self.next.start() if self.next else len(self._text))
        return node

    def _closes(self, node: _Node, sign: str) -> bool:
        if self.next is None or self.next[0] != sign:
            return False
        node.end = self._take().end()
        return True

    def _scalar(self, token: re.Match[str]) -> Any:
        try:
            return json.loads(token[0])
        except ValueError:
            raise _wrong(self._text, token.start()) from None

    def _take(self) -> re.Match[str]:
        token = self.next
        if token is None:
            raise _wrong(self._text, len(self._text))
        self.next = next(self._rest, None)
        return token
