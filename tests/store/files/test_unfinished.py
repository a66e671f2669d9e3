"""An entry whose line only lacks its newline, as editors leave the last one, is an entry by every way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone import EntryExistsError, EntryNotFoundError, Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path, durability="os", embedder="none") as home:
        home.agent("a").session("s").add_many(
            [{"type": "event", "id": str(n), "text": f"walnut {n}"} for n in range(3)]
        )
        log = tmp_path / "agents/a/memory/sessions/s.ndjson"
        log.write_bytes(log.read_bytes().rstrip(b"\n"))
        yield home


def texts(home: Home) -> list[str]:
    return [entry.text for entry in home.agent("a").session("s").entries()]


def test_it_is_found_by_its_id_with_and_without_a_session(home: Home) -> None:
    assert [home.agent("a").get(str(n)).text for n in range(3)] == texts(home)
    assert home.agent("a").get("2", "s").text == "walnut 2"
    assert home.agent("a").history("2")[-1].text == "walnut 2"


def test_its_id_is_taken_for_another_entry(home: Home) -> None:
    with pytest.raises(EntryExistsError):
        home.agent("a").session("s").add("note", text="other", id="2")
    assert texts(home) == ["walnut 0", "walnut 1", "walnut 2"]


def test_it_is_changed_and_deleted_like_any_other(home: Home) -> None:
    session = home.agent("a").session("s")
    assert session.update("2", text="pecan").text == "pecan"
    assert texts(home) == ["walnut 0", "walnut 1", "pecan"]
    session.delete("2")
    with pytest.raises(EntryNotFoundError):
        home.agent("a").get("2")


def test_a_batch_of_others_meets_it_too(home: Home) -> None:
    session = home.agent("a").session("s")
    with pytest.raises(EntryExistsError):
        session.add_many([{"type": "event", "id": str(n), "text": f"pecan {n}"} for n in (3, 2)])
    session.add_many([{"type": "event", "id": str(n), "text": f"walnut {n}"} for n in (3, 2)])
    assert texts(home) == ["walnut 0", "walnut 1", "walnut 2", "walnut 3"]


def test_it_is_purged_with_all_its_bytes(home: Home) -> None:
    home.agent("a").purge("2")
    assert texts(home) == ["walnut 0", "walnut 1"]
    assert b"walnut 2" not in (home.root / "agents/a/memory/sessions/s.ndjson").read_bytes()
