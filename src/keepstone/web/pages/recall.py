"""The recall page: a query, its filters, and hits with explanations."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from keepstone.model import Hits
from keepstone.operations.error_codes import message_of
from keepstone.operations.running_tests import expect, forget, has_tests, tests_file
from keepstone.recall.selection import UNWANTED
from keepstone.text.display import counted
from keepstone.web.choosers import Choosers, names_of, trust_field
from keepstone.web.components import HitList
from keepstone.web.details import Details
from keepstone.web.elements import (
    EXPECTED,
    aside,
    attempt,
    box,
    button,
    empty,
    failure,
    field,
    say,
    tell,
    undoing,
)
from keepstone.web.frame import frame
from keepstone.web.phrases import key_of, shown
from keepstone.web.site import Place
from keepstone.web.views import View, hit_views

_LEAD = "Ask a question or enter some words. Each hit shows why it was found."
_TEXTS = (
    ("since", "Made since", "yesterday, 2026-03-01"),
    ("until", "Made before", "2026-04-01"),
    ("as_of", "As memory was at", "2026-03-01T12:00:00Z"),
    ("where", "Payload values", "role=user, with commas"),
    ("shared", "Also shared by agents", "team, with commas"),
)
_FIRST = 1
"""Number of text filters shown at once, with the choices; all others are behind *More filters*."""
_CHOSEN = ("session", "type", "tag")
_NUMBERS = (
    ("limit", "Hits", 10.0, 1.0, 100.0),
    ("neighbours", "Neighbours", 2.0, 0.0, 10.0),
    ("min_priority", "Priority, at least", 0.0, 0.0, 1.0),
    ("min_relevance", "Relevance, at least", 0.0, 0.0, 1.0),
)
"""Numeric filters: name, label, default, minimum and maximum. With a maximum of 1, fractions are valid."""
_USUAL = {name: f"{usual:g}" for name, _, usual, *_ in _NUMBERS}
_LABELS = {
    "session": "Sessions",
    "type": "Types",
    "tag": "Tags",
    "trust": "Trust, at least",
    **{name: label for name, label, *_ in (*_TEXTS, *_NUMBERS)},
}


class RecallPage:
    """State of the page: the query and its filters."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.fields: dict[str, Any] = {}
        self.asked = ""

    async def build(self) -> None:
        """Draw the page, with hits if the address has a query."""
        query = self.place.query.get("q", "")
        with frame(self.place, "recall", "Recall", _LEAD):
            with box(classes="add-note", data_search=""):
                self.query = field("Question or words", value=query).props("type=search")
                self.query.on("keydown.enter", self._ask, args=[])
                button("Recall", self._ask, "main")
            with box(classes="beside"):
                self._filters()
                with box():
                    self.chips = box(classes="chips", role="group", aria_label="Filters that are on")
                    self.sum = say("p", "", "answer-line", role="status")
                    self.list = HitList()
                    is_tested = self.place.is_admin and has_tests(self.place.site.home)
                    self.list.show(readOnly=self.place.read_only, tested=is_tested)
                    self.list.when("expect", self._expect)
                    Details(self.place, self._ask, self._hit_of).connect(self.list)
                    self.rest = box()
                    self._nothing(asked=False)
        if query:
            ui.timer(0, self._ask, once=True)

    def _filters(self) -> None:
        more = ("trust", *(text[0] for text in _TEXTS[_FIRST:]), *_USUAL)
        # An active filter must not be hidden, so its section is open from the start.
        is_more = any(self.place.query.get(name) for name in more)
        is_open = is_more or any(self.place.query.get(name) for name in (*_CHOSEN, _TEXTS[0][0]))
        with box("details", data_wide="", **({"open": ""} if is_open else {})):
            say("summary", "Filters")
            with box(classes="filters"):
                self.choosers = Choosers(_CHOSEN, self.place.query, self._ask)
                self._text_fields(_TEXTS[:_FIRST])
            with box("details", "more-filters", **({"open": ""} if is_more else {})):
                say("summary", "More filters")
                with box(classes="filters"):
                    self._text_fields(_TEXTS[_FIRST:])
                    self.trust = trust_field(self.place.query.get("trust", ""), self._ask)
                    self._number_fields()
        ui.timer(0, lambda: self.choosers.offer(self.place.agent), once=True)

    def _text_fields(self, texts: Sequence[tuple[str, str, str]]) -> None:
        for name, label, hint in texts:
            made = field(label, hint, self.place.query.get(name, ""))
            made.on("keydown.enter", self._ask, args=[])
            self.fields[name] = made

    def _number_fields(self) -> None:
        for name, label, usual, least, most in _NUMBERS:
            made = field(label, value=self.place.query.get(name) or f"{usual:g}")
            made.props(f"type=number min={least:g} max={most:g} step={0.1 if most == 1 else 1}")
            made.on("keydown.enter", self._ask, args=[])
            # Leaving a number field only validates it; Enter or the button starts a search.
            made.on("blur", self._numbers, args=[])
            self.fields[name] = made
        self._numbers()

    async def _ask(self) -> None:
        query = str(self.query.value or "").strip()
        if not query:
            self._nothing(asked=False)
            return
        numbers = self._numbers()
        if numbers is None:
            self.sum.text = "Correct the marked field: nothing was searched."
            return
        self.sum.text = "Recalling …"
        try:
            hits = await aside(self.place.agent.recall, query, **self._bounds(numbers))
        except EXPECTED as error:
            self._fail(message_of(error))
            return
        self.asked = query
        on = self._on(numbers)
        self._remember(query, on)
        self._show_chips(on)
        self._draw(hits)

    def _bounds(self, numbers: dict[str, float]) -> dict[str, Any]:
        text = self._texts()
        return {
            "sessions": self.choosers.chosen("session") or None,
            "types": self.choosers.chosen("type") or None,
            "tags": self.choosers.chosen("tag") or None,
            "trust": self.trust.value or None,
            "where": _where(text["where"]),
            **{name: text[name] or None for name in ("since", "until", "as_of")},
            "shared": names_of(text["shared"]),
            "limit": int(numbers["limit"]),
            "neighbours": int(numbers["neighbours"]),
            "min_priority": numbers["min_priority"],
            "min_relevance": numbers["min_relevance"],
        }

    def _texts(self) -> dict[str, str]:
        return {name: str(self.fields[name].value or "").strip() for name, *_ in _TEXTS}

    def _numbers(self) -> dict[str, float] | None:
        """Return the numbers; None if one is invalid, which its field then shows."""
        found: dict[str, float] = {}
        for name, _, usual, least, most in _NUMBERS:
            typed = str(self.fields[name].value or "").strip()
            number = _number(typed, least, most) if typed else usual
            kind = "a number" if most == 1 else "a whole number"
            # NiceGUI shows the text of ``error`` below its field, and None removes it.
            self.fields[name].error = f"{kind} from {least:g} to {most:g}" if number is None else None
            if number is not None:
                found[name] = number
        return found if len(found) == len(_NUMBERS) else None

    def _on(self, numbers: dict[str, float]) -> dict[str, str]:
        """Return the active filters, by their names in the address."""
        given = {name: self.choosers.text(name) for name in _CHOSEN} | self._texts()
        given["trust"] = self.trust.value
        changed = {name: f"{numbers[name]:g}" for name, _, usual, *_ in _NUMBERS if numbers[name] != usual}
        return {name: value for name, value in given.items() if value} | changed

    def _remember(self, query: str, on: dict[str, str]) -> None:
        """Put the query and its filters into the address, so that it can be bookmarked."""
        href = self.place.link("recall", q=query, **on)
        ui.run_javascript(f"history.replaceState(null, '', {json.dumps(href)})")

    def _show_chips(self, on: dict[str, str]) -> None:
        """Show each active filter as a button that removes it."""
        self.chips.clear()
        with self.chips:
            for name, value in on.items():
                words = f"{_LABELS[name]}: {value}"
                button(f"{words} ✕", partial(self._off, name), "chip", aria_label=f"Without {shown(words)}")

    async def _off(self, name: str) -> None:
        """Remove a filter, and search again."""
        if name in _CHOSEN:
            self.choosers.clear(name)  # This searches again, like any change of a choice.
            return
        if name == "trust":
            self.trust.value = ""
            return
        self.fields[name].value = _USUAL.get(name, "")
        await self._ask()

    def _draw(self, hits: Hits) -> None:
        self.list.show(hits=hit_views(hits, self.place))
        self.sum.text = shown(_sum(hits))
        if hits:
            self.rest.clear()
        else:
            self._nothing(asked=True)

    async def _expect(self, told: dict[str, Any]) -> None:
        """Add a memory test: the question must find an entry, or must not find it."""
        home, slug, query = self.place.site.home, self.place.agent.slug, self.asked
        ids = [json.loads(told["entry"])]
        found, never = (ids, []) if told["found"] else ([], ids)
        with attempt():
            await self.place.check_admin()
            test = await aside(expect, tests_file(home), slug, query, expect=found, never=never)
            must = "must find this" if told["found"] else "must not find this"
            tell(
                f"Added a test of memory: “{query}” {must}.", undoing(partial(forget, home, test), self._ask)
            )

    def _hit_of(self, session: str, entry_id: str) -> View | None:
        keys = (key_of(session), key_of(entry_id))
        hits: list[View] = self.list.props.get("hits") or []
        return next((hit for hit in hits if (hit["sessionKey"], hit["entryKey"]) == keys), None)

    def _nothing(self, *, asked: bool) -> None:
        self.list.show(hits=[])
        self._rest(
            (lambda: empty("Nothing found", "Try other words, or remove a filter."))
            if asked
            else (
                lambda: empty(
                    "What would you like to know?", "For example: who decided on the retry policy, and why?"
                )
            )
        )

    def _fail(self, words: str) -> None:
        self.sum.text = ""
        self.list.show(hits=[])
        self._rest(lambda: failure(words))

    def _rest(self, draw: Callable[[], object]) -> None:
        self.rest.clear()
        with self.rest:
            draw()


def _sum(hits: Hits) -> str:
    """Return a sentence on how the hits were found."""
    said = [f"{counted(len(hits), 'hit')} in {hits.took_ms:.0f} ms."]
    said += ["Nothing certain: no hit is clearly about this."] if hits and hits.nothing_relevant else []
    if hits.lexical_only:
        said += [] if hits.reason == UNWANTED else [f"By words only: {hits.reason}."]
    else:
        said.append(f"By words and vectors ({hits.embedder}).")
    said += [f"{counted(hits.pending, 'entry')} not yet embedded."] if hits.pending else []
    said += ["The index is behind the logs: hits may be missing."] if hits.stale else []
    return " ".join(said)


def _where(words: str) -> dict[str, Any] | None:
    """Return conditions on the payload; values are parsed as JSON if possible, else taken as text."""
    pairs = [word.partition("=") for word in names_of(words)]
    for key, sign, value in pairs:
        if not key or not sign:
            raise ValueError(f"{key + sign + value!r:.80} is not KEY=VALUE")
    return {key.strip(): _value(value.strip()) for key, _, value in pairs} or None


def _value(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:
        return word


def _number(given: str, least: float, most: float) -> float | None:
    """Return a number within its bounds; None if it is invalid, or a fraction although it must be whole."""
    try:
        number = float(given)
    except ValueError:
        return None
    return number if least <= number <= most and (most == 1 or number.is_integer()) else None


async def build(place: Place) -> None:
    """Draw the page."""
    await RecallPage(place).build()
