"""The record of a home's last exchange, which is derived and may be lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from keepstone.filesystem.layout import INDEX
from keepstone.operations.syncing.exchanged import Exchanged, ExchangedSession

STATE = [[10, 1768141860, 7], None, None]
SESSION = ExchangedSession(STATE, {"x.ndjson": [10, "0"]}, {"devices/one": ["1"]})


def saved(root: Path) -> None:
    exchanged = Exchanged({})
    exchanged.keep("a", "x", SESSION)
    exchanged.save(root)


def test_a_session_in_the_same_state_is_known(tmp_path: Path) -> None:
    saved(tmp_path)
    assert Exchanged.load(tmp_path).known("a", "x", STATE) == SESSION


@pytest.mark.parametrize(
    ("agent", "session", "state"),
    [("a", "x", [[11, 1768141860, 7], None, None]), ("a", "y", STATE), ("b", "x", STATE)],
)
def test_another_session_or_state_is_not(
    tmp_path: Path, agent: str, session: str, state: list[object]
) -> None:
    saved(tmp_path)
    assert Exchanged.load(tmp_path).known(agent, session, state) is None


def test_a_session_that_is_not_kept_again_is_forgotten(tmp_path: Path) -> None:
    saved(tmp_path)
    Exchanged.load(tmp_path).save(tmp_path)
    assert Exchanged.load(tmp_path).known("a", "x", STATE) is None


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"a/x": 1}', b'{"a/x": {"state": []}}', b"\xff"])
def test_a_damaged_record_is_no_record(tmp_path: Path, raw: bytes) -> None:
    saved(tmp_path)
    (tmp_path / INDEX / ".exchanged.json").write_bytes(raw)
    found = Exchanged.load(tmp_path)
    assert found.known("a", "x", STATE) is None
    assert found.known("a", "x", []) is None


def test_without_a_record_all_is_read_once_more(tmp_path: Path) -> None:
    assert Exchanged.load(tmp_path).known("a", "x", STATE) is None


def test_a_record_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text("a file in the way")
    saved(tmp_path)
    assert (tmp_path / INDEX).read_text() == "a file in the way"
