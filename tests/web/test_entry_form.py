"""The form of an entry, and the merge of what was typed with the changes of others."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nicegui import Client, ui
from tests.web.page import every, notices, on_a_page, opened, press, turn, within

from keepstone import Entry
from keepstone.model import Record
from keepstone.web.entry_form import EntryForm, ask_changed, names_in

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)


def entry(**line: Any) -> Entry:
    whole = {"id": "e", "ts": "2026-03-03T12:00:00Z", "type": "note"} | line
    return Entry("coder", "s", "e", NOW, whole["type"], whole.get("text", ""), whole.get("data", {}), whole)


def merged(base: dict[str, Any], keys: Record, now: dict[str, Any]) -> Record | None:
    """Return what is changed where no value was changed by both sides: nothing is asked."""
    return asyncio.run(ask_changed(entry(**base), keys, entry(**now)))


def asked(base: dict[str, Any], keys: Record, now: dict[str, Any], *answers: str) -> Record | None:
    """Return what is changed after these buttons of the dialogs were pressed."""
    found: list[Record | None] = []

    async def steps(page: Client) -> None:
        asking = asyncio.create_task(within(page, lambda: ask_changed(entry(**base), keys, entry(**now))))
        for answer in answers:
            await opened(page, asking)
            await press(page, answer)
        found.append(await asyncio.wait_for(asking, 20))

    on_a_page(steps)
    return found[0]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("auth, release", ["auth", "release"]),
        (" #auth ,#release,", ["auth", "release"]),
        ("two words", ["two words"]),
        (" , # ,", []),
        (None, []),
    ],
)
def test_names_are_between_commas_with_or_without_a_hash(words: str | None, names: list[str]) -> None:
    assert names_in(words) == names


def test_an_entry_that_nobody_else_changed_takes_all_keys() -> None:
    assert merged({"text": "one"}, {"text": "two"}, {"text": "one"}) == {"text": "two"}


def test_changes_of_different_keys_are_both_kept() -> None:
    base = {"text": "one", "tags": ["a"]}
    assert merged(base, {"text": "two"}, {"text": "one", "tags": ["a", "b"]}) == {"text": "two"}


def test_the_same_change_of_both_sides_asks_nothing_and_changes_nothing() -> None:
    assert merged({"text": "one"}, {"text": "two"}, {"text": "two"}) == {}


def test_values_of_a_payload_are_merged_one_by_one() -> None:
    base = {"data": {"decision": "OAuth", "votes": 3}}
    mine = {"data": {"decision": "Passkeys", "votes": 3}}
    theirs = {"data": {"decision": "OAuth", "votes": 4, "by": "Ada"}}
    assert merged(base, mine, theirs) == {"data": {"decision": "Passkeys", "votes": 4, "by": "Ada"}}


def test_a_value_that_was_taken_out_of_a_payload_stays_out() -> None:
    base = {"data": {"decision": "OAuth", "votes": 3}}
    found = merged(
        base, {"data": {"decision": "OAuth"}}, {"data": {"decision": "OAuth", "votes": 3, "by": "x"}}
    )
    assert found == {"data": {"decision": "OAuth", "by": "x"}}


def test_a_mark_that_was_taken_off_stays_off() -> None:
    found = merged({"text": "x", "priority": 0.5}, {"priority": None}, {"text": "y", "priority": 0.5})
    assert found == {"priority": None}


CONFLICT: tuple[dict[str, Any], Record, dict[str, Any]] = (
    {"text": "one", "tags": ["a"]},
    {"text": "mine", "tags": ["a", "b"]},
    {"text": "theirs", "tags": ["a"]},
)


@pytest.mark.parametrize(
    ("answer", "keys"),
    [
        ("Keep mine", {"text": "mine", "tags": ["a", "b"]}),
        ("Take theirs", {"tags": ["a", "b"]}),
        ("Go on editing", None),
    ],
)
def test_a_value_that_both_changed_is_the_readers_choice(answer: str, keys: Record | None) -> None:
    assert asked(*CONFLICT, answer) == keys


def test_tags_of_both_sides_are_merged_one_by_one() -> None:
    found = asked({"tags": ["a"]}, {"tags": ["a", "b"]}, {"tags": ["a", "c"]}, "Both", "Merge")
    assert found == {"tags": ["a", "b", "c"]}


def test_a_list_of_names_in_a_payload_is_merged_as_json() -> None:
    base, mine, theirs = ({"data": {"who": who}} for who in (["a"], ["a", "b"], ["a", "c"]))
    assert asked(base, mine, theirs, "Yours", "Merge") == {"data": {"who": ["a", "b"]}}


def test_each_value_that_both_changed_is_asked_about() -> None:
    base, mine, theirs = ({"data": {"a": f"a{at}", "b": f"b{at}"}} for at in range(3))
    found = asked(base, mine, theirs, "Keep mine", "Take theirs")
    assert found == {"data": {"a": "a1", "b": "b2"}}


@given(st.dictionaries(st.sampled_from("abc"), st.integers() | st.text()), st.data())
def test_a_change_of_one_side_alone_always_comes_through(base: dict[str, Any], data: st.DataObject) -> None:
    mine = data.draw(st.dictionaries(st.sampled_from("abc"), st.integers() | st.text()))
    found = merged({"data": base, "text": "x"}, {"data": mine}, {"data": base, "text": "y"})
    assert found is not None
    assert {"data": base, **found}["data"] == mine


def fill(page: Client, **values: Any) -> None:
    """Type values into the fields with these labels."""
    fields: list[Any] = [*every(page, ui.input), *every(page, ui.textarea), *every(page, ui.number)]
    for piece in fields:
        label = str(piece.props.get("label"))
        if label in values:
            piece.value = values.pop(label)
    assert values == {}


def saved(shown: Entry, *, with_marks: bool = True, **values: Any) -> Record | None:
    """Return the keys that the form saves after this was typed; None if it closes without saving."""
    found: list[Record] = []

    async def save(keys: Record) -> bool:
        found.append(keys)
        return True

    async def steps(page: Client) -> None:
        form = EntryForm(shown)
        asking = asyncio.create_task(
            within(page, lambda: form.ask("Edit", "Save", save, with_marks=with_marks))
        )
        await turn(page, ui.dialog)
        fill(page, **values)
        await press(page, "Save")
        await asyncio.wait_for(asking, 20)

    on_a_page(steps)
    return found[0] if found else None


def test_a_form_without_changes_saves_nothing() -> None:
    assert saved(entry(text="x", tags=["a"], priority=0.5, data={"votes": 3})) is None


def test_only_changed_keys_are_saved() -> None:
    made = entry(text="one", tags=["a"])
    assert saved(made, Text="two") == {"text": "two"}
    assert saved(made, Tags="a, #b", Priority=0.5) == {"tags": ["a", "b"], "priority": 0.5}
    assert saved(made, Tags="") == {"tags": None}


def test_a_value_of_the_payload_keeps_its_type() -> None:
    made = entry(data={"title": "3", "votes": 3, "list": [1]})
    assert saved(made, title="4", votes="4", list="[1, 2]") == {
        "data": {"title": "4", "votes": 4, "list": [1, 2]}
    }


def test_a_blank_type_leaves_the_type_as_it_is() -> None:
    assert saved(entry(text="x"), Type="  ") is None
    assert saved(entry(text="x"), Type=" fact ") == {"type": "fact"}


def test_a_form_without_marks_has_no_fields_for_them() -> None:
    assert saved(entry(text="x", tags=["a"]), with_marks=False, Text="y") == {"text": "y"}


def test_a_refused_value_keeps_the_form_open_with_its_text() -> None:
    async def steps(page: Client) -> None:
        async def save(_: Record) -> bool:
            raise AssertionError

        form = EntryForm(entry(data={"votes": 3}))
        asking = asyncio.create_task(within(page, lambda: form.ask("Edit", "Save", save, with_marks=True)))
        await turn(page, ui.dialog)
        fill(page, votes="three")
        await press(page, "Save")
        assert not asking.done()
        assert notices(page)[0].startswith("votes is not JSON")
        await press(page, "Cancel")
        await asyncio.wait_for(asking, 20)

    on_a_page(steps)


def test_the_payload_as_json_may_gain_and_lose_keys() -> None:
    found: list[Record] = []

    async def save(keys: Record) -> bool:
        found.append(keys)
        return True

    async def steps(page: Client) -> None:
        form = EntryForm(entry(data={"votes": 3, "by": "Ada"}))
        asking = asyncio.create_task(within(page, lambda: form.ask("Edit", "Save", save, with_marks=False)))
        await turn(page, ui.dialog)
        fill(page, votes="4")
        await press(page, "As JSON")
        [area] = [one for one in every(page, ui.textarea) if one.props.get("label") == "Payload as JSON"]
        assert json.loads(area.value) == {"votes": 4, "by": "Ada"}
        area.value = '{"votes": 4, "team": "web"}'
        await press(page, "Save")
        await asyncio.wait_for(asking, 20)

    on_a_page(steps)
    assert found == [{"data": {"votes": 4, "team": "web"}}]
