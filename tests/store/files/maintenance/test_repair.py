"""That the doctor mends logs only when asked, and keeps what they were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keepstone
from keepstone import Home

SESSIONS = "agents/a/memory/sessions"
UNREADABLE = b'{"id":"lost","type":"note","text":"hazel\xff"}\n'


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path, durability="os", embedder="none") as home:
        home.agent("a").session("s").add("note", {"content": "walnut"}, id="it")
        yield home


def log_of(home: Home) -> Path:
    return home.root / SESSIONS / "s.ndjson"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as log:
        log.write(data)


def originals(home: Home) -> list[Path]:
    return sorted((home.root / SESSIONS / ".archive").glob("*.original"))


def wrong(home: Home, *, fix: bool = False) -> list[str]:
    return [
        each.message for each in home.doctor(fix=fix) if each.level != "ok" and each.subject != "embedder"
    ]


def texts(home: Home) -> list[str]:
    return [entry.text for entry in home.agent("a").session("s").entries()]


@pytest.mark.parametrize(
    ("damage", "left"),
    [
        (b"no line\n" + UNREADABLE, ["walnut"]),
        (b'{"id":"x","type":"note","text":"pecan"}', ["walnut", "pecan"]),
        (b'no line\n{"id":"x","type":"note","text":"pec', ["walnut"]),
        (b'{"id":"x","type":"note","text":"pecan","batch":[1,3]}\n', ["walnut"]),
        (b'{"text":"pecan"}\n\0\0\0\0\n', ["walnut", "pecan"]),
    ],
)
def test_a_damaged_log_is_mended_and_kept_as_it_was(home: Home, damage: bytes, left: list[str]) -> None:
    append(log_of(home), damage)
    before = log_of(home).read_bytes()
    assert texts(home) == left
    assert wrong(home)
    assert wrong(home, fix=True) == []
    assert texts(home) == left
    assert [path.read_bytes() for path in originals(home)] == [before]


def test_a_complete_batch_beside_damage_stays_whole(home: Home) -> None:
    home.agent("a").session("s").add_many(
        [{"type": "note", "text": text} for text in ("one", "two", "three")]
    )
    lines = log_of(home).read_bytes().splitlines(keepends=True)
    log_of(home).write_bytes(b"".join([*lines[:3], b"damaged\n", *lines[4:]]))
    before = texts(home)
    home.doctor(fix=True)
    assert texts(home) == before == ["walnut", "one", "two"]


def test_a_sound_log_is_not_touched_by_mending(home: Home) -> None:
    before = log_of(home).stat()
    home.doctor(fix=True, deep=True)
    after = log_of(home).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert originals(home) == []


def test_a_damaged_archive_is_mended_and_kept_too(home: Home) -> None:
    home.agent("a").session("s").update("it", text="pecan")
    home.agent("a").session("s").compact()
    archive = home.root / SESSIONS / ".archive/s.ndjson"
    append(archive, b"no line\n")
    before = archive.read_bytes()
    assert wrong(home, fix=True) == []
    assert [path.read_bytes() for path in originals(home)] == [before]
    assert [version.text for version in home.agent("a").history("it")] == ["walnut", "pecan"]


def test_what_was_mended_is_reported_first_with_where_the_original_is(home: Home) -> None:
    append(log_of(home), b"no line\n")
    first = home.doctor(fix=True)[0]
    (original,) = originals(home)
    assert (first.level, first.subject) == ("ok", "a/s.ndjson")
    assert first.message == (f"mended: took 1 unreadable line out; it was kept as .archive/{original.name}")


def test_an_original_is_neither_a_session_nor_an_archive(home: Home) -> None:
    append(log_of(home), UNREADABLE)
    home.doctor(fix=True)
    assert [info.id for info in home.agent("a").sessions()] == ["s"]
    assert [entry.id for entry in home.agent("a").session("s").entries(archived=True)] == ["it"]
    assert wrong(home) == []


def mended_twice(home: Home) -> None:
    for _ in range(2):
        append(log_of(home), UNREADABLE)
        home.doctor(fix=True)
    assert len(originals(home)) == 2


def found_in(home: Home, word: bytes) -> list[Path]:
    return [path for path in home.root.rglob("*") if path.is_file() and word in path.read_bytes()]


def test_a_purge_takes_its_entry_out_of_originals(home: Home) -> None:
    mended_twice(home)
    home.agent("a").purge("it")
    assert found_in(home, b"walnut") == []
    assert len(originals(home)) == 2


def test_what_only_an_original_still_holds_can_be_purged(home: Home) -> None:
    mended_twice(home)
    home.agent("a").session("s").purge("lost")
    assert found_in(home, b"hazel") == []


@pytest.mark.parametrize("end", ["clear", "remove", "drop"])
def test_originals_go_with_their_session(home: Home, end: str) -> None:
    mended_twice(home)
    getattr(home.agent("a").session("s"), end)()
    assert originals(home) == []
    assert found_in(home, b"walnut") == found_in(home, b"hazel") == []


def test_a_compaction_leaves_originals_alone(home: Home) -> None:
    mended_twice(home)
    before = [path.read_bytes() for path in originals(home)]
    home.agent("a").session("s").update("it", text="pecan")
    home.agent("a").session("s").compact()
    assert [path.read_bytes() for path in originals(home)] == before


@pytest.mark.parametrize("name", ["s.ndjson.tmp", "s.ndjson.next.tmp", ".archive/s.ndjson.tmp", "gone.lock"])
def test_what_is_left_beside_the_logs_is_removed(home: Home, name: str) -> None:
    path = home.root / SESSIONS / name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch(0o600)
    home.doctor()
    assert path.exists()
    assert wrong(home, fix=True) == []
    assert not path.exists()


def test_a_lock_file_that_has_a_log_stays(home: Home) -> None:
    home.doctor(fix=True)
    assert (home.root / SESSIONS / "s.lock").exists()


_LINES = st.lists(
    st.one_of(
        st.binary(max_size=30).map(lambda raw: raw.replace(b"\n", b"")),
        st.sampled_from(
            [
                b'{"id":"a","type":"note","text":"x"}',
                b'{"id":"a","pinned":true}',
                b'{"id":"a","deleted":true}',
                b'{"text":"nameless"}',
                b'{"id":"b","type":"note","text":"x","batch":[1,2]}',
                b'{"id":"c","type":"note","text":"x","batch":[2,2]}',
            ]
        ),
    ),
    max_size=8,
)


@settings(max_examples=30)
@given(lines=_LINES, ended=st.booleans())
def test_mending_changes_nothing_that_readers_see(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], *, ended: bool
) -> None:
    log = tmp_path_factory.mktemp("home") / SESSIONS / "s.ndjson"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"\n".join(lines) + (b"\n" if ended else b""))
    with keepstone.open(log.parents[4], durability="os", embedder="none") as home:
        before = [entry.as_dict() for entry in home.agent("a").session("s").entries()]
        home.doctor(fix=True)
        assert [entry.as_dict() for entry in home.agent("a").session("s").entries()] == before
        assert not any("unreadable" in message or "newline" in message for message in wrong(home))
