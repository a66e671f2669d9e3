"""The overview page: figures and charts of an agent, the health of the home, and the state of the index."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from nicegui import events, ui

from keepstone.filesystem.layout import Layout
from keepstone.model import Hits, SessionInfo
from keepstone.operations.error_codes import message_of
from keepstone.store.decay import FADED, worth_of
from keepstone.text.display import counted, size
from keepstone.web import charts
from keepstone.web.components import LinkList
from keepstone.web.elements import EXPECTED, aside, box, button, empty, failure, say
from keepstone.web.frame import frame
from keepstone.web.health import Health
from keepstone.web.phrases import shown
from keepstone.web.site import Place

_FIGURES = ("sessions", "entries", f"faded to {FADED} or less", "on disk")
_OVER_TIME, _TYPES = "Entries over time", "Types"
_FADING = (
    "How priorities fade",
    "A priority sinks with the days since its entry was made, and each use adds 0.02. "
    f"An entry at {FADED} or less is faded, unless it is pinned: it is still there and still found, until "
    "keepstone compact --archive moves it to the archive.",
)
_DISK = ("Size on disk", "The index can be rebuilt from the logs.")
_MOST_ENTRIES = 200_000
_MOST_SESSIONS = 500
"""Maximum entries and sessions read for the charts, starting with the session changed last."""
_MOST_CHECKED = 20_000
"""Maximum entries for which opening the page also checks the home; ``_MOST_SESSIONS`` applies, too."""


@dataclass(frozen=True, slots=True)
class Overview:
    """The data of the charts."""

    sessions: list[SessionInfo]
    entries: int
    read: int
    """Number of sessions that ``days``, ``types`` and ``faded`` count."""
    days: Counter[date]
    types: Counter[str]
    faded: int
    answer: Hits
    """The result of a recall, which includes the state of the index."""
    disk: dict[str, int]


def gather(place: Place) -> Overview:
    """Read the data of the charts. The time is proportional to the size of the agent's logs."""
    agent, sessions = place.agent, place.agent.sessions()
    counts = agent.entry_counts()
    days: Counter[date] = Counter()
    types: Counter[str] = Counter()
    now, faded, read = datetime.now(UTC), 0, 0
    for info in sessions[:_MOST_SESSIONS]:
        # The counts come from the index, so the limit is checked before a session is read. The first session
        # is always read.
        if read and types.total() + counts.get(info.id, 0) > _MOST_ENTRIES:
            break
        read += 1
        for record in agent.session(info.id).records():
            worth = worth_of(record)
            days[worth.made.date()] += 1
            types[record["type"]] += 1
            faded += record.get("pinned") is not True and worth.at(now) <= FADED
    disk = _disk(place, sessions)
    return Overview(
        sessions, sum(counts.values()), read, days, types, faded, agent.recall("memory", limit=1), disk
    )


def _disk(place: Place, sessions: list[SessionInfo]) -> dict[str, int]:
    root = place.site.home.root
    index = _weight(Layout.derived_folder(root) / place.agent.slug)
    return {"Logs": sum(info.size for info in sessions), "Index": index}


def _weight(folder: Path) -> int:
    """Return the bytes of all files below a folder; files that are removed during the walk do not count."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                # ``lstat`` counts a link and not its target, which may be outside the home.
                total += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118  os.walk gives strings.
            except FileNotFoundError:
                continue
    return total


class OverviewPage:
    """State of the page: the latest data."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.health = Health(place)
        self.is_large = False

    async def build(self) -> None:
        """Draw the page, which then loads its data."""
        with frame(
            self.place, "overview", "Overview", "This agent's memory in figures, and its health."
        ) as head:
            with head:
                self.again = button("Refresh", self._reload)
            with box() as self.figures:
                _figures(("…",) * len(_FIGURES))
            self.health.build()
            with box() as self.body:
                _placeholder()
            ui.timer(0, self._load, once=True)

    async def _load(self) -> None:
        """Draw the charts before the check of the home, which takes longer and would slow them down."""
        await self._reload()
        if self.is_large:
            self.health.sum.text = "Not checked yet: of a memory as large as this a check takes seconds."
        else:
            await self.health.check()

    async def _reload(self) -> None:
        self.again.props.update(disabled=True)
        try:
            found = await aside(gather, self.place)
            self.is_large = found.entries > _MOST_CHECKED or len(found.sessions) > _MOST_SESSIONS
            self._redraw(lambda: self._draw(found))
        except EXPECTED as error:
            words = message_of(error)
            self._redraw(lambda: failure(words))
        self.again.props.update(disabled=False)

    def _redraw(self, draw: Callable[[], object]) -> None:
        self.body.clear()
        with self.body:
            draw()

    def _draw(self, found: Overview) -> None:
        """Draw the figures and charts; empty charts are left out."""
        numbers = (
            f"{len(found.sessions):,}",
            f"{found.entries:,}",
            f"{found.faded:,}",
            size(sum(found.disk.values())),
        )
        self.figures.clear()
        with self.figures:
            _figures(numbers)
        is_all = found.read == len(found.sessions)
        of = "" if is_all else f" in the {counted(found.read, 'session')} changed last"
        if not found.entries:
            empty("No entries yet", "Charts appear with the first entry.")
        with box(classes="charts"):
            if found.days:
                self._over_time(found, of)
            if found.types:
                self._types(found, of)
            if found.entries:
                with _chart(*_FADING):
                    ui.echart(charts.fading(), renderer="svg")
            if any(found.disk.values()):
                with _chart(*_DISK):
                    ui.echart(charts.on_disk(found.disk), renderer="svg")
        with box(classes="source"):
            say("h2", "Index")
            say("p", _index(found.answer))

    def _over_time(self, found: Overview, of: str) -> None:
        spans = charts.spans(found.days)
        links = [
            self.place.link("timeline", since=begin.isoformat(), until=end.isoformat())
            for begin, end, _ in spans
        ]
        rows = [
            (counted(count, "entry"), f"{begin:%Y-%m-%d}", href)
            for (begin, _, count), href in zip(spans, links, strict=True)
            if count
        ]
        with _chart(_OVER_TIME, f"When the entries{of} were made. A bar leads to them."):
            _linked(charts.over_time(found.days), links, rows[::-1])

    def _types(self, found: Overview, of: str) -> None:
        common = charts.common_types(found.types)
        links = [self.place.link("timeline", type=name) for name, _ in common]
        rows = [
            (counted(count, "entry"), name, href) for (name, count), href in zip(common, links, strict=True)
        ]
        with _chart(_TYPES, f"Entries{of} by type. A bar leads to them."):
            _linked(charts.types(found.types), links[::-1], rows)


def _placeholder() -> None:
    """Show a placeholder of the same size during reading, so that the layout does not shift."""
    with box(classes="charts"):
        for title, hint in ((_OVER_TIME, ""), (_TYPES, ""), _FADING, _DISK):
            with _chart(title, hint):
                say("p", "Reading the logs …", "waiting")


def _figures(numbers: Sequence[str]) -> None:
    with box(classes="figures"):
        for number, what in zip(numbers, _FIGURES, strict=True):
            with box(classes="figure"):
                say("b", number)
                say("span", what)


def _chart(title: str, hint: str) -> ui.element:
    with box("section", "chart") as made:
        say("h2", title)
        say("p", hint, "hint")
    return made


def _linked(options: charts.Options, links: Sequence[str], rows: Sequence[tuple[str, str, str]]) -> None:
    """Show a chart whose bars lead to pages, and the same links as a list for readers without a mouse."""

    def follow(event: events.EChartPointClickEventArguments) -> None:
        # Check the number, as it comes from the browser.
        if 0 <= event.data_index < len(links):
            ui.navigate.to(links[event.data_index])

    # SVG stays sharp at any zoom, and its text can be found by the browser's search.
    ui.echart(options, follow, renderer="svg")
    with box("details"):
        say("summary", "As a list")
        items = [
            {"name": shown(name), "detail": detail, "href": href, "current": False}
            for detail, name, href in rows
        ]
        LinkList().show(items=items, label="Bars")


def _index(answer: Hits) -> str:
    """Return a sentence on the state of the index."""
    if answer.lexical_only:
        said = [f"Recall uses words only: {shown(answer.reason)}."]
    else:
        embedder = shown(str(answer.embedder))
        said = [f"Recall uses words and vectors, with {embedder}: {shown(answer.reason)}."]
    said.append("The index is behind the logs." if answer.stale else "The index is up to date.")
    said.append(f"{counted(answer.pending, 'entry')} not yet embedded." if answer.pending else "")
    return " ".join(said).strip()


async def build(place: Place) -> None:
    """Draw the page."""
    await OverviewPage(place).build()
