"""Scope: what a call names is what it gets, and nothing of another agent."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keepstone
from keepstone import Agent, Entry, Home, KeepstoneError

WORDS = ["walnut", "pecan", "hazel"]
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """Three sessions of forty entries, each with the word walnut, in all kinds."""
    with keepstone.open(tmp_path_factory.mktemp("home"), durability="os") as home:
        agent = home.agent("a")
        for name in ("s1", "s2", "s'3 \0"):
            agent.session(name).add_many(item(n) for n in range(40))
        yield agent


def item(n: int) -> dict[str, Any]:
    return {
        "type": ["note", "fact", "x\0y"][n % 3],
        "ts": START + timedelta(hours=n * 7 % 40),
        "tags": [f"t{n % 2}", f"u{n % 5}"],
        "content": f"walnut {n}",
        "topic": [None, 1, True, "a", {"k": [1]}][n % 5],
    }


names = st.sampled_from(["s1", "s2", "s'3 \0", "none"])
types = st.sampled_from(["note", "fact", "x\0y", "none"])
tags = st.sampled_from(["t0", "t1", "u0", "u3", "none"])
times = st.integers(-1, 41).map(lambda hour: START + timedelta(hours=hour))
scopes = st.fixed_dictionaries(
    {},
    optional={
        "sessions": st.lists(names, max_size=3),
        "types": st.lists(types, max_size=3),
        "tags": st.lists(tags, max_size=2),
        "since": times,
        "until": times,
        "where": st.sampled_from(
            [{"topic": value} for value in (None, 1, True, "a", {"eq": {"k": [1]}}, 1.0)]
        ),
    },
)


def is_in(entry: Entry, scope: dict[str, Any]) -> bool:
    """The rule, written once more in the plainest way."""
    topic = entry.data["topic"]
    wanted = scope.get("where", {"topic": topic})["topic"]
    if wanted == {"eq": {"k": [1]}}:
        wanted = wanted["eq"]
    return (
        ("sessions" not in scope or entry.session in scope["sessions"])
        and ("types" not in scope or entry.type in scope["types"])
        and set(scope.get("tags", ())) <= set(entry.tags)
        and scope.get("since", entry.ts) <= entry.ts
        and ("until" not in scope or entry.ts < scope["until"])
        and (topic, topic is True) == (wanted, wanted is True)
    )


@given(scopes)
def test_recall_finds_exactly_the_entries_in_its_scope(agent: Agent, scope: dict[str, Any]) -> None:
    entries = [entry for info in agent.sessions() for entry in agent.session(info.id).entries()]
    expected = sorted(entry.id for entry in entries if is_in(entry, scope))
    assert sorted(hit.entry.id for hit in agent.recall("walnut", limit=500, **scope)) == expected


SLUGS = ["a", "b"]
actions = st.lists(
    st.tuples(
        st.sampled_from(SLUGS),
        st.sampled_from(
            ["add", "update", "delete", "purge", "clear", "remove", "compact", "rebuild", "purge_agent"]
        ),
        st.sampled_from(["s1", "s2"]),
        st.sampled_from(["e1", "e2"]),
        st.sampled_from(WORDS),
    ),
    max_size=15,
)


def act(home: Home, slug: str, action: str, name: str, entry_id: str, word: str) -> None:
    """Do something to one agent; what is not there is left alone."""
    session = home.agent(slug).session(name)
    content = {"content": f"{word} {slug}secret"}
    try:
        match action:
            case "add":
                session.put({"id": entry_id, "type": "note", "data": content})
            case "update":
                session.update(entry_id, data=content)
            case "delete" | "purge":
                getattr(session, action)(entry_id)
            case "clear" | "remove" | "compact":
                getattr(session, action)()
            case "rebuild":
                home.rebuild()
            case _:
                home.purge_agent(slug)
    except KeepstoneError:
        pass


def all_that(agent: Agent) -> list[Entry]:
    """Every entry that any call of an agent gives."""
    hits = [hit.entry for word in [*WORDS, "asecret bsecret"] for hit in agent.recall(word, limit=50)]
    context = [entry for part in agent.context("walnut pecan").parts for entry in part.entries]
    return [*hits, *context, *entries_of(agent), *agent.session("s1").entries(9)]


def entries_of(agent: Agent) -> list[Entry]:
    return agent.session("s1").entries() + agent.session("s2").entries()


@settings(max_examples=30)
@given(actions)
def test_no_call_of_one_agent_gives_or_changes_anything_of_another(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, str, str, str, str]]
) -> None:
    with keepstone.open(tmp_path_factory.mktemp("home"), durability="os") as home:
        for slug, *rest in actions:
            other = next(name for name in SLUGS if name != slug)
            before = entries_of(home.agent(other))
            act(home, slug, *rest)
            assert before == entries_of(home.agent(other))
        for slug in SLUGS:
            given = all_that(home.agent(slug))
            assert {entry.agent for entry in given} <= {slug}
            assert all(entry.text.endswith(f" {slug}secret") for entry in given)
            words = re.findall(r"\w+secret", home.agent(slug).context("walnut").text)
            assert set(words) <= {f"{slug}secret"}


def steps(agent: Agent, call: Callable[[Agent], object]) -> int:
    """Return how many steps SQLite makes for a call, in hundreds."""
    counted = [0]

    def count() -> bool:
        counted[0] += 1
        return False

    with agent._store._using(agent.slug) as logs:  # type: ignore[attr-defined]  # noqa: SLF001
        connection = logs.index._database.connection  # noqa: SLF001
    connection.set_progress_handler(count, 100)
    call(agent)
    connection.set_progress_handler(None)
    return counted[0]


@pytest.mark.parametrize(
    "question",
    [lambda agent: agent.get("walnut"), lambda agent: agent.context(), lambda agent: agent.related("walnut")],
    ids=["get", "context", "related"],
)
def test_what_few_entries_answer_takes_no_longer_among_many(
    tmp_path: Path, question: Callable[[Agent], object]
) -> None:
    with keepstone.open(tmp_path, durability="os", embedder="none") as home:
        found = []
        for agent, count in (("small", 10), ("large", 1_000)):
            for number in range(count):
                home.agent(agent).session(f"s{number}").add("note", text=f"pecan {number}")
            home.agent(agent).session("last").add("note", text="walnut", id="walnut", pinned=True)
            question(home.agent(agent))
            found.append(steps(home.agent(agent), question))
    assert found[1] <= found[0] + 10
