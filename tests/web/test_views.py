"""What the components are given, for whatever memory holds."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import keepstone
from keepstone import Agent, Entry, Hit, Hits, Notes, Why
from keepstone.chat.offline import OfflineResponder
from keepstone.log.line import format_time
from keepstone.model import SessionInfo
from keepstone.notes.notes import MemoryEntry
from keepstone.web.answering import Talking
from keepstone.web.phrases import LONGEST
from keepstone.web.site import Open, Place, Site
from keepstone.web.views import (
    entry_views,
    hit_views,
    note_views,
    session_view,
    speaker_of,
    tone_of,
    version_views,
    words_of,
)

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)
ANYTHING = st.text(alphabet=st.characters(codec=None))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        notes = Notes(tmp_path, tmp_path / "user.md")
        site = Site(home, notes, lambda _: Open(), Talking(notes, OfflineResponder()))
        yield Place(site, home.agent("coder"), Open(), {})


@pytest.fixture
def agent(place: Place) -> Agent:
    return place.agent


def entry(text: str = "x", **line: Any) -> Entry:
    """Return an entry as a log may hold it; ``line`` is what is unusual about it."""
    whole = {"id": "e1", "ts": format_time(NOW), "type": "note", "data": {"content": text}} | line
    return Entry("coder", "s", whole["id"], NOW, whole["type"], text, whole["data"], whole)


def view_of(made: Entry, now: datetime = NOW) -> dict[str, Any]:
    [view] = entry_views([made], now)
    return view


def hit(made: Entry, parts: dict[str, float], *near: Entry) -> Hit:
    return Hit(made, sum(parts.values()), Why({}, parts=parts), near)


def test_a_day_is_named_once_in_a_conversation(agent: Agent) -> None:
    for hour in ("01T09", "01T10", "02T09"):
        agent.session("s").add("note", {"content": "x"}, ts=f"2026-03-{hour}:00:00Z")
    views = entry_views(agent.session("s").entries(), NOW)
    assert [view["day"] for view in views] == ["Sunday, 1 March 2026", "", "Monday, 2 March 2026"]


def test_a_speaker_is_not_named_in_the_text_again(agent: Agent) -> None:
    made = agent.session("s").add("message", {"speaker": "Ann", "content": "Good morning"})
    assert words_of(made) == "Good morning"


@given(ANYTHING, ANYTHING, ANYTHING)
def test_an_entry_of_any_spelling_can_be_sent(text: str, name: str, tag: str) -> None:
    data = {"content": text, "speaker": name, "role": name}
    made = entry(text, id=name, type=name, data=data, tags=[tag])
    json.dumps(view_of(made), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("data", "who"),
    [
        ({"speaker": "Ann", "name": "B", "role": "user"}, "Ann"),
        ({"speaker": " ", "name": "Bo"}, "Bo"),
        ({"name": 3, "role": "user"}, "user"),
        ({"role": None}, ""),
        ({}, ""),
    ],
)
def test_who_said_an_entry_is_the_first_name_that_it_has(data: dict[str, Any], who: str) -> None:
    assert speaker_of(entry(data=data)) == who


@pytest.mark.parametrize(
    ("role", "side"),
    [("user", "me"), ("ai", "agent"), ("tool", "nobody"), (["user"], "nobody"), (None, "nobody")],
)
def test_an_entry_is_on_the_side_of_its_role(role: object, side: str) -> None:
    assert view_of(entry(data={"role": role}))["side"] == side


def test_a_long_text_is_clipped_until_it_is_asked_for() -> None:
    long = entry("x" * (LONGEST + 1))
    [clipped], [whole] = entry_views([long], NOW), entry_views([long], NOW, frozenset({"e1"}))
    assert (len(clipped["text"]), len(whole["text"])) == (LONGEST, LONGEST + 1)


def test_a_text_of_just_the_longest_length_is_whole() -> None:
    assert view_of(entry("x" * LONGEST))["text"] == "x" * LONGEST


def test_an_entry_without_a_priority_shows_no_worth() -> None:
    assert view_of(entry())["worth"] == ""


def test_a_stored_priority_is_shown_as_it_has_faded_and_grown() -> None:
    made = entry(type="decision", priority=0.95, access=2)
    view = view_of(made, NOW + timedelta(days=10))
    assert view["worth"] == "0.74 today, 0.95 as stored, 2 accesses"


@pytest.mark.parametrize("priority", [-3, 7, float("nan"), 10**400])
def test_an_odd_priority_is_reported(priority: float) -> None:
    assert "as stored" in view_of(entry(priority=priority))["worth"]


def test_only_the_three_types_that_stand_out_have_a_tone() -> None:
    assert [tone_of(kind) for kind in ("decision", "finding", "message", "")] == [
        "decision",
        "finding",
        "other",
        "other",
    ]


def test_versions_are_reported_with_the_latest_first(agent: Agent) -> None:
    session = agent.session("s")
    made = session.add("note", {"content": "one"})
    session.update(made.id, data={"content": "two"})
    session.delete(made.id)
    views = version_views(agent.history(made.id))
    assert [view["what"] for view in views] == ["deleted", "changed", "made"]
    parts = [[(part["kind"], part["text"]) for part in view["parts"]] for view in views]
    assert parts[1:] == [[("del", "one"), ("ins", "two")], [("", "one")]]


def test_a_session_is_shown_with_what_its_name_hides(place: Place) -> None:
    view = session_view(SessionInfo("a/\u202eb", NOW - timedelta(hours=2), 58_450), place, NOW)
    assert view["shown"] == r"a/\u202eb"
    assert view["href"] == "/a/coder/session?id=a%2F%E2%80%AEb"
    assert (view["ago"], view["size"]) == ("2 hours ago", "57.1 KiB")


def test_bars_of_hits_are_drawn_to_the_scale_of_the_best(place: Place) -> None:
    hits = Hits([hit(entry(), {"words": 3.0, "vectors": 1.0}), hit(entry(), {"words": 2.0, "boosts": 0.0})])
    best, other = hit_views(hits, place)
    assert [part["width"] for part in best["parts"]] == ["75.0%", "25.0%"]
    assert [(part["width"], part["label"]) for part in other["parts"]] == [("50.0%", "words 2.00")]
    assert best["sum"] == "Score is the sum of words 3.00, meaning 1.00"


def test_words_of_a_hit_are_marked_whole_in_any_script(agent: Agent, place: Place) -> None:
    agent.session("s").add("note", text="Die हिन्दी, बैठक_में ක්\N{ZERO WIDTH JOINER}රමය!")
    [view] = hit_views(agent.recall("बैठक हिन्दी ක්\N{ZERO WIDTH JOINER}රමය"), place)
    marked = [part["text"] for part in view["marked"] if part["kind"] == "mark"]
    assert marked == ["हिन्दी", "बैठक", "ක්\N{ZERO WIDTH JOINER}රමය"]
    assert "".join(part["text"] for part in view["marked"]) == view["text"]


def test_relevance_of_a_hit_does_not_depend_on_the_others(place: Place) -> None:
    made = replace(hit(entry(), {"words": 3.0}), relevance=0.8124)
    alone, beside = (
        hit_views(Hits([made]), place)[0],
        hit_views(Hits([hit(entry(), {"words": 9.0}), made]), place)[0],
    )
    assert alone["relevance"] == beside["relevance"] == "0.81"


def test_what_counts_against_a_hit_has_a_minus_and_a_tone_of_its_own(place: Place) -> None:
    [view] = hit_views(Hits([hit(entry(), {"words": 1.0, "neighbours": -1.0, "reranker": 0.5})]), place)
    assert [(part["label"], part["tone"]) for part in view["parts"]] == [
        ("words 1.00", "words"),
        ("near it \N{MINUS SIGN}1.00", "less"),
        ("reranker 0.50", "more"),
    ]


def test_hits_whose_scores_are_nothing_have_no_bars(place: Place) -> None:
    [view] = hit_views(Hits([hit(entry(), {"words": 0.0})]), place)
    assert view["parts"] == []


def test_neighbours_of_a_hit_are_before_or_after_it(place: Place) -> None:
    made = entry("middle")
    near = [replace(made, text=str(by), ts=NOW + timedelta(minutes=by)) for by in (-1, 0, 1)]
    [view] = hit_views(Hits([hit(made, {"words": 1.0}, *near)]), place)
    assert [[each["text"] for each in view[side]] for side in ("before", "after")] == [["-1"], ["0", "1"]]


def test_one_sentence_says_why_a_hit_was_found(place: Place) -> None:
    why = Why({"vectors": 1}, words=("a", "pnpm", "\x1b"), cosine=0.0, boosts=("speaker: Ada",))
    [view] = hit_views(Hits([Hit(entry(), 1.0, why)]), place)
    said = "".join(part["text"] for part in view["said"])
    assert said == r"says a, pnpm and \x1b; close in meaning; speaker: Ada"
    assert [part["text"] for part in view["said"] if part["kind"] == "em"] == ["a", "pnpm", r"\x1b"]
    assert view["details"] == ["cosine 0.00"]


def test_hits_are_shown_by_relevance(place: Place) -> None:
    made = [replace(hit(entry(id=str(at)), {"words": 9.0 - at}), relevance=at / 10) for at in (2, 9, 5)]
    views = hit_views(Hits(made), place)
    assert [(view["relevance"], view["sureness"]) for view in views] == [
        ("0.90", "strong"),
        ("0.50", "fair"),
        ("0.20", "weak"),
    ]


def test_a_hit_names_what_it_replaced(place: Place) -> None:
    [view] = hit_views(Hits([Hit(entry(), 1.0, Why({}, supersedes=("old", "older")))]), place)
    assert [part["text"] for part in view["said"]] == ["replaces an older entry"]
    assert view["details"] == ["supersedes old, older"]


def test_a_hit_in_a_session_of_any_name_has_a_way_there(place: Place) -> None:
    made = replace(entry(id="a&b"), session="x/y z")
    [view] = hit_views(Hits([hit(made, {"words": 1.0})]), place)
    assert view["href"] == "/a/coder/session?id=x%2Fy+z&entry=a%26b"


def test_notes_of_the_same_words_are_told_apart_by_their_lines() -> None:
    first, second = note_views([MemoryEntry("Use pnpm", "Project", "AGENTS.md", line) for line in (3, 9)])
    assert (first["key"], second["key"]) == ("3:Use pnpm", "9:Use pnpm")


def test_a_note_is_edited_as_it_is_and_shown_with_what_it_hides() -> None:
    [view] = note_views([MemoryEntry("\u202e" + "x" * 50, "Project", "AGENTS.md", 3)])
    assert view["content"].startswith("\u202e")
    assert view["shown"] == r"\u202e" + "x" * 50
    assert view["start"] == r"\u202e" + "x" * 38 + "…"
