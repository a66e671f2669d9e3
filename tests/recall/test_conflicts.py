"""Entries that repeat or contradict one another are reported when one is added, and left as they are."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Agent, Conflict, Home
from keepstone.recall.conflicts import compared_texts
from keepstone.testing import START, ManualClock


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path, clock=ManualClock(), embedder="none") as home:
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("a")


def kinds(agent: Agent, kind: str, old: Any, new: Any, **keys: Any) -> list[str]:
    """The conflicts of a second payload, or text, with a first one of the same type in another session."""
    for session, value in (("one", old), ("two", new)):
        given = {"text": value} if isinstance(value, str) else {"data": value}
        added = agent.session(session).add(kind, **given, **(keys if session == "one" else {}))
    return [conflict.kind for conflict in added.conflicts]


CONTRADICTIONS = [
    ("Ada likes coffee", "Ada does not like coffee"),
    ("Ada drinks coffee", "Ada never drinks coffee"),
    ("Ada can't swim", "Ada can swim"),
    ("Ada no longer works at Initech", "Ada works at Initech"),
    ("The server listens on port 8080", "the server listens on port 9090."),
    ("The review is on Monday", "The review is on Tuesday"),
    ("The release is due on 3 May 2026", "The release is due on 4 June 2026"),
    ("The release is due on 2026-05-03", "The release is due on 2026-06-04"),
    ("Ada trinkt Kaffee", "Ada trinkt keinen Kaffee"),
]
DUPLICATES = [
    ("Ada likes coffee", "ada  likes COFFEE!"),
    ("The user prefers dark mode", "User prefers dark mode."),
    ("Ada prefers green tea at noon", "Ada really prefers green tea at noon"),
    ("On Monday Ada flies to Rome", "Ada flies to Rome on Monday"),
]
OTHERS = [
    ("Ada lives in Paris", "Ada lives in Rome"),
    ("Ada likes coffee", "Bob likes coffee"),
    ("Ada likes tea", "Ada likes tea and coffee"),
    ("Bob reports to Ann", "Ann reports to Bob"),
    ("Order ORD-48213 was shipped", "Order ORD-48214 was shipped"),
    ("Page 1", "Page 2"),
    ("", "42"),
    ("yes", "Yes"),
]


@pytest.mark.parametrize(("old", "new"), CONTRADICTIONS)
def test_a_negation_a_number_or_a_date_contradicts(old: str, new: str) -> None:
    assert compared_texts(new, old) == compared_texts(old, new) == "contradiction"


@pytest.mark.parametrize(("old", "new"), DUPLICATES)
def test_the_same_sentence_in_other_words_is_a_duplicate(old: str, new: str) -> None:
    assert compared_texts(new, old) == compared_texts(old, new) == "duplicate"


@pytest.mark.parametrize(("old", "new"), OTHERS)
def test_sentences_about_other_things_are_not_in_conflict(old: str, new: str) -> None:
    assert compared_texts(new, old) is compared_texts(old, new) is None


def test_add_reports_a_contradiction_in_any_session(agent: Agent) -> None:
    old = agent.session("one").add("fact", text="Ada likes coffee")
    new = agent.session("two").add("fact", text="Ada does not like coffee")
    assert new.conflicts == (Conflict(old.id, "one", "contradiction"),)
    assert old.conflicts == (Conflict(new.id, "two", "contradiction"),)
    assert agent.get(old.id).conflicts == ()
    assert len(agent.recall("coffee")) == 2


FIELDS = [
    ("preference", {"key": "theme", "value": "dark"}, {"key": "theme", "value": "light"}, "contradiction"),
    ("preference", {"theme": "dark"}, {"theme": "light"}, "contradiction"),
    ("preference", {"theme": "dark"}, {"theme": "Dark"}, "duplicate"),
    ("preference", {"preference": "theme", "value": 1}, {"preference": "theme", "value": 2}, "contradiction"),
    ("fact", {"subject": "Ada", "city": "Paris"}, {"subject": "ada", "city": "Rome"}, "contradiction"),
    (
        "fact",
        {"subject": "Ada", "field": "city", "value": "Paris"},
        {"subject": "Ada", "field": "city", "value": "Rome"},
        "contradiction",
    ),
    ("fact", {"subject": "Ada", "city": "Paris"}, {"subject": "Bob", "city": "Rome"}, None),
    ("fact", {"subject": "server 1", "port": 80}, {"subject": "server 2", "port": 81}, None),
    ("preference", {"key": "theme", "value": "dark"}, {"key": "font", "value": "dark"}, None),
    ("preference", {"preference": "likes tea"}, {"preference": "likes pizza"}, None),
    ("preference", {"theme": "dark", "scope": "editor"}, {"theme": "light", "scope": "terminal"}, None),
]


@pytest.mark.parametrize(("kind", "old", "new", "expected"), FIELDS)
def test_fields_of_one_subject_are_compared(
    agent: Agent, kind: str, old: dict[str, Any], new: dict[str, Any], expected: str | None
) -> None:
    assert kinds(agent, kind, old, new) == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    "span", [{"valid_to": START}, {"expires": START}, {"valid_from": START + timedelta(1)}]
)
def test_what_does_not_hold_is_not_in_conflict(agent: Agent, span: dict[str, Any]) -> None:
    assert kinds(agent, "fact", "Ada likes coffee", "Ada does not like coffee", **span) == []


def test_an_update_reports_what_it_contradicts_now(agent: Agent) -> None:
    other = agent.session("one").add("fact", text="The lease of the office ends in 2027")
    entry = agent.session("two").add("fact", text="The lease ends some day")
    changed = agent.update(entry.id, text="The lease of the office ends in 2029")
    assert changed.conflicts == (Conflict(other.id, "one", "contradiction"),)
    assert agent.get(entry.id).conflicts == ()


def test_superseding_leaves_no_conflict(agent: Agent) -> None:
    old = agent.session("s").add("fact", text="Ada likes coffee")
    new = agent.supersede(old.id, {"text": "Ada does not like coffee", "valid_from": START + timedelta(1)})
    assert new.conflicts == ()


def test_conflicts_are_those_of_the_moment_they_are_asked_for(agent: Agent) -> None:
    session = agent.session("s")
    old, new = session.add_many([{"type": "fact", "text": f"Ada has {count} cats"} for count in (2, 3)])
    session.purge(old.id)
    assert new.conflicts == ()


def test_another_agents_entries_are_not_in_conflict(home: Home, agent: Agent) -> None:
    home.agent("b").session("s").add("fact", text="Ada likes coffee")
    assert agent.session("s").add("fact", text="Ada does not like coffee").conflicts == ()


def test_conflicts_are_not_stored(agent: Agent, home: Home) -> None:
    assert kinds(agent, "fact", "Ada likes coffee", "Ada likes coffee") == ["duplicate"]
    logs = [path.read_text() for path in home.root.rglob("*.ndjson")]
    assert not any("conflict" in log or "duplicate" in log for log in logs)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda entry: pickle.loads(pickle.dumps(entry))])  # noqa: S301  Its own.
def test_a_new_entry_can_be_copied_and_pickled(agent: Agent, clone: Any) -> None:
    agent.session("s").add("fact", text="Ada likes coffee")
    new = agent.session("s").add("fact", text="Ada likes coffee")
    assert clone(new) == new
    assert clone(new).conflicts == ()


def test_the_deep_doctor_names_contradictions_and_stays_healthy(home: Home, agent: Agent) -> None:
    kinds(agent, "fact", "Ada likes coffee", "Ada does not like coffee")
    kinds(agent, "message", "see you on Monday", "see you on Tuesday")
    assert [finding.level for finding in home.doctor() if "contradict" in finding.message] == []
    [found] = [finding for finding in home.doctor(deep=True) if "contradict" in finding.message]
    assert (found.level, found.agent, found.message[:9]) == ("warning", "a", "1 pair(s)")


NAMED = [
    (f"{thing} {a} {rest}", f"{thing} {b} {rest}")
    for thing, rest in (
        ("worker", "number 4 penguin"), ("Invoice", "paid in full"), ("Order", "was shipped to Leeds"),
        ("Ticket", "is closed by Ann"), ("The sensor", "reports a low battery"), ("Room", "has a projector"),
        ("Release", "fixes the login page"), ("Chapter", "explains the setup in detail"),
        ("Standup on", "about the roadmap"), ("Customer", "asked for a refund"),
        ("Build", "failed on the linter"), ("Server node", "restarted after the update"),
    )
    for a, b in (("1001", "1002"), ("7", "8"), ("2.1.0", "2.1.1"), ("2026-05-03", "2026-05-04"))
    if (thing == "Standup on") == a.startswith("20") and (thing == "Release") == ("." in a)
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), NAMED)
def test_texts_about_things_of_other_numbers_do_not_contradict(old: str, new: str) -> None:
    assert compared_texts(new, old) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"address": "Rome"}, {"address": "Paris"}),
        ({"plan": "pro", "by": "ann"}, {"plan": "free", "by": "bob"}),
    ],
)
def test_another_value_of_the_same_key_contradicts(agent: Agent, old: Any, new: Any) -> None:
    first = agent.session("s").add("fact", old)
    assert [(one.id, one.kind) for one in agent.session("s").add("fact", new).conflicts] == [
        (first.id, "contradiction")
    ]


def test_texts_are_compared_under_an_equal_payload(agent: Agent) -> None:
    agent.session("s").add("fact", {"topic": "address"}, text="Ada lives in Rome")
    added = agent.session("s").add("fact", {"topic": "address"}, text="Ada does not live in Rome")
    assert [one.kind for one in added.conflicts] == ["contradiction"]


@pytest.mark.parametrize(
    ("old", "new"), [({"invoice": 1001}, {"invoice": 1002}), ({"job_id": "a"}, {"job_id": "b"})]
)
def test_values_that_tell_things_apart_do_not_contradict(agent: Agent, old: Any, new: Any) -> None:
    agent.session("s").add("fact", old)
    assert agent.session("s").add("fact", new).conflicts == ()


def test_superseded_entries_take_no_places_of_candidates(agent: Agent) -> None:
    session = agent.session("s")
    other = session.add("note", text="The door code of the harbour office is 12345")
    entry = session.add("fact", text="The harbour office closes at 5")
    for hour in range(60):
        entry = agent.supersede(entry.id, {"text": f"The harbour office closes at {hour % 7}"})
    added = session.add("note", text="The door code of the harbour office is 54321")
    assert other.id in [one.id for one in added.conflicts]


def test_pairs_in_conflict_are_listed_once_and_by_kind_and_time(agent: Agent) -> None:
    session = agent.session("s")
    session.add("fact", text="Ada drinks coffee", ts="2026-01-01T00:00:00Z", id="a")
    session.add("fact", text="Ada does not drink coffee", ts="2026-01-02T00:00:00Z", id="b")
    session.add("note", text="The cat is called Miso", ts="2026-01-03T00:00:00Z", id="c")
    session.add("note", text="the cat is called Miso.", ts="2026-01-04T00:00:00Z", id="d")
    found = {(new.id, old.id) for new, old in agent.conflicts()}
    assert found == {("b", "a"), ("d", "c")}
    assert [pair.kind for pair in agent.conflicts(kinds=["contradiction"])] == ["contradiction"]
    assert [pair[0].id for pair in agent.conflicts(since="2026-01-03T00:00:00Z")] == ["d"]
    with pytest.raises(ValueError, match="kinds are contradiction and duplicate"):
        agent.conflicts(kinds=["other"])
