"""The context page: the system prompt that a model gets for a question, part by part."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from nicegui import ui

from keepstone.chat.conversation import BUDGET, instructions, today
from keepstone.context import estimate_tokens
from keepstone.context.block import Context
from keepstone.operations.error_codes import message_of
from keepstone.text.display import counted
from keepstone.web.elements import EXPECTED, aside, box, button, failure, field, link, say
from keepstone.web.frame import frame
from keepstone.web.phrases import shown
from keepstone.web.site import Place

_LEAD = (
    "The system prompt that the chat's model gets, part by part: what the agent knows when it is asked this."
)
_FRAME = "frame"
"""Kind of the texts between the parts: the instructions on memory, and the tags around it."""

_MOST = 1_000_000
"""Maximum budget in tokens."""


class ContextPage:
    """State of the page: the question and the budget."""

    def __init__(self, place: Place) -> None:
        self.place = place

    async def build(self) -> None:
        """Draw the page with the context for the question in the address."""
        query = self.place.query
        with frame(self.place, "context", "Context", _LEAD):
            with box(classes="add-note", data_search=""):
                self.query = field("Question, if you like", value=query.get("q", ""))
                self.query.on("keydown.enter", self._ask, args=[])
                self.budget = field("Tokens", value=query.get("budget") or str(BUDGET), classes="choose")
                self.budget.props(f"type=number min=0 max={_MOST} step=500")
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
        # The address contains only values that differ from the defaults. It replaces the old address, as
        # otherwise each question would add a step to the browser's history.
        given = {"q": question} if question else {}
        given |= {"budget": str(budget)} if budget != BUDGET else {}
        address = json.dumps(self.place.link("context", **given))
        ui.run_javascript(f"history.replaceState(null, '', {address})")
        self.body.clear()
        with self.body:
            self._draw(context, budget)

    def _context(self, question: str | None, budget: int) -> Context:
        notes = self.place.site.notes if self.place.sees_notes else None
        return self.place.agent.context(question, budget=budget, notes=notes)

    def _draw(self, context: Context, budget: int) -> None:
        around = (("instructions", instructions(self.place.agent.slug)), ("today", today(datetime.now(UTC))))
        pieces = [around[0], *pieces_of(context), around[1]]
        begin, end = (estimate_tokens(text) for _, text in around)
        total = f"{context.tokens:,} of {counted(budget, 'token')} of memory, {begin + end:,} around it"
        stable = counted(len(around[0][1]) + context.stable, "character")
        words = f"{total}; the first {stable} are the same for every question."
        say("p", words, "answer-line", role="status")
        with box(classes="halves"):
            with box(classes="stack"):
                self._parts(context, begin, end)
            with box():
                _draw_prompt(pieces)

    def _parts(self, context: Context, begin: int, end: int) -> None:
        """Draw the parts of the prompt, and the entries left out of it."""
        with box("table", "list plain-table"):
            _row("th", "Part", "Tokens", "Source", "How much")
            _row("td", "instructions", f"{begin:,}", "the chat", "whole")
            for part in context.parts:
                for item in part.items:
                    _row("td", part.kind, f"{item.tokens:,}", item.source, item.remark)
            _row("td", "today", f"{end:,}", "the chat", "whole")
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


def _draw_prompt(pieces: list[tuple[str, str]]) -> None:
    with box(classes="head"):
        say("h2", "The prompt")
        box(classes="fill")
        copied = say("button", "Copy", "plain", type="button")
        # Copy in the browser without the server, because browsers allow copying only within the click itself.
        text = json.dumps("".join(piece for _, piece in pieces))
        copied.on("click", js_handler=f"() => navigator.clipboard.writeText({text})")
    with box(classes="prompt"):
        for kind, piece in pieces:
            with box("section", f"piece {kind.split()[0]}"):
                say("h3", kind)
                say("pre", shown(piece), "raw", tabindex="0", aria_label=kind)


def pieces_of(context: Context) -> list[tuple[str, str]]:
    """Return the parts of a context and the texts between them; joined, they are the context's text."""
    pieces: list[tuple[str, str]] = []
    end = 0
    for part in context.parts:
        # Parts come in the order of the text. A part that is not found stays within a piece of the frame, so
        # that the joined pieces always equal the text.
        at = context.text.find(part.text, end)
        if at < 0:
            continue
        pieces += [(_FRAME, context.text[end:at]), (part.kind, part.text)]
        end = at + len(part.text)
    return [(kind, text) for kind, text in (*pieces, (_FRAME, context.text[end:])) if text]


def _row(tag: str, *cells: str) -> None:
    with box("tr"):
        for cell in cells:
            say(tag, cell)


def _budget(given: object) -> int:
    """Return a number of tokens.

    Raises:
        ValueError: The given value is not a whole number from 0 to 1,000,000.
    """
    if given in (None, ""):
        return BUDGET
    try:
        # A browser sends what was typed, such as 2e3 or 2000.0, which are whole numbers, too.
        number = float(str(given))
    except ValueError:
        number = -1.0
    if not (0 <= number <= _MOST and number.is_integer()):
        raise ValueError(f"tokens must be a whole number from 0 to {_MOST:,}, not {given!r:.40}")
    return int(number)


async def build(place: Place) -> None:
    """Draw the page."""
    await ContextPage(place).build()
