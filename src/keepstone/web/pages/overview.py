"""The overview page: charts of an agent's entries, priorities and size, and the state of its index."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from nicegui import ui

from keepstone.filesystem.layout import Layout
from keepstone.log.line import read_time
from keepstone.model import Hits, SessionInfo
from keepstone.operations.error_codes import message_of
from keepstone.store.decay import FADED, worth_of
from keepstone.text.display import counted, size
from keepstone.web import charts
from keepstone.web.elements import EXPECTED, aside, box, button, failure, say
from keepstone.web.frame import frame
from keepstone.web.phrases import shown
from keepstone.web.site import Place

_MOST_ENTRIES = 200_000
_MOST_SESSIONS = 500
"""Limits of what is read for the charts, starting with the session changed last."""


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
    """A recall, which tells the state of the index."""
    disk: dict[str, int]


def gather(place: Place) -> Overview:
    """Read the data of the charts. The time is proportional to the size of the agent's logs."""
    agent, sessions = place.agent, place.agent.sessions()
    counts = agent.entry_counts()
    days: Counter[date] = Counter()
    types: Counter[str] = Counter()
    now, faded, read = datetime.now(UTC), 0, 0
    for info in sessions[:_MOST_SESSIONS]:
        if read and types.total() + counts.get(info.id, 0) > _MOST_ENTRIES:
            break
        read += 1
        for record in agent.session(info.id).records():
            made = read_time(record["ts"])
            days.update([made.date()] if made else [])
            types[record["type"]] += 1
            faded += record.get("pinned") is not True and worth_of(record).at(now) <= FADED
    disk = _disk(place, sessions)
    return Overview(
        sessions, sum(counts.values()), read, days, types, faded, agent.recall("memory", limit=1), disk
    )


def _disk(place: Place, sessions: list[SessionInfo]) -> dict[str, int]:
    root = place.site.home.root
    index = _weight(Layout.derived_folder(root) / place.agent.slug)
    return {"Logs": sum(info.size for info in sessions), "Index": index}


def _weight(folder: Path) -> int:
    """Return the bytes of all files below a folder; files that vanish do not count."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118  os.walk gives strings.
            except FileNotFoundError:
                continue
    return total


class OverviewPage:
    """State of the page: the latest data."""

    def __init__(self, place: Place) -> None:
        self.place = place

    async def build(self) -> None:
        """Draw the page, which then loads its data."""
        with frame(self.place, "overview", "Overview", "This agent's memory in figures.") as head:
            with head:
                self.again = button("Refresh", self._reload)
            with box() as self.body:
                _placeholder()
            ui.timer(0, self._reload, once=True)

    async def _reload(self) -> None:
        self.again.props.update(disabled=True)
        try:
            found = await aside(gather, self.place)
            self._redraw(lambda: _draw(found))
        except EXPECTED as error:
            words = message_of(error)
            self._redraw(lambda: failure(words))
        self.again.props.update(disabled=False)

    def _redraw(self, draw: Callable[[], object]) -> None:
        self.body.clear()
        with self.body:
            draw()


def _placeholder() -> None:
    """Reserve the room of the charts, so that the layout does not shift."""
    with box(classes="figures"):
        for _ in range(4):
            box(classes="figure")
    with box(classes="charts"):
        for _ in range(4):
            with box(classes="chart"):
                say("h2", "…")
                say("p", "Reading", "hint")
                box(classes="nicegui-echart")


def _draw(found: Overview) -> None:
    with box(classes="figures"):
        _figure(f"{len(found.sessions):,}", "sessions")
        _figure(f"{found.entries:,}", "entries")
        _figure(f"{found.faded:,}", "faded to 0.3 or less")
        _figure(size(sum(found.disk.values())), "on disk")
    of = "" if found.read == len(found.sessions) else f" in the {counted(found.read, 'session')} changed last"
    with box(classes="charts"):
        _chart("Entries over time", f"When the entries{of} were made.", charts.over_time(found.days))
        _chart("Types", f"Entries{of} by type.", charts.types(found.types))
        _chart(
            "How priorities fade", "By days since the entry was made; each use adds 0.02.", charts.fading()
        )
        _chart("Size on disk", "The index can be rebuilt from the logs.", charts.on_disk(found.disk))
    with box(classes="source"):
        say("h2", "Index")
        say("p", _index(found.answer))


def _figure(number: str, what: str) -> None:
    with box(classes="figure"):
        say("b", number)
        say("span", what)


def _chart(title: str, hint: str, options: charts.Options) -> None:
    with box("section", "chart"):
        say("h2", title)
        say("p", hint, "hint")
        if options["series"][0]["data"]:
            ui.echart(options, renderer="svg")
        else:
            say("p", "No entries yet.", "waiting")


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
