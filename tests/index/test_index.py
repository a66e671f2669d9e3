"""Whatever was done to a log by others, the index follows."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

import keepstone
from keepstone import Agent, Home
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.lock import Lock
from keepstone.index import Index, reading, turn
from keepstone.log import log_file as log_module
from keepstone.log import rewrite
from keepstone.log.line import entry_of
from keepstone.log.log_file import Log
from keepstone.log.scan import LogDescriptor
from keepstone.model import Scope
from keepstone.vector import unit


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path, durability="os") as home:
        home.agent("a").session("s").add_many(
            [{"type": "event", "id": str(n), "content": f"walnut {n}"} for n in range(5)]
        )
        home.agent("a").recall("walnut")
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("a")


def log_of(home: Home) -> Path:
    return home.root / "agents/a/memory/sessions/s.ndjson"


def append(home: Home, text: str) -> None:
    with log_of(home).open("a") as log:
        log.write(text)


def edit(home: Home, old: str, new: str) -> None:
    """Change the log in place, as some editors do."""
    with log_of(home).open("r+") as log:
        text = log.read().replace(old, new)
        log.seek(0)
        log.truncate()
        log.write(text)


def found(agent: Agent, query: str) -> set[str]:
    """The ids of entries that hold the query's words themselves."""
    return {hit.entry.id for hit in agent.recall(query, limit=99) if "words" in hit.why.ranks}


def test_what_another_program_appends_is_seen_at_the_next_read(home: Home, agent: Agent) -> None:
    append(home, '{"id":"new","type":"note","content":"almond"}\n{"id":"1","content":"chestnut"}\n')
    assert [entry.text for entry in agent.session("s").entries(3)] == ["walnut 3", "walnut 4", "almond"]
    assert agent.get("new", "s").text == "almond"
    assert agent.get("1", "s").text == "chestnut"


def test_what_another_program_appends_is_recalled_after_a_sync(home: Home, agent: Agent) -> None:
    append(home, '{"id":"new","type":"note","content":"almond"}\n{"id":"1","content":"chestnut"}\n')
    home.sync()
    assert found(agent, "almond") == {"new"}
    assert found(agent, "chestnut") == {"1"}
    assert found(agent, "walnut") == {"0", "2", "3", "4"}


def test_our_own_write_takes_in_what_was_appended_before(home: Home, agent: Agent) -> None:
    append(home, '{"id":"new","type":"note","content":"almond"}\n')
    agent.session("s").add("note", {"content": "chestnut"}, id="own")
    assert found(agent, "almond") == {"new"}
    assert found(agent, "chestnut") == {"own"}


@pytest.mark.parametrize("new", ["almond 2", "almond two and a half"], ids=["same length", "other length"])
def test_a_change_that_an_editor_made_in_place_is_seen(home: Home, agent: Agent, new: str) -> None:
    edit(home, "walnut 2", new)
    assert new in [entry.text for entry in agent.session("s").entries(5)]
    home.sync()
    assert found(agent, "almond") == {"2"}
    assert found(agent, "walnut") == {"0", "1", "3", "4"}


def test_a_log_replaced_by_an_editors_copy_is_read_again(home: Home, agent: Agent) -> None:
    copy = log_of(home).with_name("copy~")
    lines = log_of(home).read_text().splitlines(keepends=True)
    copy.write_text("".join(lines[::-1][:3]).replace("walnut", "almond"))
    copy.replace(log_of(home))
    home.sync()
    assert found(agent, "almond") == {"2", "3", "4"}
    assert found(agent, "walnut") == set()


def test_a_line_removed_by_hand_is_gone_from_every_answer(home: Home, agent: Agent) -> None:
    lines = log_of(home).read_text().splitlines(keepends=True)
    log_of(home).write_text("".join(lines[:2] + lines[3:]))
    home.sync()
    assert "2" not in found(agent, "walnut")
    assert [entry.id for entry in agent.session("s").entries(99)] == ["0", "1", "3", "4"]
    with pytest.raises(keepstone.EntryNotFoundError):
        agent.get("2")


def test_a_log_removed_by_hand_takes_its_entries_with_it(home: Home, agent: Agent) -> None:
    log_of(home).unlink()
    home.sync()
    assert found(agent, "walnut") == set()
    assert agent.session("s").entries(5) == agent.sessions() == []  # type: ignore[comparison-overlap]


def test_a_log_copied_into_the_folder_is_a_session(home: Home, agent: Agent) -> None:
    log_of(home).with_name("copied.ndjson").write_bytes(log_of(home).read_bytes())
    home.sync()
    assert {hit.entry.session for hit in agent.recall("walnut")} == {"s", "copied"}


def test_an_unfinished_last_line_is_read_whole_and_counted_once(home: Home, agent: Agent) -> None:
    append(home, '{"id":"new","type":"note","content":"almond"}')
    assert agent.session("s").entries(1)[0].text == "almond"
    home.sync()
    append(home, "\n")
    home.sync()
    assert found(agent, "almond") == {"new"}
    assert len(agent.session("s").entries(99)) == 6


def test_a_line_that_comes_in_two_parts_is_taken_in_once_it_is_whole(home: Home, agent: Agent) -> None:
    append(home, '{"id":"new","type":"note","con')
    home.sync()
    assert agent.session("s").entries(1)[0].id == "4"
    append(home, 'tent":"almond"}\n')
    home.sync()
    assert found(agent, "almond") == {"new"}


def test_equal_lines_without_ids_are_entries_of_their_own_however_they_come(home: Home, agent: Agent) -> None:
    for _ in range(3):
        append(home, '{"content":"almond"}\n')
        home.sync()
    ids = {entry.id for entry in agent.session("s").entries(3)}
    assert len(ids) == 3
    assert found(agent, "almond") == ids == {entry.id for entry in agent.session("s").entries()[-3:]}


def test_equal_lines_around_a_compaction_stay_entries_of_their_own(home: Home, agent: Agent) -> None:
    for _ in range(2):
        append(home, '{"content":"almond","ts":"2027-01-01T00:00:00Z"}\n')
        agent.session("s").compact()
    append(home, '{"content":"almond","ts":"2027-01-01T00:00:00Z"}\n')
    home.sync()
    by_the_index = [entry.id for entry in agent.session("s").entries(99)]
    assert by_the_index == [entry.id for entry in agent.session("s").entries()]
    home.rebuild()
    assert [entry.id for entry in agent.session("s").entries(99)] == by_the_index


def test_a_compaction_leaves_every_answer_as_it_was(agent: Agent) -> None:
    session = agent.session("s")
    session.update("1", data={"content": "chestnut"}, tags=["x"])
    session.update("2", pinned=True)
    session.delete("3")
    before = [session.entries(), session.entries(3), found(agent, "walnut"), found(agent, "chestnut")]
    session.compact()
    assert [session.entries(), session.entries(3), found(agent, "walnut"), found(agent, "chestnut")] == before


def test_a_reader_that_still_has_the_old_file_brings_nothing_back(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder, Folder(tmp_path) as again:
        log = Log(folder, "s.ndjson", Lock(folder, "s.lock"))
        late = LateLog(again, "s.ndjson", Lock(again, "s.lock"))
        with log.locked():
            log.append([b'{"id":"a","type":"note","content":"walnut"}\n'])
        late.meanwhile = lambda: replace(log, index)
        index = Index(None)
        index.catch_up("s", late)
        assert index.ranked(["walnut"], Scope("a"), 5) == []
        assert [row.session for row, _ in index.holders("b")] == ["s"]
        index.close()
        log.close()
        late.close()


class LateLog(Log):
    """A log whose first reader is overtaken by a rewrite after it has opened the file."""

    meanwhile = staticmethod(lambda: None)

    @contextmanager
    def reading(self) -> Iterator[LogDescriptor | None]:
        with super().reading() as fd:
            act, self.meanwhile = self.meanwhile, lambda: None
            act()
            yield fd


def replace(log: Log, index: Index) -> None:
    """Replace the log, as a purge does, and let the index know."""
    with log.locked():
        log.replace([b'{"id":"b","type":"note","content":"pecan"}\n'])
        index.reread("s", log)


def test_a_log_of_another_inode_with_the_same_size_and_time_is_noticed(home: Home, agent: Agent) -> None:
    status = log_of(home).stat()
    copy = log_of(home).with_name("copy~")
    copy.write_text(log_of(home).read_text().replace("walnut 2", "almond 2"))
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    copy.replace(log_of(home))
    home.sync()
    assert found(agent, "almond") == {"2"}


def test_edit_of_equal_length_plus_append_is_noticed(home: Home, agent: Agent) -> None:
    agent.session("s").add("note", {"content": "chestnut"}, id="own")
    edit(home, "walnut 2", "almond 2")
    append(home, '{"id":"new","type":"note","content":"pecan"}\n')
    home.sync()
    assert found(agent, "almond") == {"2"}
    assert found(agent, "pecan") == {"new"}


def compacting(agent: Agent) -> None:
    agent.session("s").compact()


def purging(agent: Agent) -> None:
    agent.session("s").purge("1")


@pytest.mark.parametrize(("name", "act"), [("compact", compacting), ("without", purging)])
def test_rewrite_while_index_was_busy_hides_no_entry(
    home: Home, agent: Agent, monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[Agent], None]
) -> None:
    agent.session("s").update("2", pinned=True)
    append(home, '{"id":"new","type":"note","content":"almond"}\n')
    monkeypatch.setattr(turn, "BUSY_TIMEOUT", 0.01)
    other = apsw.Connection(str(next(home.root.rglob("index.db"))))
    other.execute("BEGIN IMMEDIATE")
    real = getattr(rewrite, name)

    def rewriting(*arguments: Any, **keywords: Any) -> Any:
        other.close(force=True)
        return real(*arguments, **keywords)

    monkeypatch.setattr(rewrite, name, rewriting)
    act(agent)
    home.sync()
    assert found(agent, "almond") == {"new"}
    assert agent.get("new").text == "almond"
    with pytest.raises(keepstone.EntryExistsError):
        agent.session("s").add("note", {"content": "another"}, id="new")


def test_recall_says_stale_while_a_rewrite_is_not_indexed(
    home: Home, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.session("s").update("2", pinned=True)
    monkeypatch.setattr(turn, "BUSY_TIMEOUT", 0.01)
    other = apsw.Connection(str(next(home.root.rglob("index.db"))))
    other.execute("BEGIN IMMEDIATE")
    agent.session("s").compact()
    assert agent.recall("walnut").stale
    other.close(force=True)
    assert not agent.recall("walnut").stale
    assert found(agent, "walnut") == {"0", "1", "2", "3", "4"}


def test_compaction_keeps_an_entry_without_newline_findable(home: Home, agent: Agent) -> None:
    append(home, '{"id":"new","type":"note","content":"almond"}')
    home.sync()
    agent.session("s").compact()
    home.sync()
    assert found(agent, "almond") == {"new"}


LINES = 2_500


@pytest.fixture
def long_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    """A log of several transactions, however slow the machine is."""
    monkeypatch.setattr(reading, "STEP_SECONDS", math.inf)
    with Folder(tmp_path) as folder:
        log = Log(folder, "s.ndjson", Lock(folder, "s.lock"))
        with log.locked():
            log.append([line(n) for n in range(LINES)])
        yield log
        log.close()


def line(n: int, word: str = "walnut") -> bytes:
    return b'{"id":"%d","ts":"2026-01-11T14:31:00Z","type":"note","text":"%s"}\n' % (n, word.encode())


def once(act: Callable[[], object]) -> Callable[[int], None]:
    """Act when a catch-up tells its progress for the first time."""
    left = [act]

    def progress(_: int) -> None:
        while left:
            left.pop()()

    return progress


def ids(index: Index, word: str) -> set[str]:
    rows = index.rows([eid for eid, _ in index.ranked([word], Scope("a"), LINES + 9)])
    return {row.id for row in rows.values()}


def test_long_log_is_read_in_several_transactions(long_log: Log) -> None:
    index, told = Index(None), list[int]()
    index.catch_up("s", long_log, told.append)
    assert len(told) == 2
    assert ids(index, "walnut") == {str(n) for n in range(LINES)}
    index.close()


def test_long_lines_are_read_in_several_transactions(long_log: Log) -> None:
    index, told = Index(None), list[int]()
    with long_log.locked():
        long_log.truncate()
        long_log.append([line(n, "walnut " * 50_000) for n in range(8)])
    index.catch_up("s", long_log, told.append)
    assert len(told) == 4
    assert max(told) < 1 << 20
    index.close()


def test_other_processes_write_between_the_steps_of_a_catch_up(long_log: Log, tmp_path: Path) -> None:
    index = Index(tmp_path / "index.db")
    writing = "import apsw, sys; apsw.Connection(sys.argv[1]).execute('BEGIN IMMEDIATE; COMMIT')"
    command = [sys.executable, "-c", writing, str(tmp_path / "index.db")]
    written: list[int] = []
    index.catch_up(
        "s", long_log, once(lambda: written.append(subprocess.run(command, check=False).returncode))
    )
    assert written == [0]
    index.close()


def test_edit_during_a_catch_up_is_taken_in_by_the_next(long_log: Log, tmp_path: Path) -> None:
    index = Index(None)

    def edit_first() -> None:
        with (tmp_path / long_log.name).open("r+b") as file:
            file.write(line(0, "almond"))

    index.catch_up("s", long_log, once(edit_first))
    index.catch_up("s", long_log)
    assert ids(index, "almond") == {"0"}
    assert len(ids(index, "walnut")) == LINES - 1
    index.close()


def test_append_during_a_catch_up_is_taken_in_by_it(long_log: Log) -> None:
    index = Index(None)

    def add() -> None:
        with long_log.locked():
            long_log.append([line(LINES, "almond")])

    index.catch_up("s", long_log, once(add))
    stat = long_log.stat()
    assert stat is not None
    assert index.current({"s": stat}) == {"s"}
    assert ids(index, "almond") == {str(LINES)}
    index.close()


@pytest.mark.parametrize("kept", [range(1, LINES), range(0)])
def test_rewrite_during_a_catch_up_brings_nothing_back(long_log: Log, kept: range) -> None:
    index = Index(None)

    def rewrite_log() -> None:
        with long_log.locked():
            long_log.replace([line(n, "almond") for n in kept])

    index.catch_up("s", long_log, once(rewrite_log))
    assert ids(index, "walnut") == set()
    assert ids(index, "almond") == {str(n) for n in kept}
    index.close()


def test_interrupted_catch_up_goes_on_where_it_was(long_log: Log, tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    index = Index(tmp_path / "index.db")
    with pytest.raises(KeyboardInterrupt):
        index.catch_up("s", long_log, once(interrupt))
    index.close()
    again, told = Index(tmp_path / "index.db"), list[int]()
    again.catch_up("s", long_log, told.append)
    assert len(told) == 1
    assert ids(again, "walnut") == {str(n) for n in range(LINES)}
    again.close()


def test_long_session_is_dropped_and_read_again_completely(long_log: Log) -> None:
    index = Index(None)
    index.catch_up("s", long_log)
    index.reread("s", long_log)
    assert len(ids(index, "walnut")) == LINES
    long_log_gone(long_log)
    index.catch_up("s", long_log)
    assert ids(index, "walnut") == set()
    assert index.known() == {}
    index.close()


def long_log_gone(log: Log) -> None:
    with log.locked():
        log.remove()


def test_session_that_has_a_log_again_is_not_dropped(long_log: Log) -> None:
    index = Index(None)
    index.catch_up("s", long_log)
    index.drop("s", long_log)
    assert len(ids(index, "walnut")) == LINES
    index.close()


def test_forgetting_reaches_vectors_that_a_reading_has_put_aside(long_log: Log, tmp_path: Path) -> None:
    index, kept = Index(tmp_path / "index.db"), list[Any]()
    index.catch_up("s", long_log)
    index.keep("space", [(entry_of("a", "s", json.loads(line(0))), unit([1, 0]))])

    def forget() -> None:
        other = apsw.Connection(str(tmp_path / "index.db"))
        kept.append(other.execute("SELECT count(*) FROM kept").get)
        index.forget("s", ["0"])
        kept.append(other.execute("SELECT count(*) FROM kept").get)

    with long_log.locked():
        long_log.replace([line(n) for n in range(LINES)])
    index.catch_up("s", long_log, once(forget))
    assert kept == [1, 0]
    index.close()


@pytest.mark.parametrize("call", ["write_all", "sync_file"])
def test_line_of_another_program_during_an_add_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    with keepstone.open(tmp_path / "synced") as home:
        agent, real = home.agent("a"), getattr(log_module, call)
        agent.session("s").add("note", {"content": "walnut"})

        def overtaken(fd: int, *data: bytes) -> None:
            append(home, '{"id":"new","type":"note","content":"almond"}\n')
            real(fd, *data)

        with monkeypatch.context() as patched:
            patched.setattr(log_module, call, overtaken)
            agent.session("s").add("note", {"content": "chestnut"}, id="own")
        assert agent.get("new").text == "almond"
        assert agent.get("own").text == "chestnut"
        assert found(agent, "almond") == {"new"}
        assert found(agent, "chestnut") == {"own"}


def test_recall_of_one_session_is_not_stale_once_the_index_is_free(
    home: Home, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.session("s").add("note", {"content": "pecan"}, embedding=[1, 0])
    monkeypatch.setattr(turn, "BUSY_TIMEOUT", 0.01)
    other = apsw.Connection(str(next(home.root.rglob("index.db"))))
    other.execute("BEGIN IMMEDIATE")
    agent.session("s").add("note", {"content": "almond"}, id="new")
    assert agent.recall("almond", sessions=["s"]).stale
    other.close(force=True)
    hits = agent.recall("almond", sessions=["s"])
    assert "new" in {hit.entry.id for hit in hits}
    assert not hits.stale


def test_lines_of_live_entries_are_as_long_as_the_log(home: Home, agent: Agent) -> None:
    session = agent.session("live")
    session.add("note", {"content": "walnut"})
    session.add("message", {"role": "user", "content": "größer"}, id="it", tags=["a"])
    size = (home.root / "agents/a/memory/sessions/live.ndjson").stat().st_size
    with home._store._using("a") as logs:  # type: ignore[attr-defined]  # noqa: SLF001
        logs.catch_up("live", logs.log("live"), within=9)
        assert logs.index.live_bytes("live") == size


def test_a_line_without_time_has_the_same_one_after_a_compaction_and_a_rebuild(
    home: Home, agent: Agent
) -> None:
    session = agent.session("s")
    session.put({"id": "x", "type": "note", "text": "walnut", "ts": "2026-01-01T00:00:00Z"})
    session.put({"id": "y", "type": "note", "text": "pecan", "ts": "2026-01-02T00:00:00Z"})
    session.delete("y")
    session.compact()
    with (home.root / "agents/a/memory/sessions/s.ndjson").open("a") as log:
        log.write('{"id":"z","type":"note","text":"almond"}\n')
    before = [(entry.id, entry.ts) for entry in session.entries()]
    home.rebuild()
    assert [(entry.id, entry.ts) for entry in session.entries()] == before


def test_a_type_that_no_column_can_hold_is_that_of_the_line(home: Home, agent: Agent) -> None:
    agent.session("s").add("note", text="walnut")
    with (home.root / "agents/a/memory/sessions/s.ndjson").open("a") as log:
        log.write('{"id":"z","ts":"2026-01-02T00:00:00.000000Z","type":"a\\ud800b","text":"pecan"}\n')
    assert [entry.type for entry in agent.session("s").entries() if entry.id == "z"] == ["a\ud800b"]
