from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import keepstone
from keepstone import Agent, Home, Session
from keepstone.testing import START, ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def home(tmp_path: Path, clock: ManualClock) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", clock=clock) as home:
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("coder")


@pytest.fixture
def session(agent: Agent) -> Session:
    return agent.session("s1")


def log_of(home: Home, session: str = "s1") -> Path:
    return home.root / f"agents/coder/memory/sessions/{session}.ndjson"


def texts(session: Session, **choice: Any) -> list[str]:
    return [entry.text for entry in session.entries(**choice)]


def test_opening_a_home_and_naming_an_agent_writes_nothing(tmp_path: Path) -> None:
    with keepstone.open(tmp_path / "home") as home:
        agent = home.agent("coder")
        agent.session("s1").entries()
        agent.recall("anything")
        agent.context("anything")
        assert not home.agents()
        assert not agent.sessions()
    assert not (tmp_path / "home").exists()


def test_the_environment_names_the_home_when_the_caller_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEEPSTONE_HOME", str(tmp_path / "named"))
    assert keepstone.open().root == tmp_path / "named"


def test_without_a_name_the_home_lies_in_the_users_data_folder(user_folder: Path) -> None:
    assert keepstone.open().root.is_relative_to(user_folder)


def test_a_file_in_the_place_of_a_home_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match="is a file"):
        keepstone.open(tmp_path / "file")
    with pytest.raises(ValueError, match="file"):
        keepstone.open(tmp_path / "file" / "home").agent("coder").session("s1").add("note", text="walnut")


@pytest.mark.parametrize("target", ["", "\0", "\ud800", "x" * 300, "~nobody-of-that-name/x"])
def test_a_target_that_no_folder_can_have_is_a_value_error(target: str) -> None:
    with pytest.raises(ValueError, match="not (a|the) path"):
        keepstone.open(target)


def test_an_added_entry_comes_back_with_every_key(session: Session) -> None:
    keys: dict[str, Any] = {
        "tags": ["a", "b"],
        "priority": 0.5,
        "pinned": True,
        "summary": "short",
        "access": 2,
    }
    added = session.add("decision", {"decision": "Use OAuth"}, id="d1", **keys)
    assert session.entries() == [added]
    assert added.as_dict() == {
        "id": "d1",
        "ts": "2026-01-11T14:31:00.000000Z",
        "type": "decision",
        "data": {"decision": "Use OAuth"},
        **keys,
    }
    assert (added.agent, added.session, added.ts) == ("coder", "s1", START)


def test_keys_beside_the_envelope_are_the_payload(session: Session) -> None:
    (added,) = session.add_many([{"type": "message", "role": "user", "content": "Hi"}])
    assert added.data == {"role": "user", "content": "Hi"}
    assert "data" not in added.as_dict()


def test_ids_of_our_own_are_unique_and_sort_by_time(session: Session) -> None:
    ids = [session.add("note", {"n": n}).id for n in range(20)]
    assert ids == sorted(set(ids))


def test_the_same_content_with_the_same_id_is_added_once(
    home: Home, session: Session, clock: ManualClock
) -> None:
    first = session.add("note", {"content": "one"}, id="a", tags=["x"])
    clock.advance(60)
    before = log_of(home).read_bytes()
    assert session.add("note", {"content": "one"}, id="a", tags=["x"]) == first
    assert log_of(home).read_bytes() == before


@pytest.mark.parametrize("other", [{"data": {"content": "two"}}, {"type": "decision"}, {"pinned": True}])
def test_other_content_with_the_same_id_is_refused(session: Session, other: dict[str, Any]) -> None:
    first = session.add("note", {"content": "one"}, id="a")
    with pytest.raises(keepstone.EntryExistsError, match="'a' exists"):
        session.add_many([{"type": "note", "data": {"content": "one"}, "id": "a"} | other])
    assert session.entries() == [first]


def test_the_id_of_a_deleted_entry_makes_a_new_one_at_its_own_time(
    session: Session, clock: ManualClock
) -> None:
    session.add("note", {"content": "one"}, id="a", tags=["x"])
    session.delete("a")
    clock.advance(60)
    anew = session.add("note", {"content": "one"}, id="a")
    assert session.entries() == [anew]
    assert (anew.ts, anew.tags) == (START + timedelta(seconds=60), ())


def test_an_id_may_be_used_again_in_another_session(agent: Agent) -> None:
    for name in ("s1", "s2"):
        agent.session(name).add("note", {"content": name}, id="a")
    assert [agent.get("a", name).text for name in ("s1", "s2")] == ["s1", "s2"]


def test_add_many_adds_everything_in_the_order_given(session: Session) -> None:
    added = session.add_many({"type": "note", "content": str(n)} for n in range(30))
    assert session.entries() == added
    assert texts(session) == [str(n) for n in range(30)]


def test_entries_of_one_batch_have_one_time(session: Session) -> None:
    added = session.add_many([{"type": "note", "text": str(n)} for n in range(3)])
    put = session.put_many([{"type": "note", "text": str(n)} for n in range(3)])
    assert [len({entry.ts for entry in batch}) for batch in (added, put)] == [1, 1]


@pytest.mark.parametrize(
    "bad",
    [
        5,
        {"type": ""},
        {"ts": "yesterday"},
        {"a": float("nan")},
        {"id": "there", "a": 1},
        {"a": "x" * (17 << 20)},
    ],
    ids=lambda bad: str(bad)[:20],
)
def test_one_bad_item_keeps_all_the_others_out(home: Home, session: Session, bad: Any) -> None:
    session.add("note", {"content": "one"}, id="there")
    before = log_of(home).read_bytes()
    with pytest.raises((TypeError, ValueError)):
        session.add_many(
            [{"type": "event", "content": "good"}, bad, {"type": "event", "content": "also good"}]
        )
    assert log_of(home).read_bytes() == before


def test_add_many_of_nothing_makes_no_session(agent: Agent, session: Session) -> None:
    assert session.add_many([]) == []
    assert agent.sessions() == []


def test_put_adds_an_entry_and_later_replaces_its_payload(session: Session, clock: ManualClock) -> None:
    session.put({"id": "a", "type": "message", "content": "Hel", "tags": ["x"]})
    clock.advance(60)
    grown = session.put({"id": "a", "type": "message", "content": "Hello"})
    assert session.entries() == [grown]
    assert (grown.text, grown.ts, grown.tags) == ("Hello", START, ("x",))


def test_updating_reserved_keys_leaves_the_payload_alone(session: Session) -> None:
    session.add("note", {"content": "one"}, id="a", tags=["x"], summary="s")
    changed = session.update("a", pinned=True, tags=["y"], summary=None)
    assert (changed.pinned, changed.tags, changed.summary, changed.data) == (
        True,
        ("y",),
        None,
        {"content": "one"},
    )
    assert session.entries() == [changed]


def test_updating_the_data_replaces_the_payload_and_keeps_a_given_text(session: Session) -> None:
    session.add("note", {"content": "one", "by": "me"}, id="a", text="words", tags=["x"])
    changed = session.update("a", data={"content": "two"})
    assert (changed.data, changed.text, changed.tags, changed.type) == (
        {"content": "two"},
        "words",
        ("x",),
        "note",
    )


def test_updating_the_type_keeps_the_payload(session: Session) -> None:
    session.add("note", {"content": "one"}, id="a")
    assert session.update("a", type="decision", pinned=True).data == {"content": "one"}
    assert [(entry.type, entry.text) for entry in session.entries()] == [("decision", "one")]


@pytest.mark.parametrize(
    "keys", [{}, {"ts": "2026-01-01T00:00:00Z"}, {"deleted": True}, {"batch": [1, 2]}, {"data": None}]
)
def test_an_update_that_means_nothing_changes_nothing(session: Session, keys: dict[str, Any]) -> None:
    added = session.add("note", {"content": "one"}, id="a")
    with pytest.raises((TypeError, ValueError)):
        session.update("a", **keys)
    assert session.entries() == [added]


@pytest.mark.parametrize("act", ["update", "delete", "purge"])
@pytest.mark.parametrize("where", ["missing session", "missing id", "missing agent"])
def test_changing_what_is_not_there_is_refused_and_makes_nothing(home: Home, act: str, where: str) -> None:
    home.agent("coder").session("s1").add("note", text="walnut", id="a")
    slug = "nobody" if where == "missing agent" else "coder"
    session = home.agent(slug).session("none" if where == "missing session" else "s1")
    before = sorted(path for path in home.root.rglob("*") if ".index" not in path.parts)
    keys = {"pinned": True} if act == "update" else {}
    with pytest.raises(keepstone.EntryNotFoundError, match="none"):
        getattr(session, act)("none", **keys)
    assert sorted(path for path in home.root.rglob("*") if ".index" not in path.parts) == before


def test_a_deleted_entry_is_hidden_and_its_line_stays(home: Home, agent: Agent, session: Session) -> None:
    session.add("note", {"content": "walnut"}, id="a")
    session.delete("a")
    assert not session.entries()
    assert not agent.recall("walnut")
    assert b"walnut" in log_of(home).read_bytes()
    with pytest.raises(keepstone.EntryNotFoundError):
        agent.get("a")


def test_purge_removes_deleted_entries_too(home: Home, session: Session) -> None:
    session.add("note", {"content": "walnut"}, id="a")
    session.delete("a")
    session.purge("a")
    assert log_of(home).read_bytes() == b""


def test_an_agent_finds_the_session_of_an_id_by_itself(agent: Agent) -> None:
    for name in ("s1", "s2"):
        agent.session(name).add_many(
            [{"type": "event", "id": f"{name}-{n}", "content": name} for n in range(3)]
        )
    agent.update("s2-0", pinned=True)
    agent.delete("s2-1")
    agent.purge("s2-2")
    assert [entry.id for entry in agent.session("s2").entries()] == ["s2-0"]
    assert agent.get("s2-0").pinned
    assert len(agent.session("s1").entries()) == 3


@pytest.mark.parametrize("act", ["get", "update", "delete", "purge"])
def test_an_id_in_several_sessions_needs_the_session_named(agent: Agent, act: str) -> None:
    for name in ("s1", "s2"):
        agent.session(name).add("note", {"content": name}, id="a")
    keys = {"pinned": True} if act == "update" else {}
    with pytest.raises(keepstone.AmbiguousIdError, match="s1, s2"):
        getattr(agent, act)("a", **keys)
    getattr(agent, act)("a", session="s2", **keys)
    assert texts(agent.session("s1")) == ["s1"]


def test_history_tells_every_version_with_its_time(
    agent: Agent, session: Session, clock: ManualClock
) -> None:
    session.add("note", {"content": "one"}, id="a")
    for change in ({"pinned": True}, {"data": {"content": "two"}}):
        clock.advance(60)
        session.update("a", **change)
    clock.advance(60)
    session.delete("a")
    versions = agent.history("a")
    assert [(v.text, v.pinned, v.deleted) for v in versions] == [
        ("one", False, False),
        ("one", True, False),
        ("two", True, False),
        ("two", True, True),
    ]
    assert [(v.written - START).seconds for v in versions] == [0, 60, 120, 180]


def test_history_survives_compaction_and_ends_with_a_purge(agent: Agent, session: Session) -> None:
    session.add("note", {"content": "one"}, id="a")
    session.update("a", data={"content": "two"})
    before = agent.history("a")
    assert session.compact() > 0
    session.compact()
    assert agent.history("a") == before
    agent.purge("a")
    with pytest.raises(keepstone.EntryNotFoundError):
        agent.history("a")


def test_a_limit_keeps_the_newest_and_gives_them_oldest_first(session: Session, clock: ManualClock) -> None:
    for content in "abc":
        session.add("note" if content < "c" else "fact", {"content": content})
        clock.advance(1)
    assert texts(session, limit=2) == ["b", "c"]
    assert texts(session, limit=2, types=["note"]) == ["a", "b"]
    assert texts(session, limit=0) == texts(session, types=[]) == []


INSTANTS = st.integers(0, 6).map(lambda second: datetime(2026, 1, 1, second=second, tzinfo=UTC))
BATCHES = st.lists(st.lists(st.tuples(INSTANTS, st.sampled_from(["note", "fact"])), min_size=1), max_size=5)


@given(BATCHES, st.integers(0, 30), st.sampled_from([None, ["note"], ["fact", "note"], []]))
def test_the_newest_entries_are_the_end_of_all_entries_sorted(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[tuple[datetime, str]]],
    limit: int,
    types: list[str] | None,
) -> None:
    with keepstone.open(tmp_path_factory.mktemp("home"), durability="os") as home:
        session = home.agent("coder").session("s1")
        for batch in batches:
            session.add_many([{"ts": ts, "type": kind, "text": "x"} for ts, kind in batch])
        everything = [entry for entry in session.entries() if types is None or entry.type in types]
        assert everything == sorted(everything, key=lambda entry: entry.ts)
        assert session.entries(types=types) == everything
        assert session.entries(limit, types) == everything[max(len(everything) - limit, 0) :]


def test_sessions_are_listed_with_size_and_the_last_changed_first(agent: Agent, home: Home) -> None:
    first, second = agent.session("s1"), agent.new_session()
    first.add("note", {"content": "one"})
    infos = agent.sessions()
    assert [info.id for info in infos] == ["s1", second.id]
    assert [info.size for info in infos] == [log_of(home).stat().st_size, 0]
    assert infos[0].modified >= infos[1].modified


def test_clear_leaves_an_empty_session_and_remove_leaves_none(agent: Agent, home: Home) -> None:
    for name in ("s1", "s2"):
        agent.session(name).add("note", {"content": "one"}, id="a")
        agent.session(name).delete("a")
        agent.session(name).compact()
    assert agent.session("s1").clear()
    assert agent.session("s2").remove()
    left = [path.name for path in sorted(log_of(home).parent.rglob("*")) if path.is_file()]
    assert left == [".purged.ndjson", ".purged.ndjson.lock", "s1.lock", "s1.ndjson"]
    assert log_of(home).stat().st_size == 0


def test_clearing_or_removing_a_missing_session_is_false(agent: Agent) -> None:
    assert not agent.session("none").clear()
    assert not agent.session("none").remove()
    assert agent.sessions() == []


def test_a_purged_agent_leaves_nothing_under_the_home(home: Home, agent: Agent, session: Session) -> None:
    session.add("note", {"content": "walnut"})
    agent.files.write("note.md", "walnut")
    agent.recall("walnut")
    home.agent("other").session("s1").add("note", {"content": "pecan"})
    home.purge_agent("coder")
    assert home.agents() == ["other"]
    assert [path for path in home.root.rglob("*") if "coder" in path.name] == []
    with pytest.raises(keepstone.AgentNotFoundError, match="coder"):
        home.purge_agent("coder")


def test_a_closed_home_reopens_its_files_when_used(home: Home, session: Session) -> None:
    session.add("note", {"content": "one"})
    home.close()
    session.add("note", {"content": "two"})
    assert texts(session) == ["one", "two"]


def at_once(*works: Callable[[], object]) -> None:
    """Do several things at the same time, each in a thread of its own."""
    start = Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        start.wait(30)
        work()

    with ThreadPoolExecutor(len(works)) as threads:
        list(threads.map(run, works))


def test_links_added_at_the_same_time_are_all_kept(agent: Agent, session: Session) -> None:
    entry, *others = session.add_many({"type": "note", "text": str(number)} for number in range(61))

    def link(some: Iterable[keepstone.Entry]) -> None:
        for other in some:
            agent.link(entry.id, other.id, "cites")

    at_once(*(partial(link, others[part::3]) for part in range(3)))
    assert {link["to"] for link in agent.get(entry.id).links} == {other.id for other in others}


def test_a_link_that_is_there_is_not_written_again(home: Home, agent: Agent, session: Session) -> None:
    a, b = session.add("note", text="one"), session.add("note", text="two")
    agent.link(a.id, b.id, "cites")
    before = log_of(home).read_bytes()
    assert agent.link(a.id, b.id, "cites").links == ({"to": b.id, "rel": "cites"},)
    assert log_of(home).read_bytes() == before


def test_changing_the_type_never_brings_an_old_payload_back(agent: Agent, session: Session) -> None:
    entry = session.add("note", {"content": "version 0"})
    for version in range(1, 41):
        data = {"content": f"version {version}"}
        at_once(
            partial(session.put, {"id": entry.id, "data": data}),
            partial(session.update, entry.id, type=f"type{version}"),
        )
        assert agent.get(entry.id).data == data


def test_two_homes_on_one_folder_see_each_others_writes(home: Home, agent: Agent, session: Session) -> None:
    with keepstone.open(home.root) as other:
        there = other.agent("coder")
        for n in range(5):
            session.add("note", {"content": f"mine{n}"}, id=f"m{n}")
            there.session("s1").add("note", {"content": f"theirs{n}"}, id=f"t{n}")
            assert session.entries(2) == there.session("s1").entries(2)
        there.session("s1").update("m0", data={"content": "changed"})
        there.session("s1").purge("m1")
        assert agent.get("m0").text == "changed"
        assert [hit.entry.id for hit in agent.recall("changed", limit=1)] == ["m0"]
        assert "m1" not in {entry.id for entry in session.entries(100)}


def run_together(works: list[Callable[[], object]]) -> None:
    """Run each in a thread of its own, all at the same time; what one raises is raised here."""
    together, failures = Barrier(len(works)), list[Exception]()

    def run(work: Callable[[], object]) -> None:
        together.wait(30)
        try:
            work()
        except Exception as error:  # noqa: BLE001  It is raised again below, in the test's own thread.
            failures.append(error)

    threads = [Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for failure in failures:
        raise failure


def test_eight_threads_adding_through_one_home_lose_nothing(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, durability="os") as home:
        agent = home.agent("coder")

        def work(thread: int) -> None:
            for n in range(50):
                agent.session(f"s{n % 3}").add("note", {"content": f"word{thread}x{n}"}, id=f"{thread}-{n}")

        run_together([lambda thread=thread: work(thread) for thread in range(8)])  # type: ignore[misc]
        found = {entry.id for n in range(3) for entry in agent.session(f"s{n}").entries()}
        assert found == {f"{thread}-{n}" for thread in range(8) for n in range(50)}
        assert [hit.entry.id for hit in agent.recall("word7x49", limit=1)] == ["7-49"]


def purge_all(session: Session, numbers: Iterable[int]) -> None:
    for number in numbers:
        session.purge(str(number))


def test_threads_read_and_recall_while_others_write_and_purge(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, durability="os") as home:
        agent = home.agent("coder")
        session = agent.session("s1")
        session.add_many([{"type": "event", "id": str(n), "content": f"walnut {n}"} for n in range(40)])
        run_together(
            [
                lambda: purge_all(session, range(20)),
                lambda: [session.update(str(n), data={"content": f"pecan {n}"}) for n in range(20, 40)],
                lambda: [agent.recall("walnut pecan", limit=50) for _ in range(20)],
                lambda: [session.entries(10) for _ in range(40)],
            ]
        )
        assert sorted(int(hit.entry.id) for hit in agent.recall("pecan", limit=50)) == list(range(20, 40))
