"""Session files of any name that people and other programs make."""

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import keepstone
from keepstone import Agent, Home
from keepstone.errors import InvalidSessionIdError
from keepstone.filesystem.confine import MovedError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.index import Index
from keepstone.store.files.agent_logs import AgentLogs

LINE = '{"id":"it","ts":"2026-01-11T14:31:00Z","type":"note","content":"walnut"}\n'


def sessions_of(root: Path) -> Path:
    folder = root / "agents/a/memory/sessions"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def texts(agent: Agent, session: str) -> list[str]:
    return [entry.text for entry in agent.session(session).entries()]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


@pytest.mark.parametrize(
    ("name", "session"),
    [
        ("my notes.ndjson", "my notes"),
        ("caf%c3%a9.ndjson", "café"),
        ("café.ndjson", "café"),
        ("100%.ndjson", "100%"),
        ("%61.ndjson", "a"),
        ("a%2Fb.ndjson", "a/b"),
        ("a:b.ndjson", "a:b"),
        ("a\\b.ndjson", "a\\b"),
        ("%61:%62.ndjson", "a:b"),
    ],
)
def test_a_file_named_by_hand_goes_on_being_used(tmp_path: Path, name: str, session: str) -> None:
    (sessions_of(tmp_path) / name).write_text(LINE)
    with keepstone.open(tmp_path) as home:
        home.agent("a").session(session).add("note", {"content": "pecan"})
        assert [info.id for info in home.agent("a").sessions()] == [session]
        assert [entry.text for entry in home.agent("a").session(session).entries()] == ["walnut", "pecan"]
        assert {hit.entry.session for hit in home.agent("a").recall("walnut")} == {session}
    assert names_in(sessions_of(tmp_path)) == [name]


def test_a_file_named_by_hand_while_the_home_is_open_is_used(tmp_path: Path) -> None:
    with keepstone.open(tmp_path) as home:
        home.agent("a").session("other").add("note", text="walnut")
        (sessions_of(tmp_path) / "my notes.ndjson").write_text(LINE)
        home.agent("a").session("my notes").add("note", {"content": "pecan"})
    assert names_in(sessions_of(tmp_path)) == ["my notes.ndjson", "other.ndjson"]


@pytest.mark.parametrize(
    ("name", "session"),
    [("caf%c3%a9.ndjson", "café"), ("a:b.ndjson", "a:b"), ("a:%62.ndjson", "a:b"), ("a%2fb.ndjson", "a/b")],
)
@pytest.mark.parametrize("was_read", [True, False])
def test_a_file_named_by_hand_is_used_after_others_were_cached(
    tmp_path: Path, name: str, session: str, *, was_read: bool
) -> None:
    with keepstone.open(tmp_path) as home:
        agent = home.agent("a")
        agent.session("other").add("note", text="walnut")
        agent.recall("other")
        agent.session("odd:other").add("note", text="walnut")
        if was_read:
            assert agent.session(session).entries() == []
        (sessions_of(tmp_path) / name).write_text(LINE)
        assert texts(agent, session) == ["walnut"]
        agent.session(session).add("note", {"content": "pecan"})
        assert texts(agent, session) == ["walnut", "pecan"]
    assert names_in(sessions_of(tmp_path)) == sorted([name, "odd%3Aother.ndjson", "other.ndjson"])


@pytest.mark.parametrize("session", ["\ud800", "é" * 1_000_000])
def test_ids_that_no_file_name_can_say_are_refused(tmp_path: Path, session: str) -> None:
    with keepstone.open(tmp_path) as home:
        home.agent("a").session("other").add("note", text="walnut")
        with pytest.raises(InvalidSessionIdError):
            home.agent("a").session(session).add("note", text="walnut")


@pytest.mark.parametrize("read_first", [True, False])
def test_a_canonical_file_renamed_by_hand_gets_later_writes(tmp_path: Path, *, read_first: bool) -> None:
    with keepstone.open(tmp_path) as home:
        agent = home.agent("a")
        agent.session("a:b").add("note", {"content": "walnut"})
        assert texts(agent, "a:b") == ["walnut"]
        (sessions_of(tmp_path) / "a%3Ab.ndjson").rename(sessions_of(tmp_path) / "a:b.ndjson")
        if read_first:
            assert texts(agent, "a:b") == ["walnut"]
        agent.session("a:b").add("note", {"content": "pecan"})
        assert texts(agent, "a:b") == ["walnut", "pecan"]
    assert names_in(sessions_of(tmp_path)) == ["a:b.ndjson"]


def test_a_write_that_waited_for_the_lock_follows_a_renamed_file(tmp_path: Path) -> None:
    with keepstone.open(tmp_path) as home:
        session = home.agent("a").session("a:b")
        session.add("note", {"content": "walnut"})
        logs = AgentLogs(
            tmp_path,
            LAYOUTS["default"],
            "a",
            durable=False,
            create=False,
            most_logs=lambda: 4,
            finish=lambda _: None,
            language="en",
        )
        log = logs.log("a:b")
        (sessions_of(tmp_path) / "a%3Ab.ndjson").rename(sessions_of(tmp_path) / "a:b.ndjson")
        with pytest.raises(MovedError, match="was renamed"), log.locked():
            pass
        logs.close()


def test_of_two_files_for_one_session_the_canonical_one_wins(tmp_path: Path) -> None:
    (sessions_of(tmp_path) / "caf%C3%A9.ndjson").write_text(LINE)
    (sessions_of(tmp_path) / "café.ndjson").write_text(LINE.replace("walnut", "pecan"))
    with keepstone.open(tmp_path) as home:
        assert [entry.text for entry in home.agent("a").session("café").entries()] == ["walnut"]
        assert home.agent("a").recall("pecan") == []
        [finding] = [finding for finding in home.doctor() if finding.level == "error"]
        assert finding.subject == "a/café.ndjson"


def test_of_two_odd_names_for_one_session_the_first_is_used(tmp_path: Path) -> None:
    for name in ("caf%c3%A9.ndjson", "caf%C3%a9.ndjson", "caf%c3%a9.ndjson"):
        (sessions_of(tmp_path) / name).write_text(LINE.replace("walnut", name))
    with keepstone.open(tmp_path) as home:
        [entry] = home.agent("a").session("café").entries()
        assert entry.text == "caf%C3%a9.ndjson"
        assert [hit.entry.text for hit in home.agent("a").recall("ndjson")] == [entry.text]


def test_file_with_a_name_too_long_for_an_id_hides_nothing(tmp_path: Path) -> None:
    (sessions_of(tmp_path) / ("é" * 120 + ".ndjson")).write_text(LINE)
    with keepstone.open(tmp_path) as home:
        home.agent("a").session("s").add("note", {"content": "walnut"})
        home.sync()
        assert {hit.entry.session for hit in home.agent("a").recall("walnut")} == {"s", "é" * 120}


def test_removed_file_with_a_name_too_long_for_an_id_leaves_the_index(tmp_path: Path) -> None:
    path = sessions_of(tmp_path) / ("é" * 120 + ".ndjson")
    path.write_text(LINE)
    with keepstone.open(tmp_path) as home:
        assert len(home.agent("a").recall("walnut")) == 1
        path.unlink()
        home.sync()
        assert home.agent("a").recall("walnut") == []


@pytest.mark.parametrize("name", ["x'ff'", "''"])
def test_row_of_a_session_without_a_name_is_damage_that_is_mended(tmp_path: Path, name: str) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("a").session("s").add("note", {"content": "walnut"})
    [index] = tmp_path.glob(".index/a/*/index.db")
    with closing(apsw.Connection(str(index))) as connection:
        connection.execute(f"UPDATE session SET name={name}")  # noqa: S608  Ours.
    with keepstone.open(tmp_path, embedder="none") as home:
        assert len(home.agent("a").recall("walnut")) == 1


@pytest.mark.parametrize(
    "name", [".hidden.ndjson", "s.jsonl", "s.ndjson.tmp", "s.lock", ".ndjson", "x/s.ndjson"]
)
def test_other_files_and_folders_are_not_sessions(tmp_path: Path, name: str) -> None:
    path = sessions_of(tmp_path) / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(LINE)
    with keepstone.open(tmp_path) as home:
        assert home.agent("a").sessions() == []
        assert home.agent("a").recall("walnut") == []
        assert home.agent("a").session("x/s").entries() == []


def test_a_log_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text(LINE)
    (sessions_of(tmp_path / "home") / "s.ndjson").symlink_to(outside)
    with keepstone.open(tmp_path / "home") as home:
        assert home.agent("a").sessions() == []
        for act in (
            lambda: home.agent("a").session("s").add("note", text="walnut"),
            home.agent("a").session("s").entries,
        ):
            with pytest.raises(keepstone.CorruptLogError, match="move it away"):
                act()
    assert outside.read_text() == LINE


def test_a_home_may_itself_be_a_link_to_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with keepstone.open(tmp_path / "link") as home:
        home.agent("a").session("s").add("note", {"content": "walnut"})
        assert len(home.agent("a").recall("walnut")) == 1


def test_files_and_folders_of_a_home_are_its_owners_alone(tmp_path: Path) -> None:
    with keepstone.open(tmp_path / "home") as home:
        home.agent("a").session("s").add("note", {"content": "walnut"})
        home.agent("a").recall("walnut")
        home.agent("a").session("s").update(home.agent("a").session("s").entries()[0].id, text="pecan")
        home.agent("a").session("s").compact()
        modes = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "home").rglob("*")}
    assert {mode for path, mode in modes.items() if path.suffix} == {0o600}
    assert {mode for path, mode in modes.items() if path.suffix in ("", ".archive")} <= {0o700, 0o600}


def added(agent: Agent, names: list[str]) -> None:
    for name in names:
        agent.session(name).add("note", {"content": f"in {name}"})


def test_a_session_can_have_any_id_and_stays_in_its_folder(tmp_path: Path) -> None:
    names = [
        "../../x",
        "/etc/passwd",
        "a\0b",
        "..",
        ".",
        "con",
        "ä" * 33,
        "\n",
        "s.lock",
        ".purge",
        "a\\b",
        "😀",
    ]
    with keepstone.open(tmp_path / "home") as home:
        added(home.agent("a"), names)
        assert sorted(info.id for info in home.agent("a").sessions()) == sorted(names)
        for name in names:
            assert [entry.text for entry in home.agent("a").session(name).entries()] == [f"in {name}"]
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert all(path.is_file() for path in sessions_of(tmp_path / "home").iterdir())


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return keepstone.open(tmp_path)


def test_many_sessions_are_opened_again_after_they_were_closed(home: Home) -> None:
    names = [f"s{n}" for n in range(150)]
    with home:
        added(home.agent("a"), names)
        added(home.agent("a"), names)
        assert {len(home.agent("a").session(name).entries()) for name in names} == {2}


def in_a_thread(act: Callable[[], object]) -> bool:
    """Return whether something ends that another thread does, while this one goes no further."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(10)
    return not thread.is_alive()


def interrupted(
    monkeypatch: pytest.MonkeyPatch, owner: type, method: str, act: Callable[[], object]
) -> list[bool]:
    """Let another thread act in the midst of the first call of a method; return whether it could."""
    real, ended = getattr(owner, method), list[bool]()

    def calling(*arguments: Any, **options: Any) -> Any:
        if not ended:
            ended.append(False)
            ended[0] = in_a_thread(act)
        return real(*arguments, **options)

    monkeypatch.setattr(owner, method, calling)
    return ended


@pytest.mark.parametrize(
    "act",
    [
        lambda home: home.agent("big").session("y").add("note", {"content": "pecan"}),
        lambda home: home.agent("big").session("y").entries(),
        lambda home: home.agent("big").recall("walnut", sessions=["y"]),
        lambda home: home.agent("other").recall("walnut"),
        lambda home: home.agent("new").session("s").add("note", {"content": "pecan"}),
    ],
    ids=["add", "entries", "recall", "other agent", "new agent"],
)
def test_catch_up_of_one_session_blocks_no_other_session(
    home: Home, monkeypatch: pytest.MonkeyPatch, act: Callable[[Home], object]
) -> None:
    with home:
        for agent in ("big", "other"):
            home.agent(agent).session("y").add("note", {"content": "walnut"}, embedding=[1, 0])
        (home.root / "agents/big/memory/sessions/x.ndjson").write_text(LINE)
        ended = interrupted(monkeypatch, Index, "catch_up", lambda: act(home))
        assert "it" in {hit.entry.id for hit in home.agent("big").recall("walnut")}
        assert ended == [True]


def test_what_lags_behind_during_a_look_stays_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions_of(tmp_path).joinpath("s.ndjson").write_text(LINE)
    logs = AgentLogs(
        tmp_path,
        LAYOUTS["default"],
        "a",
        durable=False,
        create=True,
        most_logs=lambda: 9,
        finish=lambda _: None,
        language="en",
    )
    interrupted(monkeypatch, Index, "catch_up", lambda: logs.lag(OSError()))
    logs.refresh(0)
    assert logs.stale
    logs.refresh(0)
    assert not logs.stale
    logs.close()


@pytest.mark.parametrize("file", ["gone.ndjson", "../../s.ndjson", "", "a\0b", b"s.ndjson", 7])
def test_a_hit_is_loaded_whatever_file_a_damaged_index_names(tmp_path: Path, file: object) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("a")
        agent.session("s").add("note", text="walnut")
        agent.recall("walnut")
        [path] = (tmp_path / ".index/a").glob("v*/index.db")
        with closing(apsw.Connection(str(path))) as index:
            index.execute("UPDATE session SET file=?", (file,))
        assert [hit.text for hit in agent.recall("walnut")] == ["walnut"]
        assert agent.get(agent.recall("walnut")[0].entry.id).text == "walnut"
