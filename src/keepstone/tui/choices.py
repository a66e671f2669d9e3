"""Lists to choose from, whose highlighted row has a mark in addition to its colour."""

from __future__ import annotations

from textual.strip import Strip
from textual.widgets import OptionList

_MARK, _NO_MARK = "▌ ", "  "


class Choices(OptionList):
    """A list whose highlighted row begins with a bar."""

    def _get_left_gutter_width(self) -> int:
        # Textual 8 has no public way to add a column to the rows of an OptionList.
        return len(_MARK)

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen, after the mark or as many spaces."""
        line = super().render_line(y)
        first = next(iter(line), None)
        if first is None:
            return line
        place = first.style.meta.get("option") if first.style else None
        is_chosen = place is not None and place == self.highlighted
        return Strip([first._replace(text=_MARK if is_chosen else _NO_MARK), *line])
