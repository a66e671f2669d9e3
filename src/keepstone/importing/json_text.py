"""Reading JSON of any size with bounded memory: lines, and the elements of one array."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import IO, Any

from keepstone.errors import SourceError
from keepstone.importing.origin import Origin
from keepstone.log.line import BOM, MAX_LINE, parse
from keepstone.model import Record

JSON_FILES = (".json", ".jsonl")
"""Extensions of files with one JSON value, or one value a line."""
_LOOKED_AT = 50
"""Maximum number of records read to recognise a source."""
LARGEST = 256 << 20
"""Maximum size of an array's element, in characters, and of a whole file's value, in bytes."""
MOST_VALUES = 20_000_000
"""Maximum number of values held in memory at once. Three characters of JSON can become a list of 64 bytes."""
_CHUNK = 1 << 18
_SPACE = " \t\n\r"
_BEGINNINGS = frozenset('{["-0123456789tfn')
"""The characters with which a JSON value can begin."""


def numbered_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Yield the number, from 1, and bytes of each non-blank line; None as the bytes of an overlong line."""
    number = 0
    while raw := file.readline(MAX_LINE + 1):
        number += 1
        is_long = len(raw) > MAX_LINE
        # Skip the rest of an overlong line in pieces, as it may be as large as the file.
        while len(raw) > MAX_LINE and not raw.endswith(b"\n"):
            raw = file.readline(MAX_LINE + 1)
        if is_long:
            yield number, None
        # Windows programs write a byte order mark, even before an empty first line.
        elif raw.removeprefix(BOM).strip():
            yield number, raw


def objects(file: IO[bytes]) -> Iterator[tuple[int, Record | None]]:
    """Yield the number and the object of each non-blank line; None for a line that is not an object."""
    for number, raw in numbered_lines(file):
        yield number, None if raw is None else parse(raw)


def whole(file: IO[bytes], name: str) -> Any:
    """Return the value of a JSON file.

    Raises:
        SourceError: The file is not JSON, or too large.
    """
    raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise SourceError(f"{name} has more than {LARGEST:,} bytes: export it in parts")
    try:
        text = raw.decode("utf-8-sig")
    except ValueError as error:
        raise SourceError(f"{name} is not UTF-8: {error}") from error
    _check_values(text, name)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{name} is not whole JSON: {error}") from error


def _check_values(text: str, name: str) -> None:
    """Raise SourceError if a text may have too many values.

    There is one ``[``, ``{`` or ``,`` for each value but the first.
    """
    # Characters inside of strings are counted as well, which errs on the side of refusing. Counting is far
    # faster than parsing.
    if len(text) > MOST_VALUES and sum(map(text.count, "[{,")) > MOST_VALUES:
        raise SourceError(f"{name} has more than {MOST_VALUES:,} values in one piece: export it in parts")


def documents(origin: Origin, damaged: Record) -> Iterator[tuple[str, Any]]:
    """Yield the objects of files in JSON Lines and the values of other JSON files, each with its place.

    A line that holds no object gives ``damaged``.

    Raises:
        SourceError: A file is neither JSON Lines nor one JSON value, or too large.
    """
    for name in origin.names(*JSON_FILES):
        with origin.open(name) as file:
            # The extension does not decide: JSON Lines are often named ``.json``. If the first line is not a
            # whole object, the file is read as one value with line breaks.
            first = next(objects(file), (1, None))[1]
        with origin.open(name) as file:
            if first is None:
                yield name, whole(file, name)
            else:
                for number, found in objects(file):
                    yield f"{name}:{number}", damaged if found is None else found


def first_records(
    origin: Origin, records: Callable[[Origin], Iterator[tuple[str, Record]]]
) -> list[tuple[str, Record]]:
    """Return the first records of a source's files; empty if it has no JSON files or one is damaged."""
    is_file = not (origin.is_folder or origin.is_zip)
    if is_file and not origin.path.name.lower().endswith(JSON_FILES):
        return []
    try:
        return [*islice(records(origin), _LOOKED_AT)]
    except SourceError:
        return []


def elements(file: IO[bytes], name: str) -> Iterator[Any]:
    """Yield the elements of a file that is one JSON array, holding one element in memory at a time.

    Raises:
        SourceError: The file is not a JSON array or is truncated, or an element is too large.
    """
    text = _Window(file, name)
    if text.next_character() != "[":
        raise SourceError(f"{name} is not a JSON array")
    text.at += 1
    while (character := text.next_character()) != "]":
        # Missing and repeated commas are accepted: the elements are still unambiguous.
        if character == ",":
            text.at += 1
        elif character in _BEGINNINGS:
            yield text.value()
        else:
            raise SourceError(f"{name} is not a JSON array: {character!r} at character {text.position:,}")
    text.at += 1
    if text.next_character(at_end=True):
        raise SourceError(f"{name} goes on after its array, at character {text.position:,}")


class _Window:
    """The part of a text that is being parsed."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        # The decoder is incremental, as a chunk may end in the middle of a character.
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._text = ""
        self._before = 0
        self._ended = False
        self.at = 0

    @property
    def position(self) -> int:
        return self._before + self.at

    def next_character(self, *, at_end: bool = False) -> str:
        """Return the next character that is not white space.

        At the end return '' if ``at_end`` is set, else raise.
        """
        while True:
            while self.at < len(self._text) and self._text[self.at] in _SPACE:
                self.at += 1
            if self.at < len(self._text):
                return self._text[self.at]
            if not self._more(_CHUNK):
                if at_end:
                    return ""
                raise SourceError(f"{self._name} is truncated at character {self.position:,}")

    def value(self) -> Any:
        """Parse the value that begins at the current position."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self.at)
            except (ValueError, RecursionError) as error:
                length = len(self._text) - self.at
                if length > LARGEST:
                    raise SourceError(
                        f"{self._name} has an element of more than {LARGEST:,} characters: export it in parts"
                    ) from error
                # Double the text each time, so that all failed attempts together cost no more than the final
                # parse.
                if isinstance(error, RecursionError) or not self._more(max(_CHUNK, length)):
                    place = f"character {self.position:,}"
                    raise SourceError(f"{self._name} is damaged or truncated at {place}: {error}") from error
            else:
                # A number may continue in the part that is not read yet.
                if end == len(self._text) and isinstance(value, int | float) and self._more(_CHUNK):
                    continue
                self.at = end
                return value

    def _more(self, size: int) -> bool:
        raw = b"" if self._ended else self._file.read(size)
        self._ended = not raw
        try:
            new = self._decode(raw, self._ended)
        except UnicodeDecodeError as error:
            raise SourceError(f"{self._name} is not UTF-8: {error}") from error
        # Drop the parsed part, so that memory holds one element and a chunk.
        self._before += self.at
        self._text, self.at = self._text[self.at :] + new, 0
        _check_values(self._text, self._name)
        return not self._ended


_DECODER = json.JSONDecoder()
