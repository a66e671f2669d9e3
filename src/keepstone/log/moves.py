"""Where a rewrite moved the lines that it kept."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping


class Moves(Mapping[int, tuple[int, int]]):
    """The new offset and length of each kept line, by its old offset: 24 bytes a line.

    Examples:
        >>> moves = Moves()
        >>> moves.add(100, 0, 50)
        >>> moves[100]
        (0, 50)
    """

    def __init__(self) -> None:
        self._old, self._new, self._lengths = array("q"), array("q"), array("q")
        self._is_sorted = True

    def add(self, old: int, new: int, length: int) -> None:
        """Take note of a line; each old offset is given once."""
        self._is_sorted = self._is_sorted and (not self._old or self._old[-1] < old)
        self._old.append(old)
        self._new.append(new)
        self._lengths.append(length)

    def __getitem__(self, old: int) -> tuple[int, int]:
        self.sort()
        at = bisect_left(self._old, old)
        if at == len(self._old) or self._old[at] != old:
            raise KeyError(old)
        return self._new[at], self._lengths[at]

    def __iter__(self) -> Iterator[int]:
        return iter(self._old)

    def __len__(self) -> int:
        return len(self._old)

    def sort(self) -> None:
        """Sort what is not yet, as the first question does: that takes long, so not while others wait."""
        if self._is_sorted:
            return
        order = sorted(range(len(self._old)), key=self._old.__getitem__)
        for name in ("_old", "_new", "_lengths"):
            column = getattr(self, name)
            setattr(self, name, array("q", (column[at] for at in order)))
        self._is_sorted = True
