"""The suggestions page: changes that programs propose, each with what it would change, and the decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from keepstone.log.line import text_of
from keepstone.model import Record, Suggestion
from keepstone.operations.suggesting import Effect, effects, make
from keepstone.text.display import clipped, counted
from keepstone.web.diff import Budget, Part, word_diff
from keepstone.web.elements import aside, attempt, box, button, empty, say, tell, undoing
from keepstone.web.frame import frame
from keepstone.web.live import Live
from keepstone.web.phrases import moment
from keepstone.web.site import Place

_LEAD = "Changes that programs propose. Nothing happens before you accept one."
_MOST = 50
"""Suggestions that are shown at a time, and decisions."""
_LONGEST = 2_000
_DONE = {"accepted": "Accepted", "rejected": "Rejected", "undone": "Undone"}


class ChangedWords(NamedTuple):
    """The words of an entry that go and come."""

    id: str
    parts: list[Part]


@dataclass(frozen=True, slots=True)
class Shown:
    """What the page shows."""

    open: list[tuple[Suggestion, list[ChangedWords]]]
    more: int
    """Open suggestions that are not shown."""
    decided: list[Suggestion]


class SuggestionsPage:
    """State of the page."""

    def __init__(self, place: Place) -> None:
        self.place = place

    async def build(self) -> None:
        """Draw the page."""
        with frame(self.place, "suggestions", "Suggestions", _LEAD) as head:
            if self.place.is_admin:
                with head:
                    button("Look for more", self._make, title="Entries that repeat or contradict one another")
            self.sum = say("p", "", "answer-line", role="status")
            self.live = Live(self._load, self._draw)
            self.list = box(classes="suggestions")
            await self.live.start()

    async def _make(self) -> None:
        """Suggest what to do about entries that repeat or contradict one another."""
        with attempt():
            await self.place.check_admin()
            made = await aside(make, self.place.agent)
            tell(counted(len(made), "new suggestion") if made else "Nothing new to suggest")
        await self.live.refresh()

    def _load(self) -> Shown:
        agent = self.place.agent
        every = agent.suggestions(None)
        found = [one for one in every if one.state == "open"]
        decided = [one for one in every if one.state != "open"]
        budget = Budget()
        pairs = [
            (one, [changed_words(each, budget) for each in effects(agent, one)]) for one in found[:_MOST]
        ]
        return Shown(pairs, max(0, len(found) - _MOST), decided[: -_MOST - 1 : -1])

    def _draw(self, found: Shown) -> None:
        count = len(found.open) + found.more
        self.sum.text = f"{counted(count, 'suggestion')} to decide" if count else "Nothing to decide."
        self.list.clear()
        with self.list:
            if not count and not found.decided:
                empty(
                    "No suggestions yet", "Models suggest with memory_suggest; keepstone suggest needs none."
                )
            for suggestion, changes in found.open:
                self._draw_one(suggestion, changes)
            if found.more:
                say("p", f"{counted(found.more, 'more suggestion')} after these.", "hint")
            if found.decided:
                say("h2", "Decided")
            for suggestion in found.decided:
                self._draw_decided(suggestion)

    def _draw_one(self, suggestion: Suggestion, changes: list[ChangedWords]) -> None:
        title = _title(suggestion)
        with box("section", "change suggestion", role="group", aria_label=title):
            say("h2", title)
            say("p", clipped(suggestion.why, _LONGEST))
            for change in changes:
                draw_change(change)
            if suggestion.evidence:
                say("p", f"Based on {clipped(', '.join(suggestion.evidence), 200)}", "hint")
            say("p", f"{suggestion.by or 'a program'}, {moment(suggestion.ts)}", "hint")
            if self.place.is_admin:
                with box(classes="row"):
                    for verb, kind in (("Accept", "main"), ("Reject", "plain")):
                        button(
                            verb, partial(self._decide, verb, suggestion), kind, aria_label=f"{verb}: {title}"
                        )

    def _draw_decided(self, suggestion: Suggestion) -> None:
        title = _title(suggestion)
        with box(classes="row decided"):
            if suggestion.decided is None or suggestion.state not in _DONE:
                words = "Outdated: its entries changed since"
            else:
                done = _DONE[suggestion.state]
                words = f"{done} by {suggestion.decided_by}, {moment(suggestion.decided)}"
            say("span", f"{title}. {words}")
            if suggestion.state == "accepted" and self.place.is_admin:
                button(
                    "Undo", partial(self._decide, "Undo", suggestion), "quiet", aria_label=f"Undo: {title}"
                )

    async def _decide(self, verb: str, suggestion: Suggestion) -> None:
        agent = self.place.agent
        calls: dict[str, tuple[Callable[[str], Suggestion], str]] = {
            "Accept": (agent.accept, "Accepted"),
            "Reject": (agent.reject, "Rejected"),
            "Undo": (agent.undo, "Undone"),
        }
        call, done = calls[verb]
        with attempt():
            await self.place.check_admin()
            await aside(call, suggestion.id)
            undo = undoing(partial(agent.undo, suggestion.id), self.live.refresh)
            tell(f"{done}: {_title(suggestion)}.", undo if verb == "Accept" else None)
        await self.live.refresh()


def _title(suggestion: Suggestion) -> str:
    """Return what a suggestion would do, such as "Add the tags auth, web to 2 entries"."""
    count = counted(len(suggestion.entries), "entry")
    if suggestion.do == "tag":
        return f"Add the tags {', '.join((suggestion.item or {})['tags'])} to {count}"
    return "Add a new entry" if suggestion.do == "add" else f"{suggestion.do.capitalize()} {count}"


def changed_words(change: Effect, budget: Budget) -> ChangedWords:
    """Return the words of an entry that go and come. Not for the event loop: long texts take long."""
    return ChangedWords(change.id, word_diff(_words(change.before), _words(change.after), budget))


def draw_change(change: ChangedWords) -> None:
    """Show the words of an entry that go and come."""
    with box("pre", "diff", tabindex="0", aria_label=f"Change of {change.id}"):
        for kind, text in change.parts:
            say(kind or "span", text)


def _words(line: Record | None) -> str:
    """Return an entry's text, with what else a suggestion may change."""
    if line is None:
        return ""
    also = [f"\nTags: {', '.join(map(str, line['tags']))}"] if line.get("tags") else []
    return "".join([clipped(text_of(line), _LONGEST), *also, *(["\nPinned"] if line.get("pinned") else [])])


async def build(place: Place) -> None:
    """Draw the page."""
    await SuggestionsPage(place).build()
