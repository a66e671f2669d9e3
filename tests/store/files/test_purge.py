"""What is purged is gone from every byte under the home."""

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

import keepstone
from keepstone import Agent, Home, SessionInfo
from keepstone.index import database, turn
from keepstone.log import mentioned_ids, scan
from keepstone.log.log_file import Log
from keepstone.store.files import purge

WORD = "qzvxkwalnut"
PIECE = "vxkwalnut"
"""The end of the secret: an index keeps words without the letters that they share with the one before."""
ID = "qj7xpurgedid"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path, durability="os") as home:
        yield home


def forms_of(text: str) -> Iterator[bytes]:
    """A text as bytes, as it would be in UTF-8, UTF-16, and base64 of either at each alignment."""
    for raw in (text.encode(), text.encode("utf-16-le")):
        yield raw
        for shift in range(3):
            encoded = base64.b64encode(bytes(shift) + raw)
            yield encoded[-(-shift * 4 // 3) + (shift > 0) : (shift + len(raw)) // 3 * 4]


def files_with(root: Path, *texts: str) -> set[str]:
    """The files under a root that hold any of the texts in any form."""
    forms = [form for text in texts for form in forms_of(text)]
    held = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return {path.name for path, data in held.items() if any(form in data for form in forms)}


def fill(agent: Agent, others: int) -> None:
    """An entry to purge among others, which begin with the same letters."""
    session = agent.session("s")
    half = [{"type": "event", "content": f"qzvx{n} neighbour"} for n in range(others // 2)]
    session.add_many(half)
    session.add("note", {"content": f"{WORD} 東京都{WORD}"}, id=ID, tags=[f"tag{WORD}"], summary=WORD)
    session.add_many(half)


def test_the_forms_of_a_text_are_found_at_their_places(tmp_path: Path) -> None:
    text = base64.b64encode(f"ab{WORD}yz".encode()) + base64.b64encode(f"{WORD}".encode("utf-16-le"))
    (tmp_path / "file").write_bytes(text)
    assert files_with(tmp_path, WORD) == {"file"}
    assert all(
        any(form in base64.b64encode(bytes(shift) + WORD.encode()) for form in forms_of(WORD))
        for shift in range(3)
    )


@pytest.mark.parametrize("others", [0, 3, 2000])
@pytest.mark.parametrize("recalled", [True, False])
def test_a_purged_entry_leaves_no_byte_behind(home: Home, others: int, recalled: bool) -> None:  # noqa: FBT001
    fill(home.agent("a"), others)
    if recalled:
        home.agent("a").recall(WORD)
    home.agent("a").purge(ID)
    assert files_with(home.root, PIECE, ID) == set()
    home.close()
    assert files_with(home.root, PIECE, ID) == set()


def replaced(agent: Agent) -> None:
    agent.session("s").update(ID, data={"content": "harmless"}, tags=[], summary=None)
    agent.purge(ID)


def archived(agent: Agent) -> None:
    agent.session("s").update(ID, data={"content": "harmless"})
    agent.session("s").compact()
    agent.session("s").delete(ID)
    agent.session("s").compact()
    agent.purge(ID)


def cleared(agent: Agent) -> None:
    agent.session("s").compact()
    agent.session("s").clear()


def removed(agent: Agent) -> None:
    agent.session("s").delete(ID)
    agent.session("s").compact()
    agent.session("s").remove()


@pytest.mark.parametrize("erase", [replaced, archived, cleared, removed])
@pytest.mark.parametrize("others", [0, 3, 2000])
def test_every_way_of_erasing_leaves_no_byte_behind(
    home: Home, others: int, erase: Callable[[Agent], None]
) -> None:
    fill(home.agent("a"), others)
    home.agent("a").recall(WORD)
    erase(home.agent("a"))
    assert files_with(home.root, PIECE, ID) == set()


SPELLINGS = ["it's.ndjson", "%69t%27s.ndjson"]
PLACES = [
    "{}",
    "{}.tmp",
    "{}.next.tmp",
    ".archive/{}",
    ".archive/{}.tmp",
    ".archive/{}.next.tmp",
    ".archive/{}.20260111T143100000000Z.original",
]


def spell(home: Home) -> Path:
    """Copy a session's log to where other programs, or people, might have left it under other names."""
    home.agent("a").session("it's").add_many(
        [{"type": "event", "id": ID, "content": WORD}, {"type": "event", "id": "b", "content": "pecan"}]
    )
    sessions = home.root / "agents/a/memory/sessions"
    (sessions / ".archive").mkdir()
    for name in SPELLINGS:
        for place in PLACES:
            (sessions / place.format(name)).write_bytes((sessions / "it%27s.ndjson").read_bytes())
    return sessions


@pytest.mark.parametrize(
    "erase",
    [
        lambda agent: agent.session("it's").purge(ID),
        lambda agent: agent.session("it's").clear(),
        lambda agent: agent.session("it's").remove(),
        lambda agent: agent.purge_matching(WORD),
    ],
    ids=["purge", "clear", "remove", "purge_matching"],
)
def test_erasing_reaches_files_under_other_spellings(home: Home, erase: Callable[[Agent], None]) -> None:
    spell(home)
    erase(home.agent("a"))
    assert files_with(home.root, PIECE, ID) == set()


def test_purge_keeps_other_entries_under_other_spellings(home: Home) -> None:
    sessions = spell(home)
    home.agent("a").session("it's").purge(ID)
    for name in SPELLINGS:
        assert b"pecan" in (sessions / name).read_bytes()
        assert b"pecan" in (sessions / f".archive/{name}").read_bytes()


def test_text_that_only_another_spelling_holds_is_purged(home: Home) -> None:
    sessions = spell(home)
    with (sessions / SPELLINGS[0]).open("a") as file:
        file.write('{"id":"c","type":"note","content":"hidden chestnut"}\n')
    home.agent("a").purge_matching("chestnut")
    assert files_with(home.root, "chestnut") == set()


def test_removed_session_does_not_come_back_by_another_spelling(home: Home) -> None:
    sessions = spell(home)
    home.agent("a").session("it's").remove()
    assert home.agent("a").sessions() == []
    assert home.agent("a").session("it's").entries() == []
    left = {path.name for path in sessions.iterdir()}
    assert left <= {".archive", ".purged.ndjson", ".purged.ndjson.lock"}


@pytest.mark.parametrize("name", [*SPELLINGS, "it%27s.ndjson"])
def test_removal_killed_among_spellings_is_finished(
    home: Home, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    spell(home)
    remove = Log.remove

    def remove_or_die(log: Log) -> None:
        if log.name == name:
            raise KilledError
        remove(log)

    with monkeypatch.context() as patch, suppress(KilledError):
        patch.setattr(Log, "remove", remove_or_die)
        home.agent("a").session("it's").remove()
    home.close()
    with keepstone.open(home.root) as again:
        assert again.agent("a").sessions() == []
        assert files_with(home.root, PIECE, ID) == set()


def test_purging_an_agent_leaves_no_byte_of_it_behind(home: Home) -> None:
    fill(home.agent(WORD), 3)
    home.agent(WORD).files.write(f"{WORD}.md", WORD)
    home.agent(WORD).recall(WORD)
    fill(home.agent("b"), 0)
    home.agent("b").purge(ID)
    home.purge_agent(WORD)
    assert files_with(home.root, PIECE, ID) == set()
    assert [path for path in home.root.rglob("*") if WORD in path.name] == []


def test_a_purged_line_without_an_id_leaves_no_digest_of_itself(home: Home) -> None:
    home.agent("a").session("s").add("note", {"content": "other"}, id="other")
    log = home.root / "agents/a/memory/sessions/s.ndjson"
    with log.open("a") as file:
        file.write(f'{{"content":"{WORD}"}}\n')
    home.sync()
    [hit] = home.agent("a").recall(WORD, limit=1)
    home.agent("a").purge(hit.entry.id)
    assert files_with(home.root, PIECE, hit.entry.id) == set()


def test_neighbours_of_a_purged_entry_are_found_as_before(home: Home) -> None:
    agent = home.agent("a")
    agent.session("s").add_many([{"type": "event", "id": str(n), "content": f"walnut{n}"} for n in range(7)])
    agent.recall("walnut3")
    agent.purge("3")
    for n in (0, 1, 2, 4, 5, 6):
        assert agent.recall(f"walnut{n}", limit=1)[0].entry.id == str(n)
    assert {hit.entry.id for hit in agent.recall("walnut4")} >= {"2", "4", "5"}
    assert agent.recall("walnut3") == []


def test_a_purge_that_a_reader_hinders_says_so_and_is_finished_later(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home.agent("a"), 3)
    home.agent("a").recall(WORD)
    monkeypatch.setattr(purge, "TIMEOUT", 0)
    monkeypatch.setattr(turn, "BUSY_TIMEOUT", 0.01)
    reader = apsw.Connection(str(next(home.root.rglob("index.db"))))
    reader.execute("BEGIN; SELECT * FROM entry").fetchone()
    with pytest.raises(keepstone.PurgePendingError, match="open the home again"):
        home.agent("a").purge(ID)
    assert home.agent("a").recall(WORD) == []
    reader.close()
    home.close()
    with keepstone.open(home.root) as again:
        again.agent("a").sessions()
        assert files_with(home.root, PIECE, ID) == set()


def test_a_purge_pending_is_finished_by_purging_once_more(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home.agent("a"), 3)
    home.agent("a").recall(WORD)
    monkeypatch.setattr(purge, "TIMEOUT", 0)
    monkeypatch.setattr(turn, "BUSY_TIMEOUT", 0.01)
    reader = apsw.Connection(str(next(home.root.rglob("index.db"))))
    reader.execute("BEGIN; SELECT * FROM entry").fetchone()
    with pytest.raises(keepstone.PurgePendingError):
        home.agent("a").purge(ID)
    reader.close()
    home.agent("a").session("s").add("note", {"content": "other"}, id="other")
    home.agent("a").purge("other")
    assert files_with(home.root, PIECE, ID) == set()


def test_bytes_that_a_reader_keeps_from_being_cleared_go_with_the_next_open(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "BUSY_TIMEOUT", 0.01)
    fill(home.agent("a"), 3)
    home.agent("a").recall(WORD)
    reader = apsw.Connection(str(next(home.root.rglob("index.db"))))
    reader.execute("BEGIN; SELECT * FROM entry").fetchone()
    with pytest.raises(keepstone.PurgePendingError):
        home.agent("a").session("s").clear()
    reader.close()
    home.close()
    with keepstone.open(home.root) as again:
        again.agent("a").sessions()
        assert files_with(home.root, PIECE, ID) == set()


def test_an_agent_whose_purge_was_killed_is_purged_by_the_next_open(home: Home) -> None:
    fill(home.agent("a"), 3)
    home.agent("a").recall(WORD)
    home.close()
    folder = home.root / "agents/a"
    folder.rename(folder.with_name(".purge.a.123"))
    with keepstone.open(home.root) as again:
        assert again.agents() == []
        assert files_with(home.root, PIECE, ID) == set()


class KilledError(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("layout", ["cache", "bmad"])
@pytest.mark.parametrize("renames", [1, 2, 3])
def test_a_purge_killed_between_the_folders_of_an_agent_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, renames: int
) -> None:
    rename, done = Path.rename, iter(range(renames))

    def rename_or_die(path: Path, target: Path) -> Path:
        if next(done, None) is None:
            raise KilledError
        return rename(path, target)

    with keepstone.open(tmp_path, layout=layout, embedder="none") as home:
        fill(home.agent("default"), 3)
        home.agent("default").files.write(f"{WORD}.md", WORD)
        with monkeypatch.context() as patch, suppress(KilledError):
            patch.setattr(Path, "rename", rename_or_die)
            home.purge_agent("default")
    with keepstone.open(tmp_path, layout=layout, embedder="none") as again:
        assert again.agents() == []
        assert files_with(tmp_path, PIECE, ID) == set()
        assert [path.name for path in tmp_path.rglob("*") if WORD in path.name or "purge" in path.name] == []


@pytest.mark.parametrize("call", ["clear", "remove", "drop"])
def test_a_check_sees_the_session_and_can_stop_its_removal(home: Home, call: str) -> None:
    session = home.agent("a").session("s")
    session.add("note", {"content": "kept"})
    seen: list[SessionInfo] = []

    def refuse(info: SessionInfo) -> None:
        seen.append(info)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        getattr(session, call)(check=refuse)
    assert seen == [session.info()]
    assert [entry.data["content"] for entry in session.entries()] == ["kept"]
    assert not (home.root / "agents/a/memory/sessions/.purge.ndjson").exists()


def test_many_entries_are_purged_with_one_rewrite(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    session = home.agent("a").session("s")
    items = [{"type": "note", "text": f"{WORD}{number}"} for number in range(50)]
    ids = [entry.id for entry in session.add_many(items)]
    rewrites = calls_of(monkeypatch, Log, "replace")
    assert session.purge_many([*ids[10:], "nowhere"]) == 40
    assert [log.name for log, _ in rewrites] == ["s.ndjson"]
    assert [entry.id for entry in session.entries()] == ids[:10]
    assert session.purge_many(ids[10:]) == 0


def test_the_work_of_a_purge_grows_with_the_log_alone(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    session = home.agent("a").session("s")
    looks = calls_of(monkeypatch, mentioned_ids, "id_of")
    counts = []
    for size in (100, 400):
        items = [{"type": "note", "text": f"{size} {number}"} for number in range(size)]
        ids = [entry.id for entry in session.add_many(items)]
        looks.clear()
        session.purge_many(ids)
        counts.append(len(looks))
    assert 0 < counts[1] <= 5 * counts[0]


def test_a_purge_reads_a_log_once_to_find_its_lines_and_once_to_rewrite_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = home.agent("a").session("s")
    session.add_many({"type": "note", "text": f"walnut {number}"} for number in range(100))
    last = session.add("note", text=WORD)
    home.agent("a").recall("walnut")
    parsed = calls_of(monkeypatch, scan, "parse")
    session.purge(last.id)
    assert 202 <= len(parsed) <= 210


def test_entries_added_before_a_purge_gets_the_lock_are_purged_as_well(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = home.agent("a").session("s")
    first = session.add("note", text=WORD)
    other = home.agent("a").session("s")
    locked = Log.locked

    @contextmanager
    def late(log: Log, *args: Any) -> Iterator[None]:
        if log.name == "s.ndjson":
            monkeypatch.setattr(Log, "locked", locked)
            other.update(first.id, text=f"{WORD} again")
        with locked(log, *args):
            yield

    monkeypatch.setattr(Log, "locked", late)
    session.purge(first.id)
    assert files_with(home.root, WORD) == set()


def test_purging_more_entries_takes_no_more_statements(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    session = home.agent("a").session("s")
    statements = calls_of(monkeypatch, database.Database, "execute")
    counts = []
    for size in (100, 400):
        items = [{"type": "note", "text": f"walnut {number}"} for number in range(size)]
        ids = [entry.id for entry in session.add_many(items)]
        home.agent("a").recall("walnut")
        statements.clear()
        assert session.purge_many(ids) == size
        counts.append(len(statements))
    assert 0 < counts[1] == counts[0]


def calls_of(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[tuple[Any, ...]]:
    """Return a list that gets the arguments of each call of a function."""
    calls: list[tuple[Any, ...]] = []
    called = getattr(owner, name)

    def counted(*args: Any) -> Any:
        calls.append(args)
        return called(*args)

    monkeypatch.setattr(owner, name, counted)
    return calls
