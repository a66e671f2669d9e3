"""Reading a log into the index: the rows do not depend on how many lines a transaction takes in."""

import json
import math
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.lock import Lock
from keepstone.index import Index, entries, reading
from keepstone.index.database import Database
from keepstone.index.words import word_table
from keepstone.log import fold
from keepstone.log.fold import after
from keepstone.log.log_file import Log
from keepstone.model import Record
from keepstone.vector import encode

VECTORS = [encode("given:2", np.array(pair, np.float32)) for pair in ([1, 0], [0, 1])]

LINES = st.fixed_dictionaries(
    {"id": st.sampled_from("abcd"), "ts": st.just("2026-01-11T14:31:00Z")},
    optional={
        "type": st.sampled_from(["note", "fact"]),
        "text": st.sampled_from(["walnut", "pecan", ""]),
        "deleted": st.just(value=True),
        "embedding": st.sampled_from(VECTORS),
        "access": st.integers(0, 2),
        "tags": st.lists(st.sampled_from("xy")),
        "aliases": st.just(["nut"]),
    },
)


def rows_of(log: bytes, lines: int, portion: int = 100) -> tuple[Any, ...]:
    """Return the rows and vectors that an index has of a log, with lines a transaction and a portion."""
    with TemporaryDirectory() as name, Folder(Path(name), root=Path(name)) as folder:
        (folder.path / "s.ndjson").write_bytes(log)
        index = Index(folder.path / "index.db")
        with patch.object(reading, "STEP_LINES", lines), patch.object(reading, "_PORTION", portion):
            index.catch_up("s", Log(folder, "s.ndjson", Lock(folder, ".s.lock")))
        index.close()
        with closing(Database(folder.path / "index.db")) as database:
            said = entries.rows_of(database, range(1, 1000)).values()
            return (
                database.rows(
                    "SELECT number, id, digest, head, type, ts, tags, priority FROM entry ORDER BY number"
                ),
                {row.id: row.record for row in said},
                database.rows("SELECT number, f32 FROM vector JOIN entry USING(eid) ORDER BY number"),
                database.rows("SELECT number, value FROM field JOIN entry USING(eid) ORDER BY number, value"),
            )


def line(**keys: Any) -> dict[str, Any]:
    return {"id": "a", "ts": "2026-01-11T14:31:00Z", **keys}


@example([line(type="note"), line(embedding=VECTORS[0]), line(aliases=["nut"])])
@example([line(tags=[]), line(tags=[]), line(type="note"), line(deleted=True), line(type="note")])
@given(st.lists(LINES, max_size=12))
def test_rows_are_the_same_however_many_lines_a_transaction_takes(lines: list[dict[str, Any]]) -> None:
    log = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    assert rows_of(log, 1000) == rows_of(log, 1000, portion=2) == rows_of(log, 3) == rows_of(log, 1)


def test_step_ends_early_on_a_slow_machine_and_all_lines_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 0.0

    def slow_fold(known: Record | None, later: Record) -> Record | None:
        nonlocal clock
        clock += 0.001
        return after(known, later)

    monkeypatch.setattr(fold, "after", slow_fold)
    monkeypatch.setattr(reading, "time", SimpleNamespace(monotonic=lambda: clock), raising=False)
    (tmp_path / "s.ndjson").write_bytes(
        b"".join(b'{"id":"%d","type":"note","text":"walnut"}\n' % number for number in range(950))
    )
    counts = []
    with Folder(tmp_path, root=tmp_path) as folder, closing(Index(None)) as index:
        log = Log(folder, "s.ndjson", Lock(folder, ".s.lock"))
        while index.step("s", log) is not None:
            counts += index._database.rows("SELECT count(*) FROM entry")  # noqa: SLF001
        assert index.counts("s") == {"s": 950}
    assert counts == [(number,) for number in range(100, 950, 100)]


def test_words_of_a_long_log_are_flushed_before_too_many_rows_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []

    def flush(database: Database) -> None:
        flushed.extend(count for (count,) in database.rows("SELECT count(*) FROM entry"))
        real(database)

    real = word_table.flush
    monkeypatch.setattr(word_table, "flush", flush)
    monkeypatch.setattr(reading, "LEFT_TO_RECALL", 6)
    monkeypatch.setattr(reading, "STEP_LINES", 3)
    (tmp_path / "s.ndjson").write_bytes(
        b"".join(b'{"id":"%d","type":"note","text":"walnut"}\n' % number for number in range(20))
    )
    with Folder(tmp_path, root=tmp_path) as folder, closing(Index(None)) as index:
        index.catch_up("s", Log(folder, "s.ndjson", Lock(folder, ".s.lock")))
    assert flushed == [6, 12, 18, 20]


def test_deletions_beyond_a_few_are_hidden_however_far_apart_their_lines_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[int] = []

    def drop(database: Database, eids: Sequence[int], **keys: bool) -> None:
        dropped.extend(eids)
        real(database, eids, **keys)

    real = entries.drop
    monkeypatch.setattr(entries, "drop", drop)
    monkeypatch.setattr(reading, "STEP_SECONDS", math.inf)
    monkeypatch.setattr(reading, "STEP_LINES", 300)
    puts = [b'{"id":"%d","type":"note","text":"walnut"}\n' % number for number in range(300)]
    deletions = [
        b'{"id":"%d","deleted":true}\n{"id":"%d","pinned":true}\n{"id":"299","pinned":true}\n' % (n, n + 100)
        for n in range(100)
    ]
    (tmp_path / "s.ndjson").write_bytes(b"".join(puts + deletions))
    with Folder(tmp_path, root=tmp_path) as folder, closing(Index(None)) as index:
        index.catch_up("s", Log(folder, "s.ndjson", Lock(folder, ".s.lock")))
        assert index.counts("s") == {"s": 200}
        assert len(dropped) <= 64


def test_last_line_without_its_newline_is_a_row_and_becomes_no_change(tmp_path: Path) -> None:
    file = tmp_path / "s.ndjson"
    file.write_bytes(b'{"id":"a","ts":"2026-01-11T14:31:00Z","type":"note","text":"walnut"}')
    with Folder(tmp_path, root=tmp_path) as folder, closing(Index(None)) as index:
        log = Log(folder, "s.ndjson", Lock(folder, ".s.lock"))
        index.catch_up("s", log)
        [before] = index.with_ids("s", ["a"])
        with file.open("ab") as more:
            more.write(b'\n{"id":"b","ts":"2026-01-11T14:31:00Z","type":"note","text":"pecan"}\n')
        index.catch_up("s", log)
        assert [row.record for row in index.with_ids("s", ["a"])] == [before.record]
        assert index.counts("s") == {"s": 2}
