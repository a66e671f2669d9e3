"""The inbox: items that wait for a person, with buttons for decisions, and past decisions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import NamedTuple

from nicegui import ui

from keepstone.log.line import text_of
from keepstone.model import Entry, Record, Suggestion
from keepstone.operations.inbox import Item, Kind, items
from keepstone.operations.running_tests import forget, restore
from keepstone.operations.suggesting import BY, Effect, effects, is_suspicion, suggest
from keepstone.secrets.detection import masked
from keepstone.store.memory_tests import MemoryTest
from keepstone.text.display import clipped, counted
from keepstone.web.correcting import Correcting
from keepstone.web.diff import Budget, Part, word_diff
from keepstone.web.elements import aside, attempt, box, button, empty, link, say, tell, undoing
from keepstone.web.frame import frame
from keepstone.web.live import Live
from keepstone.web.phrases import key_of, moment
from keepstone.web.site import Place

_LEAD = "What of this memory waits for you. Nothing here changes by itself."
_MOST = 50
"""Maximum number of shown items, of suggestions and of decisions."""
_LONGEST = 2_000
_KINDS: dict[Kind, tuple[str, str]] = {
    "contradiction": ("These contradict one another", "contradiction"),
    "duplicate": ("These say the same", "repeat"),
    "secret": ("This looks like a secret", "secret"),
    "stale": ("This may not hold any more", "stale entry"),
    "test": ("A test of memory fails", "failed test"),
}
"""The title of an item, and its noun in the count."""
_VERBS = {"vouch": "I confirm this", "edit": "Edit", "delete": "Delete", "purge": "Purge"}
_OF_SECRETS = "An edit keeps the secret in the history; a purge removes every byte of it."
_GONE = "Done: the other one is no longer recalled."
_CLEARED = "Noted: it is shown again only if it changes."
_DONE = {"accepted": "Accepted", "rejected": "Rejected", "undone": "Undone"}


class ChangedWords(NamedTuple):
    """The removed and added words of an entry."""

    id: str
    parts: list[Part]


@dataclass(frozen=True, slots=True)
class Shown:
    """The content of the page."""

    open: list[tuple[Suggestion, list[ChangedWords]]]
    more: int
    """Number of open suggestions that are not shown."""
    decided: list[Suggestion]


class InboxPage:
    """State of the page: the items found last."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.items: list[Item] = []
        self.suggested = Shown([], 0, [])
        self.is_looking = True

    async def build(self) -> None:
        """Draw the page."""
        with frame(self.place, "inbox", "Inbox", _LEAD) as head:
            with head:
                button("Look again", self._look)
            self.sum = say("p", "", "answer-line", role="status")
            self.live = Live(self._load, self._draw)
            self.list = box(classes="suggestions")
            self.correcting = Correcting(self.place, self._look)
            await self.live.start()
            ui.timer(0, self._look, once=True)

    async def _look(self) -> None:
        """Search for all items except suggestions, which takes longer than reading suggestions."""
        self.is_looking = True
        self._say()
        with attempt():
            site = self.place.site
            # ``items`` is a lazy generator, so the limit also bounds the time. The list is built in the
            # thread that ``aside`` uses, not in the event loop.
            self.items = await aside(lambda: [*islice(items(site.home, self.place.agent), _MOST)])
        self.is_looking = False
        await self.live.refresh()

    def _say(self) -> None:
        shown = [found for found, _ in self.suggested.open if not self._is_shown_as_item(found)]
        suggested = len(shown) + self.suggested.more
        kinds = [(kind, sum(item.kind == kind for item in self.items)) for kind in _KINDS]
        counts = [counted(count, _KINDS[kind][1]) for kind, count in kinds if count]
        counts += [counted(suggested, "suggestion")] if suggested else []
        looking = ["Looking …"] if self.is_looking else []
        self.sum.text = ", ".join(counts + looking) or "Nothing to decide."

    def _load(self) -> Shown:
        agent = self.place.agent
        every = agent.suggestions(None)
        # Suspected secrets are shown as items, which mask them.
        proposals = [
            suggestion for suggestion in every if suggestion.state == "open" and not is_suspicion(suggestion)
        ]
        decided = [suggestion for suggestion in every if suggestion.state != "open"]
        # All suggestions share one budget, as on the changes page.
        budget = Budget()
        pairs = [
            (suggestion, [changed_words(effect, budget) for effect in effects(agent, suggestion)])
            for suggestion in proposals[:_MOST]
        ]
        return Shown(pairs, max(0, len(proposals) - _MOST), decided[: -_MOST - 1 : -1])

    def _draw(self, found: Shown) -> None:
        self.suggested = found
        self._say()
        self.list.clear()
        with self.list:
            if not (found.open or self.items or self.is_looking):
                empty(
                    "All is well: nothing waits for you",
                    "No entries contradict or repeat one another, no secret was found, nothing is stale, and"
                    " no test of memory fails. What programs suggest appears here, too.",
                )
            for item in self.items:
                self._draw_item(item)
            for suggestion, changes in found.open:
                if not self._is_shown_as_item(suggestion):
                    self._draw_one(suggestion, changes)
            if found.more:
                say("p", f"{counted(found.more, 'more suggestion')} after these.", "hint")
            if found.decided:
                say("h2", "Decided")
            for suggestion in found.decided:
                self._draw_decided(suggestion)

    def _is_shown_as_item(self, suggestion: Suggestion) -> bool:
        """Return whether an item shows a suggestion, or may do so once the current search has ended."""
        is_own = suggestion.by == BY
        return is_own and (self.is_looking or suggestion.id in {item.suggestion for item in self.items})

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

    def _draw_item(self, item: Item) -> None:
        title, _ = _KINDS[item.kind]
        show = masked if item.kind == "secret" else str
        about = item.test.ask if item.test else clipped(show(item.entries[0].text), 60)
        with box("section", "change suggestion", role="group", aria_label=f"{title}: {about}"):
            say("h2", title)
            if item.test is not None:
                say("p", item.test.ask)
            for entry in item.entries:
                href = self.place.link("session", id=entry.session, entry=entry.id)
                link(clipped(show(entry.text), 300), href, "plain entry-link")
                say("p", f"{entry.type} in {entry.session}, {moment(entry.ts)}", "hint")
            say("p", f"{item.why}. {_OF_SECRETS}" if item.kind == "secret" else item.why, "hint")
            if not self.place.read_only:
                with box(classes="row"):
                    for at, (verb, act) in enumerate(self._answers(item)):
                        kind = "plain" if at else "main"
                        button(verb, act, kind, aria_label=f"{verb}: {about}")

    def _answers(self, item: Item) -> list[tuple[str, Callable[[], Awaitable[object]]]]:
        """Return the buttons of an item."""
        if item.test is not None:
            ask = self.place.link("recall", q=item.test.ask)
            look = ("Ask it", partial(self._go, ask))
            return (
                [look, ("Remove the test", partial(self._forget, item.test))]
                if self.place.is_admin
                else [look]
            )
        if item.kind != "secret" and item.proposal is not None and self.place.is_admin:
            keep = "Keep the newer" if item.kind == "contradiction" else "Keep one"
            buttons: list[tuple[str, Callable[[], Awaitable[object]]]]
            buttons = [(keep, partial(self._resolve, item, _GONE, accept=True))]
            if item.kind == "contradiction":
                buttons.append(("Keep the older", self._asks("delete", item.entries[0])))
            return [*buttons, ("Keep both", partial(self._resolve, item, "Both stay.", accept=False))]
        verbs = {"stale": ("vouch", "edit", "delete"), "secret": ("purge", "edit")}.get(item.kind, ("edit",))
        buttons = [(_VERBS[verb], self._asks(verb, item.entries[0])) for verb in verbs]
        if item.kind == "secret" and item.proposal is not None and self.place.is_admin:
            buttons.append(("This is no secret", partial(self._resolve, item, _CLEARED, accept=False)))
        return buttons

    def _asks(self, verb: str, entry: Entry) -> Callable[[], Awaitable[object]]:
        keys = {"entry": key_of(entry.id), "session": key_of(entry.session)}
        return partial(self.correcting.act, {"verb": verb, **keys})

    async def _go(self, address: str) -> None:
        ui.navigate.to(address)

    async def _resolve(self, item: Item, done: str, *, accept: bool) -> None:
        """Resolve a pair, or record that both stay, with a suggestion that is decided at once."""
        agent = self.place.agent
        with attempt():
            await self.place.check_admin()
            # Each decision is recorded on a suggestion, so that the inbox lists it under *Decided* and can
            # undo it.
            made = item.suggestion or (await aside(suggest, agent, item.proposal)).id
            await aside(agent.accept if accept else agent.reject, made)
            tell(done, undoing(partial(agent.undo, made), self._look))
        await self._look()

    async def _forget(self, test: MemoryTest) -> None:
        home = self.place.site.home
        with attempt():
            await self.place.check_admin()
            await aside(forget, home, test)
            tell("Removed the test.", undoing(partial(restore, home, test), self._look))
        await self._look()

    def _draw_decided(self, suggestion: Suggestion) -> None:
        title = _title(suggestion)
        with box(classes="row decided"):
            if suggestion.decided is None or suggestion.state not in _DONE:
                words = "Outdated: its entries changed since"
            else:
                done = _DONE[suggestion.state]
                words = f"{done} by {suggestion.decided_by}, {moment(suggestion.decided)}"
            say("span", f"{title}. {words}")
            if suggestion.state in ("accepted", "rejected") and self.place.is_admin:
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
            undo = undoing(partial(agent.undo, suggestion.id), self._look)
            tell(f"{done}: {_title(suggestion)}.", None if verb == "Undo" else undo)
        await self._look()


def _title(suggestion: Suggestion) -> str:
    """Return the action of a suggestion, such as "Add the tags auth, web to 2 entries"."""
    count = counted(len(suggestion.entries), "entry")
    if suggestion.do == "tag":
        return f"Add the tags {', '.join((suggestion.item or {})['tags'])} to {count}"
    return "Add a new entry" if suggestion.do == "add" else f"{suggestion.do.capitalize()} {count}"


def changed_words(change: Effect, budget: Budget) -> ChangedWords:
    """Return the removed and added words of an entry. Slow for long texts: not for the event loop."""
    return ChangedWords(change.id, word_diff(_words(change.before), _words(change.after), budget))


def draw_change(change: ChangedWords) -> None:
    """Show the removed and added words of an entry."""
    with box("pre", "diff", tabindex="0", aria_label=f"Change of {change.id}"):
        for kind, text in change.parts:
            say(kind or "span", text)


def _words(line: Record | None) -> str:
    """Return an entry's text, with its other values that a suggestion may change."""
    if line is None:
        return ""
    also = [f"\nTags: {', '.join(map(str, line['tags']))}"] if line.get("tags") else []
    return "".join([clipped(text_of(line), _LONGEST), *also, *(["\nPinned"] if line.get("pinned") else [])])


async def build(place: Place) -> None:
    """Draw the page."""
    await InboxPage(place).build()
