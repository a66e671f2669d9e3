"""The documents that the command prints and the server answers with, as docs/json.md has them."""

import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.context.block import Context, ContextSource, Item, LeftOut, Part
from keepstone.log.line import payload_of
from keepstone.model import BackupInfo, Entry, Excerpt, Finding, Hit, Hits, Purged, SessionInfo, Version, Why
from keepstone.notes.importing import Offer
from keepstone.notes.notes import MemoryEntry, SaveResult
from keepstone.operations import documents
from keepstone.operations.documents import entry_document, record_document, version_document

THEN = datetime(2026, 1, 11, 14, 31, tzinfo=UTC)
HEAD = {"id": "one", "ts": "2026-01-11T14:31:00.000000Z", "type": "note"}
OURS = {"agent": "coder", "session": "main"}
KEYS = st.sampled_from(["agent", "session", "written", "text", "by", "id", "type", "data", "tags"])
VALUES = st.none() | st.integers() | st.text() | st.dictionaries(KEYS, st.integers(), max_size=2)


def entry(**line: Any) -> Entry:
    whole = HEAD | line
    return Entry("coder", "main", "one", THEN, "note", "", {}, whole)


def version(**line: Any) -> Version:
    return Version("coder", "main", "one", THEN, "note", "", {}, HEAD | line, THEN)


def test_an_entry_is_its_log_line_with_its_agent_and_session() -> None:
    document = entry_document(entry(text="walnut", tags=["a"], own=None))
    assert document == {**OURS, **HEAD, "text": "walnut", "tags": ["a"], "own": None}
    assert list(document)[:2] == ["agent", "session"]


@pytest.mark.parametrize("key", ["agent", "session"])
def test_a_flat_payload_that_names_an_agent_or_a_session_goes_under_data(key: str) -> None:
    document = entry_document(entry(text="walnut", tags=["a"], **{key: "its own"}))
    assert document == {**OURS, **HEAD, "tags": ["a"], "data": {"text": "walnut", key: "its own"}}


def test_the_envelope_stays_where_a_payload_under_data_has_keys_of_the_same_names() -> None:
    line = HEAD | {"data": {"id": "x", "type": "y", "tags": 1}, "tags": ["a"], "agent": "other"}
    assert record_document("coder", "main", line) == {
        **OURS, **HEAD, "tags": ["a"], "data": {"id": "x", "type": "y", "tags": 1}
    }  # fmt: skip


@given(st.dictionaries(KEYS, VALUES))
def test_every_entry_has_its_envelope_its_place_and_its_whole_payload(line: dict[str, Any]) -> None:
    line |= HEAD
    document = record_document("coder", "main", line)
    assert {**OURS, **HEAD}.items() <= document.items()
    assert payload_of({key: value for key, value in document.items() if key not in OURS}) == payload_of(line)


def test_the_line_of_an_entry_is_not_changed_by_its_document() -> None:
    line = HEAD | {"text": "walnut"}
    record_document("coder", "main", line)["tags"] = ["a"]
    assert line == HEAD | {"text": "walnut"}


def test_a_version_says_when_it_was_written_and_whether_it_is_a_deletion() -> None:
    written = {"written": "2026-01-11T14:31:00.000000Z", "deleted": False}
    assert version_document(version(text="walnut")) == {**OURS, **HEAD, "text": "walnut", **written}
    assert version_document(version(deleted=True)) == {**OURS, **HEAD, **written, "deleted": True}


def test_a_flat_payload_that_says_when_it_was_written_is_not_covered_by_the_versions_own_time() -> None:
    document = version_document(version(written="in May", text="walnut"))
    assert document["written"] == "2026-01-11T14:31:00.000000Z"
    assert document["data"] == {"written": "in May", "text": "walnut"}


def test_a_hit_carries_its_neighbours_and_why_it_was_found() -> None:
    why = Why({"words": 1}, ("oauth",), {"words": 0.5}, 0.25, ("speaker: Ada",))
    document = documents.hit_document(Hit(entry(), 0.5, why, (entry(text="before"),), relevance=0.7))
    assert (document["score"], document["relevance"]) == (0.5, 0.7)
    assert document["why"] == {
        "text": str(why),
        "ranks": {"words": 1}, "words": ["oauth"], "parts": {"words": 0.5}, "cosine": 0.25,
        "boosts": ["speaker: Ada"],
    }  # fmt: skip
    assert document["neighbours"] == [entry_document(entry(text="before"))]


def test_a_hit_of_a_file_has_a_path_and_no_entry() -> None:
    excerpt = Excerpt("file", "plan.md", 3, "walnut")
    document = documents.hit_document(Hit(cast("Entry", None), 0.5, Why({}), excerpt=excerpt))
    shown = {name: document[name] for name in ("kind", "entry", "path", "line", "text")}
    assert shown == {"kind": "file", "entry": None, "path": "plan.md", "line": 3, "text": "walnut"}


def test_a_recall_says_how_its_answer_came_about() -> None:
    hits = Hits([], embedder="minilm", reason="installed", pending=2, stale=True, took_ms=1.5)
    assert documents.hits_document(hits) == {
        "hits": [], "nothing_relevant": True, "lexical_only": False, "embedder": "minilm",
        "reason": "installed", "pending": 2, "stale": True, "skipped": [], "took_ms": 1.5,
    }  # fmt: skip


def test_a_context_names_what_is_in_it_and_what_was_left_out() -> None:
    part = Part("recalled", "walnut", (entry(),), 3, (Item("main/one", 3, "shortened"),))
    left = LeftOut("newest", "main/two", "no room", 4)
    source = ContextSource("1", "main", "one")
    assert documents.context_document(Context("walnut", 3, (part,), 6, (left,), (source,))) == {
        "text": "walnut", "tokens": 3, "stable": 6,
        "parts": [{
            "kind": "recalled", "text": "walnut", "tokens": 3, "entries": [{**OURS, **HEAD}],
            "items": [{"source": "main/one", "tokens": 3, "remark": "shortened"}],
        }],
        "left_out": [{"kind": "newest", "source": "main/two", "reason": "no room", "count": 4}],
            "sources": [{"ref": "1", "session": "main", "id": "one"}],
    }  # fmt: skip


def test_a_session_is_listed_with_its_time_in_utc() -> None:
    assert documents.session_document(SessionInfo("main", THEN, 7)) == {
        "id": "main", "modified": "2026-01-11T14:31:00.000000Z", "size": 7
    }  # fmt: skip


def test_a_backup_names_its_folder_as_text_and_what_is_wrong_with_it() -> None:
    finding = Finding("error", "coder", "torn", "mend it", "a line")
    document = documents.backup_document(BackupInfo(Path("copy"), 1, 2, 3, 4, 5, (finding,)))
    assert document == {
        "folder": "copy", "agents": 1, "sessions": 2, "entries": 3, "files": 4, "size": 5,
        "findings": [{
            "level": "error", "subject": "coder", "message": "torn", "cost": "a line", "remedy": "mend it"
        }],
    }  # fmt: skip


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_a_dry_run_found_is_not_called_purged(*, dry_run: bool) -> None:
    found = Purged((("main", "one"),), ("old",), ("a.md",))
    assert documents.purged_document(found, dry_run=dry_run) == {
        "purged": not dry_run, "entries": [{"session": "main", "id": "one"}], "sessions": ["old"],
        "files": ["a.md"],
    }  # fmt: skip


def test_a_saved_note_names_its_twin_or_null() -> None:
    note, twin = MemoryEntry("Use pnpm", "Project", "/p", 3), MemoryEntry("use pnpm", "User", "/u", 1)
    shown = {"content": "Use pnpm", "type": "Project", "source": "/p", "line": 3}
    other = {"content": "use pnpm", "type": "User", "source": "/u", "line": 1}
    assert documents.saved_document(SaveResult(note, saved=True, duplicate_of=None)) == {
        "saved": True, "note": shown, "duplicate_of": None
    }  # fmt: skip
    assert documents.saved_document(SaveResult(note, saved=True, duplicate_of=twin))["duplicate_of"] == other


def test_an_offer_says_where_the_same_is_said_already() -> None:
    assert documents.offer_document(Offer("Be brief", "/c", 2, "AGENTS.md:3")) == {
        "content": "Be brief", "source": "/c", "line": 2, "duplicate_of": "AGENTS.md:3"
    }  # fmt: skip


OF_USER, OF_PROJECT = (
    MemoryEntry("Tabs", "User", "/me.md", 4),
    MemoryEntry("Tabs", "Project", "/AGENTS.md", 2),
)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (SaveResult(OF_USER, saved=True, duplicate_of=None), "Saved as a User note: /me.md:4"),
        (
            SaveResult(OF_USER, saved=True, duplicate_of=OF_PROJECT),
            "Saved as a User note: /me.md:4. The Project notes say the same: /AGENTS.md:2",
        ),
        (SaveResult(OF_USER, saved=False, duplicate_of=OF_USER), "Not saved: /me.md:4 already says “Tabs”"),
    ],
)
def test_people_read_where_a_note_was_saved(result: SaveResult, words: str) -> None:
    assert documents.saved_words(result) == words


@given(st.text())
def test_nothing_in_a_path_moves_the_cursor(path: str) -> None:
    entry = MemoryEntry("Tabs", "User", path, 4)
    words = documents.saved_words(SaveResult(entry, saved=True, duplicate_of=entry))
    assert not any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in words)
