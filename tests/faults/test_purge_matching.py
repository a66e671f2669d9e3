"""Purging by a text finds whatever still holds it: deleted, archived, said before, damaged, cut short."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from tests.faults.traces import left

import keepstone
from keepstone import Home, Purged

Form = Literal["NFC", "NFD"]
SECRET = "Hünter2-qzvx"  # noqa: S105  A word to look for.


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", durability="os", embedder="none") as home:
        session = home.agent("a").session("s")
        session.add_many(
            [
                {"type": "event", "id": "kept", "text": "other"},
                {"type": "event", "id": "kept too", "text": "hunter"},
            ]
        )
        yield home


def log_of(home: Home) -> Path:
    return home.root / "agents/a/memory/sessions/s.ndjson"


def purge(home: Home) -> list[str]:
    """Purge what holds the secret; the ids of it. Nothing may be left, and the others must be there."""
    home.agent("a").recall("hunter")
    assert home.agent("a").purge_matching(SECRET, dry_run=True)
    found = home.agent("a").purge_matching(SECRET.upper())
    assert left(home.root, SECRET) == set()
    assert [entry.id for entry in home.agent("a").session("s").entries() if entry.id.startswith("kept")] == [
        "kept",
        "kept too",
    ]
    return [entry_id for _, entry_id in found.entries]


@pytest.mark.parametrize(
    "item",
    [
        {"text": f"it is {SECRET}!"},
        {"data": {"deep": [{"deeper": SECRET}]}},
        {"data": {SECRET: 1}},
        {"text": "x", "tags": [SECRET]},
        {"text": "x", "summary": SECRET},
        {"text": "x", "type": SECRET},
    ],
)
def test_a_text_anywhere_in_an_entry_is_found(home: Home, item: dict[str, object]) -> None:
    home.agent("a").session("s").add_many([{"type": "note", "id": "it", **item}])
    assert purge(home) == ["it"]


def test_an_id_that_holds_the_text_is_found(home: Home) -> None:
    home.agent("a").session("s").add("note", text="x", id=f"of {SECRET}")
    assert purge(home) == [f"of {SECRET}"]


@pytest.mark.parametrize("compact", [True, False])
def test_deleted_and_earlier_versions_are_found_in_log_and_archive(home: Home, *, compact: bool) -> None:
    session = home.agent("a").session("s")
    session.add_many(
        [
            {"type": "event", "id": "deleted", "text": SECRET},
            {"type": "event", "id": "changed", "text": SECRET},
        ]
    )
    session.update("changed", text="harmless")
    session.delete("deleted")
    if compact:
        session.compact()
    assert purge(home) == ["changed", "deleted"]


def test_an_archive_without_its_log_is_found(home: Home) -> None:
    session = home.agent("a").session("t")
    session.add("note", text=SECRET, id="it", priority=0)
    session.archive_faded()
    log_of(home).with_name("t.ndjson").unlink()
    assert purge(home) == ["it"]


@pytest.mark.parametrize(
    "raw",
    [
        SECRET.encode() + b" is no line\n",
        b'{"text":"' + SECRET.encode() + b"\xff\n",
        json.dumps({"id": "x", "text": SECRET}).encode()[:-1] + b"\n",
        b'{"id":"torn","text":"' + SECRET.encode() + b'","batch":[1,3]}\n',
        b'{"id":"torn","text":"x","batch":[1,3]}\n{"id":"torn 2","text":"' + SECRET.encode(),
        b'{"text":"' + SECRET.encode() + b'"}\n{"text":"' + SECRET.encode() + b'"}',
    ],
    ids=["no line", "no UTF-8", "escaped", "torn", "torn in a line", "without an id"],
)
def test_damaged_hidden_and_nameless_lines_are_found(home: Home, raw: bytes) -> None:
    with log_of(home).open("ab") as log:
        log.write(raw)
    purge(home)


def test_a_purge_by_text_keeps_to_its_agent_and_session(home: Home) -> None:
    for slug, session in (("a", "s"), ("a", "t"), ("b", "s")):
        home.agent(slug).session(session).add("note", text=SECRET, id="it")
    assert home.agent("a").purge_matching(SECRET, "s") == Purged((("s", "it"),))
    assert left(home.root / "agents", SECRET) == {
        "a/memory/sessions/t.ndjson",
        "b/memory/sessions/s.ndjson",
    }


def test_a_session_whose_name_holds_the_text_goes_as_a_whole(home: Home) -> None:
    home.agent("a").session(f"about {SECRET}").add("note", text="x", id="it")
    found = home.agent("a").purge_matching(SECRET)
    assert found == Purged((), sessions=(f"about {SECRET}",))
    assert [info.id for info in home.agent("a").sessions()] == ["s"]
    assert left(home.root, SECRET) == set()


def test_files_that_hold_the_text_in_name_or_content_go_and_others_stay(home: Home) -> None:
    files = home.agent("a").files
    files.write(f"{SECRET}.md", "x")
    files.write("deep/er.md", f"first\nit is {SECRET.lower()}\n")
    files.write("z.md", "x")
    (folder,) = (path.parent for path in home.root.rglob("z.md"))
    (folder / "picture.png").write_bytes(b"\xff\x00" + SECRET.encode())
    found = home.agent("a").purge_matching(SECRET)
    assert found == Purged((), files=(f"{SECRET}.md", "deep/er.md", "picture.png"))
    assert files.list() == ["z.md"]
    assert left(home.root, SECRET) == set()


def test_a_purge_by_text_that_only_looks_takes_nothing(home: Home) -> None:
    home.agent("a").session(SECRET).add("note", text=SECRET, id="it")
    home.agent("a").files.write("plan.md", SECRET)
    found = home.agent("a").purge_matching(SECRET, dry_run=True)
    assert found == Purged(((SECRET, "it"),), (SECRET,), ("plan.md",))
    assert home.agent("a").purge_matching(SECRET) == found


def test_a_vector_is_not_text(home: Home) -> None:
    home.agent("a").session("s").add("note", text="x", embedding=[1.0, 0.0])
    assert not home.agent("a").purge_matching("AAAA")


def test_an_empty_text_is_refused(home: Home) -> None:
    with pytest.raises(ValueError, match="text"):
        home.agent("a").purge_matching("")


@pytest.mark.parametrize(("kept", "asked"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_the_other_normal_form_of_the_text_is_found(home: Home, kept: Form, asked: Form) -> None:
    agent, secret = home.agent("a"), unicodedata.normalize(kept, SECRET)
    agent.session("s").add("note", text=f"it is {secret}!", id="it")
    agent.session(f"of {secret}").add("note", text="x")
    agent.files.write(f"{secret}.md", "x")
    agent.files.write("plan.md", secret.upper())
    with log_of(home).open("a") as log:
        log.writelines([f"damaged {secret}\n", f"damaged {json.dumps(secret.lower())}\n"])
    found = agent.purge_matching(unicodedata.normalize(asked, SECRET))
    assert len(found.entries) == 3
    assert left(home.root, secret) == set()
    assert [entry.text for entry in agent.session("s").entries()] == ["other", "hunter"]


def test_a_letter_without_its_accent_is_not_found(home: Home) -> None:
    home.agent("a").session("s").add("note", text=unicodedata.normalize("NFC", SECRET), id="it")
    assert home.agent("a").purge_matching("Hun", dry_run=True).entries == (("s", "kept too"),)
