"""Whatever was done to a log by others, the index follows."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import keepstone
from keepstone import Agent, Home
from keepstone.confine import Folder
from keepstone.index import Index
from keepstone.lock import Lock
from keepstone.log import Log
from keepstone.model import Scope


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path, durability="os") as home:
        home.agent("a").session("s").add_many([{"id": str(n), "content": f"walnut {n}"} for n in range(5)])
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


def test_a_log_replaced_by_an_editors_copy_is_read_anew(home: Home, agent: Agent) -> None:
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
        late.meanwhile = lambda: rewrite(log, index)
        index = Index(None)
        index.catch_up("s", late)
        assert index.ranked(["walnut"], Scope("a"), 5) == []
        assert index.holders("b") == ["s"]
        index.close()
        log.close()
        late.close()


class LateLog(Log):
    """A log whose first reader is overtaken by a rewrite after it has opened the file."""

    meanwhile = staticmethod(lambda: None)

    @contextmanager
    def reading(self) -> Iterator[int | None]:
        with super().reading() as fd:
            act, self.meanwhile = self.meanwhile, lambda: None
            act()
            yield fd


def rewrite(log: Log, index: Index) -> None:
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
