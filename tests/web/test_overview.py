"""What the overview reads, and what it says of it."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from nicegui import Client, ui
from tests.memories import SESSIONS
from tests.web.page import every, on_a_page, words_of

import keepstone
from keepstone import Hits, Notes, StoreError
from keepstone.chat.offline import OfflineResponder
from keepstone.web.answering import Talking
from keepstone.web.pages import overview
from keepstone.web.site import Open, Place, Site


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with keepstone.open(tmp_path, embedder="none") as home:
        notes = Notes(tmp_path)
        site = Site(home, notes, lambda _: Open(), Talking(notes, OfflineResponder()))
        yield Place(site, home.agent("default"), Open(), {})


def written(place: Place, session: str, *lines: dict[str, Any]) -> None:
    """Write a log as another program would."""
    log = place.site.home.root / SESSIONS / f"{session}.ndjson"
    log.parent.mkdir(parents=True, exist_ok=True)
    whole = [
        {"id": str(at), "ts": "2026-03-01T12:00:00Z", "type": "note", "data": {}} | line
        for at, line in enumerate(lines)
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in whole), "utf-8")


def page_of(place: Place) -> list[str]:
    """Return what the page says once it has looked."""
    said: list[str] = []

    async def steps(page: Client) -> None:
        await overview.build(place)
        timer = every(page, ui.timer)[-1]  # The one before checks the health.
        await timer.callback()  # type: ignore[misc]
        said.extend(words_of(page))

    on_a_page(steps)
    return said


def test_an_agent_without_entries_has_an_overview_of_nothing(place: Place) -> None:
    found = overview.gather(place)
    assert (found.sessions, found.entries, found.days, found.types, found.faded) == ([], 0, {}, {}, 0)
    assert found.disk["Logs"] == 0


def test_entries_count_on_the_day_that_it_was_in_utc(place: Place) -> None:
    written(place, "s", {"ts": "2026-03-01T23:30:00-05:00"}, {"ts": "2026-03-01T00:30:00+01:00"}, {})
    days = {date(2026, 2, 28): 1, date(2026, 3, 1): 1, date(2026, 3, 2): 1}
    assert overview.gather(place).days == days


def test_what_was_deleted_is_in_no_chart(place: Place) -> None:
    written(place, "s", {"type": "decision"}, {"type": "finding"}, {"id": "0", "deleted": True})
    found = overview.gather(place)
    assert (found.entries, found.types) == (1, Counter(["finding"]))


def test_a_pinned_entry_never_counts_as_faded(place: Place) -> None:
    old = {"ts": "2020-01-01T00:00:00Z"}
    written(place, "s", old, old | {"pinned": True}, {"ts": "2999-01-01T00:00:00Z"})
    assert overview.gather(place).faded == 1


def test_only_the_last_changed_sessions_are_read_up_to_a_limit(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "_MOST_SESSIONS", 1)
    place.agent.session("old").add("decision", {"content": "x"}, ts="2026-03-01T12:00:00Z")
    place.agent.session("new").add("finding", {"content": "y"})
    found = overview.gather(place)
    assert (found.read, found.types, found.entries) == (1, Counter(["finding"]), 2)


def test_one_session_is_read_however_many_entries_it_has(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "_MOST_ENTRIES", 2)
    written(place, "one", {}, {}, {})
    written(place, "two", {}, {}, {})
    found = overview.gather(place)
    assert (found.read, found.types.total(), found.entries) == (1, 3, 6)


def test_the_weight_of_the_index_is_that_of_its_files(place: Place) -> None:
    place.agent.session("s").add("note", {"content": "x"})
    overview.gather(place)
    files = [path for path in (place.site.home.root / ".index" / "default").rglob("*") if path.is_file()]
    found = overview.gather(place)
    assert found.disk == {"Logs": found.sessions[0].size, "Index": sum(path.stat().st_size for path in files)}


def test_charts_of_some_sessions_say_of_how_many(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    written(place, "one", {})
    written(place, "two", {})
    assert "When the entries were made. A bar leads to them." in page_of(place)
    monkeypatch.setattr(overview, "_MOST_SESSIONS", 1)
    assert "When the entries in the 1 session changed last were made. A bar leads to them." in page_of(place)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Hits(reason="no model\x07"), "words only: no model\\x07. The index is up to date."),
        (Hits(reason="off", stale=True), "words only: off. The index is behind the logs."),
        (
            Hits(embedder="x", reason="own", pending=2),
            "words and vectors, with x: own. The index is up to date. 2 entries not yet embedded.",
        ),
    ],
)
def test_the_page_shows_the_state_of_the_index(
    place: Place, monkeypatch: pytest.MonkeyPatch, answer: Hits, told: str
) -> None:
    found = replace(overview.gather(place), answer=answer)
    monkeypatch.setattr(overview, "gather", lambda _: found)
    assert page_of(place)[-1] == f"Recall uses {told}"


def test_what_cannot_be_read_is_reported_in_place_of_the_charts(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Place) -> None:
        raise StoreError("the disk failed")

    monkeypatch.setattr(overview, "gather", fail)
    assert page_of(place)[-2:] == ["That did not work. ", "the disk failed"]
