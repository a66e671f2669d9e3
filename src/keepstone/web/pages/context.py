"""The context page: what an agent sees of its memory for a question."""

from __future__ import annotations

import json

from nicegui import ui

from keepstone.context.block import Context
from keepstone.operations.error_codes import message_of
from keepstone.text.display import counted
from keepstone.web.elements import EXPECTED, aside, box, button, failure, field, link, say
from keepstone.web.frame import frame
from keepstone.web.phrases import shown
from keepstone.web.site import Place

_LEAD = "The block that goes into the system prompt: what the agent knows when it is asked this."
_BUDGET = 4000
"""The chat's budget, so that this page shows what its prompt has."""


_MOST = 1_000_000
"""The largest budget."""


class ContextPage:
    """State of the page: the question and the budget."""

    def __init__(self, place: Place) -> None:
        self.place = place

    async def build(self) -> None:
        """Draw the page with the context for the address's question."""
        query = self.place.query
        with frame(self.place, "context", "Context", _LEAD):
            with box(classes="add-note", data_search=""):
                self.query = field("Question, if you like", value=query.get("q", "")).props("autofocus")
                self.query.on("keydown.enter", self._ask, args=[])
                self.budget = ui.number("Tokens", value=_budget(query.get("budget")), min=0, step=500)
                self.budget.props("outlined dense").classes("choose")
                button("Show", self._ask, "main")
            self.body = box(classes="stack")
            ui.timer(0, self._ask, once=True)

    async def _ask(self) -> None:
        question = str(self.query.value or "").strip()
        try:
            budget = _budget(self.budget.value)
            context = await aside(self._context, question or None, budget)
        except EXPECTED as error:
            words = message_of(error)
            self.body.clear()
            with self.body:
                failure(words)
            return
        given = {"q": question} if question else {}
        given |= {"budget": str(budget)} if budget != _BUDGET else {}
        address = json.dumps(self.place.link("context", **given))
        ui.run_javascript(f"history.replaceState(null, '', {address})")
        self.body.clear()
        with self.body:
            self._draw(context, budget)

    def _context(self, question: str | None, budget: int) -> Context:
        notes = self.place.site.notes if self.place.sees_notes else None
        return self.place.agent.context(question, budget=budget, notes=notes)

    def _draw(self, context: Context, budget: int) -> None:
        total = f"{context.tokens:,} of {counted(budget, 'token')}"
        stable = f"the first {counted(context.stable, 'character')} are the same for every question"
        say("p", f"{total}; {stable}.", "answer-line", role="status")
        with box(classes="halves"):
            with box(classes="stack"):
                self._parts(context)
            with box():
                with box(classes="head"):
                    say("h2", "The text")
                    box(classes="fill")
                    copied = say("button", "Copy", "plain", type="button")
                    text = json.dumps(context.text)
                    copied.on("click", js_handler=f"() => navigator.clipboard.writeText({text})")
                say("pre", shown(context.text), "raw", tabindex="0", aria_label="Context")

    def _parts(self, context: Context) -> None:
        with box("table", "list plain-table"):
            _row("th", "Part", "Tokens", "Source", "How much")
            for part in context.parts:
                for item in part.items:
                    _row("td", part.kind, f"{item.tokens:,}", item.source, item.remark)
        if context.left_out:
            say("h2", "Left out")
            with box("table", "list plain-table"):
                _row("th", "Part", "Count", "Source", "Reason")
                for left in context.left_out:
                    _row("td", left.kind, f"{left.count:,}", left.source, left.reason)
        if context.sources:
            say("h2", "Entries in it")
            with box("ul", "chips"):
                for source in context.sources:
                    with box("li"):
                        words = f"{source.ref} {source.session}"
                        link(words, self.place.link("session", id=source.session, entry=source.id))


def _row(tag: str, *cells: str) -> None:
    with box("tr"):
        for cell in cells:
            say(tag, cell)


def _budget(given: object) -> int:
    """Return a number of tokens.

    Raises:
        ValueError: It is not a whole number from 0 to 1,000,000.
    """
    if given in (None, ""):
        return _BUDGET
    try:
        number = int(float(str(given)))
    except (ValueError, OverflowError):
        number = -1
    if not 0 <= number <= _MOST:
        raise ValueError(f"tokens must be a whole number from 0 to {_MOST:,}, not {given!r:.40}")
    return number


async def build(place: Place) -> None:
    """Draw the page."""
    await ContextPage(place).build()
