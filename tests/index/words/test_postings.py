"""What is kept of the full-text table: who holds a word, how often, in texts of which length."""

import json

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.index.database import Database
from keepstone.index.words import postings, word_table
from keepstone.index.words.postings import Postings, numbers_of
from keepstone.index.words.word_table import numbers_in, state


def table(*texts: str) -> Database:
    """An index whose full-text table has these texts, from row 1 on."""
    database = Database(None)
    add(database, *texts)
    return database


def add(database: Database, *texts: str) -> None:
    """Add texts to an index, as entries that were flushed."""
    sql = (
        "INSERT INTO entry(eid, sid, number, id, ts, type, digest, head, record) "
        "SELECT n, 1, n, n, 0, 'note', n, '', ? FROM (SELECT coalesce(max(eid), 0) + 1 n FROM entry)"
    )
    for text in texts:
        database.execute(sql, (said(text),))
        database.execute("INSERT INTO words(rowid, text) VALUES((SELECT max(eid) FROM entry), ?)", (text,))
    database.execute("UPDATE meta SET value=(SELECT max(eid) FROM entry) WHERE key='flushed'")


def said(text: str) -> str:
    return json.dumps({"text": text})


def change(database: Database, eid: int, text: str | None) -> None:
    """Give an entry another text; None removes it."""
    word_table.take_out(database, eid)
    if text is None:
        database.execute("DELETE FROM entry WHERE eid=?", (eid,))
    else:
        database.execute("UPDATE entry SET record=?, digest=-digest WHERE eid=?", (said(text), eid))
        word_table.put_back(database, eid)


def followed(database: Database) -> Postings:
    held = Postings()
    held.follow(database, state(database))
    return held


def listed(posting: postings.Posting) -> dict[int, int]:
    return dict(zip(posting.eids.tolist(), posting.times.tolist(), strict=True))


def test_a_word_is_held_as_often_as_it_is_in_a_text() -> None:
    database = table("walnut oak walnut", "oak", "walnut")
    assert listed(followed(database).of(database, "walnut")) == {1: 2, 3: 1}
    assert listed(followed(database).of(database, "pecan")) == {}


def test_a_prefix_matches_every_entry_with_such_a_word() -> None:
    database = table("wall walnut", "oak", "walrus walnut walk")
    assert listed(followed(database).beginning(database, "wal")) == {1: 2, 3: 3}


@pytest.mark.parametrize("at_most", [0, 10])
def test_rows_that_came_since_are_added_to_what_is_kept(
    monkeypatch: pytest.MonkeyPatch, at_most: int
) -> None:
    monkeypatch.setattr(postings, "_FOLLOWED_AT_MOST", at_most)
    database = table("walnut", "oak")
    held = followed(database)
    held.of(database, "walnut")
    add(database, "running walnuts and walnut", "oak")
    held.follow(database, state(database))
    assert listed(held.of(database, "walnut")) == {1: 1, 3: 2}
    assert listed(held.of(database, "run")) == {3: 1}


@pytest.mark.parametrize("at_most", [0, 10])
def test_a_changed_text_is_held_by_its_new_words_only(monkeypatch: pytest.MonkeyPatch, at_most: int) -> None:
    monkeypatch.setattr(postings, "_FOLLOWED_AT_MOST", at_most)
    database = table("walnut", "oak walnut", "walnut")
    held = followed(database)
    held.of(database, "walnut")
    change(database, 2, "oak")
    change(database, 1, "pecan")
    change(database, 1, "walnut walnuts")
    held.follow(database, state(database))
    assert listed(held.of(database, "walnut")) == {1: 2, 3: 1}
    change(database, 1, None)
    held.follow(database, state(database))
    change(database, 2, "walnut")
    held.follow(database, state(database))
    assert listed(held.of(database, "walnut")) == {2: 1, 3: 1}
    assert listed(held.of(database, "pecan")) == {}


@pytest.mark.parametrize("text", ["pecan", None])
def test_words_that_a_change_does_not_concern_are_not_read_again(text: str | None) -> None:
    database = table("walnut", "oak", "oak")
    held = followed(database)
    oak = held.of(database, "oak")
    change(database, 1, text)
    held.follow(database, state(database))
    assert held.of(database, "oak") is oak


def test_the_length_of_a_changed_text_is_asked_again() -> None:
    database = table("walnut oak", "walnut")
    held = followed(database)
    eids = held.of(database, "walnut").eids
    held.learn_lengths(database, eids)
    change(database, 1, "walnut")
    held.follow(database, state(database))
    assert held.learn_lengths(database, eids)
    assert held.lengths.tolist() == [0, 1, 1]


def test_only_the_last_changes_are_listed() -> None:
    database = table("walnut")
    for number in range(4100):
        change(database, 1, f"walnut {number}")
    assert database.row("SELECT count(*), max(number) FROM changed") == (4096, 4100)


def test_what_was_not_used_for_longest_is_dropped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "MOST", 2)
    database = table("a", "b", "c")
    held = followed(database)
    a, b = held.of(database, "a"), held.of(database, "b")
    assert held.of(database, "a") is a
    held.of(database, "c")
    assert held.of(database, "a") is a
    assert held.of(database, "b") is not b


def test_lengths_are_asked_for_once() -> None:
    database = table("one two three", "w " * 300)
    held = followed(database)
    eids = held.of(database, "three").eids
    assert held.learn_lengths(database, eids)
    assert not held.learn_lengths(database, eids)
    assert held.lengths.tolist() == [0, 3, 0]


def test_a_table_with_words_of_unknown_rows_is_damaged() -> None:
    database = table("walnut", "walnut")
    database.execute("UPDATE meta SET value=1 WHERE key='flushed'")
    with pytest.raises(apsw.CorruptError, match="rows that are not there"):
        followed(database).of(database, "walnut")


@pytest.mark.parametrize("block", ["NULL", "7", "'text'"])
def test_totals_that_are_not_bytes_are_damage(block: str) -> None:
    database = table("walnut")
    database.connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    database.execute(f"UPDATE words_data SET block={block} WHERE id=1")  # noqa: S608  Damage of our own.
    with pytest.raises(apsw.CorruptError):
        state(database)


def test_totals_are_those_of_all_texts() -> None:
    assert state(table("one two", "", "w " * 300))[:2] == (3, 302)
    assert state(Database(None))[:2] == (0, 0)


@given(st.lists(st.integers(0, 1 << 40)))
def test_a_record_of_numbers_is_read_as_it_was_written(numbers: list[int]) -> None:
    assert numbers_in(b"".join(written(number) for number in numbers)) == numbers
    assert numbers_of(",".join(map(str, numbers))).tolist() == numbers


def written(number: int) -> bytes:
    """A number in the manner of SQLite."""
    sevens = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(seven | 0x80 for seven in sevens[:0:-1]), sevens[0]])
