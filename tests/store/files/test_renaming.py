"""Sessions that are renamed, copied and forked, and entries that are given back."""

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.killing import killed_before
from tests.faults.operations import Operation
from tests.faults.traces import left
from tests.recall.concepts import Concepts

import keepstone
from keepstone import AmbiguousIdError, EntryNotFoundError, Home
from keepstone.errors import SessionNotFoundError


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", durability="os", embedder=Concepts()) as home:
        yield home


def test_renamed_session_leaves_no_file_under_the_old_id(home: Home) -> None:
    session = home.agent("a").session("qzvold")
    session.add("note", {"content": "walnut"}, id="x")
    session.update("x", text="pecan")
    session.compact()
    assert session.rename("new").entries()[0].text == "pecan"
    home.close()
    assert left(home.root / "agents", "qzvold") == set()


def test_rename_keeps_made_vectors(home: Home) -> None:
    session = home.agent("a").session("old")
    session.add("note", {"content": "walnut"})
    assert home.embed() == 1
    renamed = session.rename("new")
    assert home.embed() == 0
    renamed.copy("copy")
    assert home.embed() == 0


def test_copies_keep_given_vectors(tmp_path: Path) -> None:
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        entry = home.agent("a").session("old").add("note", {"content": "walnut"}, embedding=[3.0, 4.0])
        copied = home.agent("a").session("old").copy("copy").entries()[0]
        assert copied.line["embedding"] == entry.line["embedding"]


def test_an_id_in_a_session_and_its_copy_is_ambiguous(home: Home) -> None:
    session = home.agent("a").session("old")
    session.add("note", {"content": "walnut"}, id="x")
    session.copy("copy")
    with pytest.raises(AmbiguousIdError, match="copy, old"):
        home.agent("a").get("x")


def test_fork_holds_what_was_said_until_then(home: Home) -> None:
    session = home.agent("a").session("old")
    session.add_many({"type": "note", "text": name, "id": name} for name in "abcd")
    session.delete("a")
    fork = session.fork("fork", until="c")
    assert [line["id"] for line in fork.export()] == ["b", "c"]
    with pytest.raises(EntryNotFoundError, match="'a'"):
        session.fork("other", until="a")
    assert home.agent("a").session("other").info() is None


def test_exported_lines_can_be_added_elsewhere(home: Home) -> None:
    session, other = home.agent("a").session("old"), home.agent("b").session("new")
    added = session.add_many({"type": "note", "text": name, "id": name} for name in "ab")
    other.add_many(session.export())
    assert [entry.as_dict() for entry in other.entries()] == [entry.as_dict() for entry in added]


def test_refused_rename_leaves_no_lock_file(home: Home) -> None:
    with pytest.raises(SessionNotFoundError):
        home.agent("a").session("none").rename("new")
    home.agent("a").new_session("there")
    with pytest.raises(ValueError, match="'there' exists"):
        home.agent("a").new_session("other").rename("there")
    folder = home.root / "agents/a/memory/sessions"
    assert {path.stem for path in folder.iterdir()} == {"there", "other"}


def test_session_with_a_second_file_is_not_renamed(home: Home) -> None:
    session = home.agent("a").session("a b")
    session.add("note", {"content": "walnut"})
    folder = home.root / "agents/a/memory/sessions"
    (folder / "a b.ndjson").write_text("{}\n")
    with pytest.raises(ValueError, match="second file"):
        session.rename("new")
    assert (folder / "a b.ndjson").exists()


def _add(root: Path, count: int, begun: "multiprocessing.synchronize.Event") -> None:
    with keepstone.open(root, embedder="none", durability="os") as home:
        for number in range(count):
            home.agent("a").session("old").add("note", {"content": "walnut"}, id=f"{number}")
            begun.set()


def test_rename_among_writers_loses_no_entry(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    begun = context.Event()
    writer = context.Process(target=_add, args=(tmp_path, 300, begun))
    writer.start()
    assert begun.wait(60)
    with keepstone.open(tmp_path, embedder="none", durability="os") as home:
        agent = home.agent("a")
        renamed: list[keepstone.Session] = []
        while writer.is_alive():
            if agent.session("old").info():
                renamed.append(agent.session("old").rename(f"new{len(renamed)}"))
        found = [entry.id for session in agent.sessions() for entry in agent.session(session.id).entries()]
    assert writer.exitcode == 0
    assert len(renamed) > 1
    assert sorted(found, key=int) == [f"{number}" for number in range(300)]


@pytest.mark.parametrize("number", range(3, 13))
def test_a_killed_copy_is_whole_or_leaves_nothing(home: Home, number: int) -> None:
    agent = home.agent("a")
    agent.session("s0").add_many({"type": "note", "text": "walnut", "id": name} for name in "ab")
    agent.session("s0").update("a", text="pecan")
    agent.session("s0").compact()
    home.close()
    killed_before(home.root, Operation("copy", "s0", ("new",)), number)
    assert [entry.id for entry in agent.session("new").entries()] in ([], ["a", "b"])
    agent.session("new").add("note", id="c", text="later")
    agent.session("new").compact()
    assert len(agent.session("s0").entries()) == 2
    assert not (home.root / "agents/a/memory/sessions/.purge.ndjson").exists()


def test_restored_entry_has_its_text_vector_and_keys(home: Home) -> None:
    session = home.agent("a").session("s")
    entry = session.add("note", {"content": "walnut"}, tags=["t"], priority=0.4, pinned=True)
    session.delete(entry.id)
    restored = home.agent("a").restore(entry.id)
    assert restored.ts > entry.ts
    assert restored.as_dict() == entry.as_dict() | {"ts": restored.line["ts"]}
    assert home.agent("a").get(entry.id) == restored


def test_restore_finds_the_session_that_deleted_the_id(home: Home) -> None:
    agent = home.agent("a")
    for name in ("s1", "s2", "s3"):
        agent.session(name).add("note", {"content": name}, id="x")
    agent.delete("x", "s2")
    assert agent.restore("x").session == "s2"
    agent.delete("x", "s1")
    agent.delete("x", "s2")
    with pytest.raises(AmbiguousIdError, match="s1, s2"):
        agent.restore("x")
    with pytest.raises(EntryNotFoundError):
        agent.restore("x", "s3")
