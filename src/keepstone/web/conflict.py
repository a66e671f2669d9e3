"""The dialog about a text that changed while it was edited: the changes of both sides, and their merge."""

from __future__ import annotations

import asyncio

from keepstone.text.display import clipped, counted
from keepstone.web.diff import Change, three_way
from keepstone.web.elements import SafeText, answer_of, aside, box, button, dialog, say

_AROUND = 2
"""Number of equal lines shown before and after a change."""
_MOST_LINES = 200
"""Maximum number of lines shown of one change."""
_MOST_CHANGES = 200
"""Maximum number of changes shown; texts with more changes cannot be merged here."""
_LONGEST = 2_000
_CHOICES = (("mine", "Yours"), ("theirs", "Theirs"), ("both", "Both"))
_TITLES = {"mine": "You changed", "theirs": "Changed elsewhere", "both": "Both changed it the same way"}
_RESTORED = {
    "file": "Saving writes your text to a new file of its name.",
    "entry": "Saving restores it with your changes.",
}


class Conflict:
    """Two edited versions of one text, and the reader's choices for their conflicts."""

    def __init__(self, changes: list[Change], what: str = "file") -> None:
        self.what = what
        self.changes = changes
        self.choices: dict[int, str] = {}
        self.conflicts = [at for at, change in enumerate(changes) if change.kind == "conflict"]
        self._options: dict[tuple[int, str], SafeText] = {}

    @property
    def merged(self) -> str:
        """The text with the changes of both sides."""
        pieces = (change.merged(self.choices.get(at, "both")) for at, change in enumerate(self.changes))
        return "".join(line for piece in pieces for line in piece)

    def summary(self) -> str:
        """Return how many changes there are on each side, and how many conflict."""
        kinds = [change.kind for change in self.changes]
        both = kinds.count("both") + kinds.count("conflict")
        yours, theirs = kinds.count("mine") + both, kinds.count("theirs") + both
        words = f"You made {counted(yours, 'change')}; {counted(theirs, 'change')} came from elsewhere."
        if not self.conflicts:
            return f"{words} They do not touch each other."
        return f"{words} {counted(len(self.conflicts), 'conflict')}: choose what to keep."

    async def ask(self) -> str | None:
        """Ask what to keep: ``"mine"``, ``"theirs"`` or ``"merged"``; None to go on editing."""
        # For each change the server keeps, and the browser draws, several page elements, so thousands of
        # changes would hold up server and browser.
        is_mergeable = len(self.changes) <= _MOST_CHANGES
        with dialog(f"Two versions of this {self.what}", "broad form") as asking:
            say("p", f"It has changed since you opened it. {self.summary()}")
            if is_mergeable:
                with box(classes="changes"):
                    await self._draw()
            else:
                say("p", "There are too many changes to show and merge them here.", "hint")
            with box(classes="row-end"):
                button("Go on editing", lambda: asking.submit(None))
                button("Take theirs", lambda: asking.submit("theirs"))
                button("Keep mine", lambda: asking.submit("mine"))
                if is_mergeable:
                    self.merge = button("Merge", lambda: asking.submit("merged"), "main")
                    self._mark()
        answer = await answer_of(asking)
        return answer if answer in ("mine", "theirs", "merged") else None

    async def _draw(self) -> None:
        for at, change in enumerate(self.changes):
            await asyncio.sleep(0)  # Many changes take long to draw; others are served between two changes.
            if change.kind == "same":
                _equal(change.base, is_first=at == 0, is_last=at == len(self.changes) - 1)
            elif change.kind == "conflict":
                self._draw_conflict(at, change)
            else:
                with box("section", f"change {change.kind}"):
                    say("strong", _TITLES[change.kind])
                    _lines(change.base, change.merged(), _TITLES[change.kind])

    def _draw_conflict(self, at: int, change: Change) -> None:
        name = f"Conflict {self.conflicts.index(at) + 1}"
        with box("section", "change conflict", role="group", aria_label=name):
            with box(classes="row"):
                say("strong", name)
                for choice, title in _CHOICES:
                    option = button(title, lambda choice=choice: self._choose(at, choice), "quiet")
                    self._options[at, choice] = option
            with box(classes="compare"):
                for title, lines in (("Yours", change.mine), ("Theirs", change.theirs)):
                    with box():
                        say("small", title)
                        _lines(change.base, lines, f"{name}: {title}")

    def _choose(self, at: int, choice: str) -> None:
        self.choices[at] = choice
        self._mark()

    def _mark(self) -> None:
        for (at, choice), option in self._options.items():
            # The attribute also chooses the button's colour in the style sheet, so the colour and the state
            # that is read aloud cannot differ.
            option.props["aria-pressed"] = "true" if self.choices.get(at) == choice else "false"
        left = len(self.conflicts) - len(self.choices)
        self.merge.props["disabled"] = left > 0
        self.merge.text = f"Merge: {counted(left, 'conflict')} left" if left else "Merge"


def _equal(lines: tuple[str, ...], *, is_first: bool, is_last: bool) -> None:
    """Show the unchanged lines around changes."""
    before = () if is_first else lines[:_AROUND]
    # Lines that were shown before the gap are not repeated after it.
    after = () if is_last else lines[max(len(before), len(lines) - _AROUND) :]
    if before:
        say("pre", clipped("".join(before), _LONGEST))
    if hidden := len(lines) - len(before) - len(after):
        say("p", f"{counted(hidden, 'equal line')}", "hint")
    if after:
        say("pre", clipped("".join(after), _LONGEST))


def _lines(old: tuple[str, ...], new: tuple[str, ...], name: str) -> None:
    """Show lines that were removed and added."""
    with box("pre", "diff", tabindex="0", aria_label=name):
        for tag, sign, lines in (("del", "\u2212", old), ("ins", "+", new)):
            shown = (clipped(line.rstrip("\r\n"), _LONGEST) for line in lines[:_MOST_LINES])
            if lines:
                say(tag, "".join(f"{sign} {line}\n" for line in shown))
            if len(lines) > _MOST_LINES:
                say("span", f"{counted(len(lines) - _MOST_LINES, 'more line')}\n", "hint")


async def ask(base: str, mine: str, theirs: str, what: str = "file") -> tuple[str, str] | None:
    """Ask which version of a text to keep; return the answer and the text, or None to go on editing.

    The answer is ``"mine"``, ``"theirs"`` or ``"merged"``.
    """
    conflict = Conflict(await aside(three_way, base, mine, theirs), what)
    answer = await conflict.ask()
    return None if answer is None else (answer, {"mine": mine, "theirs": theirs}.get(answer, conflict.merged))


async def ask_deleted(mine: str, what: str = "file") -> tuple[str, str] | None:
    """Ask what to do about an item that was deleted while it was edited; the result is as for ``ask``."""
    with dialog(f"This {what} was deleted") as asking:
        say("p", f"It was deleted since you opened it. {_RESTORED[what]}")
        with box(classes="row-end"):
            button("Go on editing", lambda: asking.submit(None))
            button("Leave it deleted", lambda: asking.submit("theirs"))
            button("Keep mine", lambda: asking.submit("mine"), "main")
    answer = await answer_of(asking)
    return {"mine": ("mine", mine), "theirs": ("theirs", "")}.get(str(answer))
