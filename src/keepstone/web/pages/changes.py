"""The changes page: the changes of an agent's memory on one day, with the earlier content."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial

from keepstone.operations.day_changes import Changed, changes, way_in
from keepstone.operations.session_labels import session_labels
from keepstone.operations.suggesting import Effect
from keepstone.web.correcting import Correcting
from keepstone.web.diff import Budget
from keepstone.web.elements import aside, attempt, box, button, empty, link, say, tell, undoing
from keepstone.web.frame import frame
from keepstone.web.live import Live
from keepstone.web.pages.inbox import ChangedWords, changed_words, draw_change
from keepstone.web.phrases import local, shown
from keepstone.web.site import Place

_LEAD = "What was added, edited, superseded, deleted and purged on a day, the newest first."
_PURGED = "Of what was purged only the number of entries is known."
_PAGE = 40
"""Number of changes shown at first, and added by each *Show more*."""


@dataclass(frozen=True, slots=True)
class Day:
    """The changes of a day."""

    changes: list[tuple[Changed, ChangedWords]]
    more: int
    """Number of changes that are not shown."""
    kinds: Counter[str]
    labels: dict[str, str]
    """Labels of sessions by id."""


class ChangesPage:
    """State of the page: the day."""

    def __init__(self, place: Place) -> None:
        self.place = place
        today = local(datetime.now(UTC)).date()
        try:
            self.day = date.fromisoformat(place.query.get("day", ""))
        except ValueError:
            self.day = today
        self.is_today = self.day == today
        self.most = _PAGE

    async def build(self) -> None:
        """Draw the page."""
        with frame(self.place, "changes", "Changes", _LEAD):
            with box(classes="row"):
                self._go("Day before", -1)
                say("h2", f"{self.day:%A, %Y-%m-%d}")
                if not self.is_today:
                    self._go("Day after", 1)
            self.sum = say("p", "", "answer-line", role="status")
            self.live = Live(self._load, self._draw)
            self.list = box(classes="suggestions")
            self.correcting = Correcting(self.place, self.live.refresh)
            self.more = button("Show more", self._show_more)
            await self.live.start()

    def _go(self, title: str, days: int) -> None:
        day = self.day + timedelta(days=days)
        link(title, self.place.link("changes", day=day.isoformat()), "button quiet")

    def _load(self) -> Day:
        zone = local(datetime.now(UTC)).tzinfo
        # The day is in the reader's time zone, and thus does not always have 24 hours.
        begin = datetime(self.day.year, self.day.month, self.day.day, tzinfo=zone)
        found = changes(self.place.agent, begin, begin + timedelta(days=1))
        purged = len(self.place.agent.purge_times(begin, begin + timedelta(days=1)))
        # All changes share one budget, which bounds the time of the page however many long texts have
        # changed.
        budget, first = Budget(), found[: self.most]
        words = [changed_words(Effect(change.id, change.before, change.after), budget) for change in first]
        kinds = Counter(change.kind for change in found) + Counter(purged=purged)
        labels = session_labels(self.place.agent, {change.session for change in first})
        return Day([*zip(first, words, strict=True)], len(found) - len(first), kinds, labels)

    def _draw(self, found: Day) -> None:
        self.sum.text = (
            ", ".join(f"{number:,} {kind}" for kind, number in found.kinds.items()) or "No changes."
        )
        self.list.clear()
        with self.list:
            if found.kinds["purged"]:
                say("p", _PURGED, "hint")
            elif not found.changes:
                empty("A quiet day", "Nothing of this agent's memory changed on it.")
            for change, words in found.changes:
                self._draw_one(change, words, found.labels[change.session])
        self.more.set_visibility(found.more > 0)

    async def _show_more(self) -> None:
        self.most += _PAGE
        await self.live.refresh()

    def _draw_one(self, change: Changed, changed: ChangedWords, session: str) -> None:
        title = f"{change.kind.capitalize()} at {local(change.ts):%H:%M}"
        with box("section", "change suggestion", role="group", aria_label=f"{title}: {change.id}"):
            with box(classes="row"):
                say("strong", title)
                href = self.place.link("session", id=change.session, entry=change.id)
                if way := way_in(change):
                    say("span", shown(way), "hint")
                link(shown(session), href, "hint")
                can_restore = change.kind in ("deleted", "superseded") or change.before is not None
                if can_restore and not self.place.read_only:
                    words = f"Restore {change.id}"
                    button("Restore", partial(self._restore, change), "quiet", aria_label=words)
            draw_change(changed)

    async def _restore(self, change: Changed) -> None:
        session = self.place.agent.session(change.session)
        if change.kind == "superseded":
            await self.correcting.reinstate(session, change.id)
        elif change.kind == "edited" and change.before is not None:
            await self.correcting.restore_version(session, change.id, change.before)
        else:
            await self._restore_deleted(change)

    async def _restore_deleted(self, change: Changed) -> None:
        with attempt():
            agent = self.place.agent
            await aside(agent.restore, change.id, change.session)
            # The entry has its content from before the deletion, so undo deletes it again.
            tell("Restored", undoing(partial(agent.delete, change.id, change.session), self.live.refresh))
        await self.live.refresh()


async def build(place: Place) -> None:
    """Draw the page."""
    await ChangesPage(place).build()
