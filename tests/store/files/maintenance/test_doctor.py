"""What the doctor finds, and that it changes nothing."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone import Home
from keepstone.errors import AccessDeniedError
from keepstone.log.log_file import Log
from keepstone.store.files.maintenance.doctor import NEWEST

SESSIONS = "agents/a/memory/sessions"
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", durability="os") as home:
        home.agent("a").session("s").add("note", {"content": "walnut"}, id="it")
        yield home


def append(home: Home, text: str) -> None:
    with (home.root / SESSIONS / "s.ndjson").open("a") as log:
        log.write(text)


def found(home: Home, *, deep: bool = False) -> list[tuple[str, str, str]]:
    """Level, subject and message of what is not well, but for an index that is behind and the embedder."""
    return [
        (each.level, each.subject, each.message)
        for each in home.doctor(deep=deep)
        if each.level != "ok" and "behind" not in each.message and each.subject != "embedder"
    ]


def all_is_well(home: Home, *, deep: bool = False) -> list[str]:
    return [each.message for each in home.doctor(deep=deep) if each.subject == "a"]


def test_a_sound_home_has_one_good_finding_an_agent(home: Home) -> None:
    assert all_is_well(home) == [
        "1 entry, every line readable, index in step, no secret in the newest 1 MiB of each log"
    ]
    assert all_is_well(home, deep=True) == [
        "1 entry, every line readable, index in step and as the logs say, no secret anywhere"
    ]


def test_what_was_looked_at_is_said_also_where_something_is_wrong(home: Home) -> None:
    append(home, "no line\n")
    (home.root / SESSIONS).chmod(0o755)
    looked = {each.subject: each.message for each in home.doctor() if each.level == "ok"}
    assert looked["a"].startswith("1 entry; looked at every line of logs and archives, purges, the index")
    assert looked[str(home.root)].startswith("looked at its file system, sync services")


@pytest.mark.parametrize("error", [AccessDeniedError("permission denied"), OSError(errno.EIO, "bad sector")])
def test_log_that_cannot_be_read_is_named_and_the_others_are_looked_at(
    home: Home, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    home.agent("a").session("t").add("note", {"content": TOKEN}, id="it")
    read = Log.open_to_read

    def refuse(log: Log) -> int | None:
        if log.name == "s.ndjson":
            raise error
        return read(log)

    monkeypatch.setattr(Log, "open_to_read", refuse)
    said = found(home)
    assert [(level, subject) for level, subject, _ in said] == [("error", "a/s"), ("warning", "a/t")]
    assert said[0][2] == f"the log cannot be read: {error}"


@pytest.mark.parametrize(
    ("damage", "level", "message"),
    [
        ("no line\n[]\n", "error", "2 unreadable lines, skipped: line 2 (byte "),
        (
            '{"id":"x","type":"note","batch":[1,3]}\n',
            "warning",
            "1 line at the end, the beginning of a batch, hidden",
        ),
        ('{"id":"x","type":"note"}', "warning", "the last line has no newline; the next write ends it"),
        ('{"id":"none","pinned":true}\n', "warning", "1 patch without an entry, ignored"),
    ],
)
def test_what_is_wrong_with_a_log_is_named(home: Home, damage: str, level: str, message: str) -> None:
    append(home, damage)
    assert any(each[0] == level and each[2].startswith(message) for each in found(home))


def test_unreadable_lines_are_named_as_editors_count_them(home: Home) -> None:
    lines = [b"{}", b"", b"no line", b"x" * 17_000_000, b"\xff\n\0", b"{}", *[b"no"] * 4]
    log = home.root / SESSIONS / "s.ndjson"
    log.write_bytes(b"\n".join([*lines, b""]))
    [(_, subject, message)] = [each for each in found(home) if each[0] == "error"]
    assert subject == "a/s"
    assert message == (
        "8 unreadable lines, skipped: line 3 (byte 4), line 4 (byte 12), line 5 (byte 17,000,013), "
        "line 6 (byte 17,000,015), line 8 (byte 17,000,020) and 3 more"
    )


def test_whatever_is_wrong_says_what_it_costs_and_what_to_do(home: Home) -> None:
    append(home, f'no line\n{{"id":"x","type":"note","text":"{TOKEN}"}}\n{{"id":"none","pinned":true}}')
    (home.root / SESSIONS / "s.ndjson.tmp").touch(0o600)
    wrong = [each for each in home.doctor() if each.level != "ok" and each.subject != "embedder"]
    assert len(wrong) == 6
    assert all(each.cost and each.remedy for each in wrong)


def test_an_index_that_is_behind_is_named_until_it_caught_up(home: Home) -> None:
    append(home, '{"id":"x","type":"note"}\n')
    assert any("behind" in finding.message for finding in home.doctor())
    home.sync()
    assert all_is_well(home)[0].startswith("2 entries, every line readable, index in step")


@pytest.mark.parametrize("deep", [False, True])
def test_the_doctor_changes_no_byte_of_what_is_remembered(home: Home, *, deep: bool) -> None:
    append(home, f"no line\n{TOKEN}")
    home.agent("a").files.write("x.md", "x")
    before = {path: path.read_bytes() for path in (home.root / "agents").rglob("*") if path.is_file()}
    home.doctor(deep=deep)
    assert {path: path.read_bytes() for path in (home.root / "agents").rglob("*") if path.is_file()} == before


def test_damage_in_an_archive_is_counted_too(home: Home) -> None:
    home.agent("a").session("s").update("it", text="pecan")
    home.agent("a").session("s").compact()
    with (home.root / SESSIONS / ".archive/s.ndjson").open("a") as log:
        log.write("no line\n")
    [(level, subject, message)] = found(home)
    assert (level, subject) == ("error", "a/s (archive)")
    assert message.startswith("1 unreadable line, skipped: line 3 (byte ")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("s.ndjson.tmp", "left by a rewrite that was cut short; the next write removes it"),
        (".archive/s.ndjson.tmp", "left by a rewrite that was cut short; the next write removes it"),
        ("gone.lock", "a lock file without its log"),
        (".archive/gone.ndjson", "an archive without its log"),
    ],
)
def test_what_is_left_beside_the_logs_is_named(home: Home, name: str, message: str) -> None:
    path = home.root / SESSIONS / name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch(0o600)
    assert found(home) == [("warning", f"a/{name}", message)]


def test_a_purge_that_was_not_ended_is_named(home: Home) -> None:
    home.doctor()
    marks = home.root / SESSIONS / ".purge.ndjson"
    marks.touch(0o600)
    marks.write_text('{"session":"s","id":"it"}\n')
    assert found(home) == [("warning", "a", "1 purge(s) begun and not yet ended")]


def test_an_agent_that_cannot_be_opened_hides_no_other(home: Home, tmp_path: Path) -> None:
    (home.root / "agents/b").mkdir(0o700)
    (tmp_path / "elsewhere/sessions").mkdir(parents=True)
    (home.root / "agents/b/memory").symlink_to(tmp_path / "elsewhere")
    levels = {each.subject: each.level for each in home.doctor()}
    assert (levels["b"], levels["agents/b/memory"], levels["a"]) == ("error", "error", "ok")


# Secrets


def test_a_secret_is_named_by_its_entry_and_kind_and_never_shown(home: Home) -> None:
    home.agent("a").session("s").add("note", {"content": f"use {TOKEN}"}, id="leak")
    (warning,) = [each for each in home.doctor() if each.level == "warning"]
    assert warning.subject == "a/s"
    assert warning.message == "entry leak holds what looks like a secret: GitHub token"
    assert warning.remedy == "keepstone purge leak --session s --agent a"
    assert TOKEN not in str(home.doctor(deep=True))


def test_a_secret_is_named_until_its_entry_is_purged(home: Home) -> None:
    target = home.agent("a").session("s")
    target.add("note", text=TOKEN, id="leak")
    target.update("leak", text="masked by hand")
    target.delete("leak")
    assert len(found(home)) == 1
    target.purge("leak")
    assert found(home) == []


def test_old_lines_and_archives_are_searched_for_secrets_only_in_depth(home: Home) -> None:
    target = home.agent("a").session("s")
    target.add("note", text=TOKEN, id="archived")
    target.update("archived", text="harmless")
    target.compact()
    target.add("note", text=TOKEN, id="old")
    target.add("note", text="x" * NEWEST)
    assert found(home) == []
    assert [each[2].split()[1] for each in found(home, deep=True)] == ["old", "archived"]


def test_a_secret_in_a_line_that_cannot_be_read_is_found(home: Home) -> None:
    append(home, f"{TOKEN}\n")
    assert (
        "warning",
        "a/s",
        "a line without an entry holds what looks like a secret: GitHub token",
    ) in found(home)


def test_of_very_many_secrets_twenty_are_named_and_the_rest_counted(home: Home) -> None:
    home.agent("a").session("s").add_many({"type": "note", "text": TOKEN} for _ in range(25))
    messages = [each[2] for each in found(home)]
    assert len(messages) == 21
    assert messages[-1] == "5 more entries hold what looks like a secret"


def test_lock_of_a_second_file_for_a_session_is_not_reported(home: Home) -> None:
    (home.root / SESSIONS / "%73.ndjson").write_text("")
    (home.root / SESSIONS / "%73.lock").write_text("")
    subjects = {subject for _, subject, _ in found(home)}
    assert "a/%73.ndjson" in subjects
    assert "a/%73.lock" not in subjects


# Dropped sessions


def test_log_put_back_after_its_drop_is_named(home: Home) -> None:
    log = home.root / SESSIONS / "s.ndjson"
    kept = log.read_bytes()
    home.agent("a").session("s").drop()
    log.write_bytes(kept)
    log.chmod(0o600)
    [(level, subject, message)] = found(home)
    assert (level, subject) == ("warning", "a/s")
    assert "1 entry from before: the log was put back" in message


def test_session_that_began_again_after_its_drop_is_sound(home: Home) -> None:
    session = home.agent("a").session("s")
    session.drop()
    session.add("note", text="pecan")
    session.add("note", text="imported", ts="2001-01-01")
    assert found(home) == []


@pytest.mark.parametrize("mark", ["no mark\n", '{"session":"s"}\n', '{"session":7,"ts":"2100-01-01"}\n'])
def test_damaged_mark_of_a_drop_accuses_no_session(home: Home, mark: str) -> None:
    marks = home.root / SESSIONS / ".dropped.ndjson"
    marks.write_text(mark)
    marks.chmod(0o600)
    assert found(home) == []
