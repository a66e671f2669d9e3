"""The dialog on a text that changed while it was edited."""

from __future__ import annotations

import asyncio

import pytest
from nicegui import Client, ui
from tests.web.page import on_a_page, opened, press, turn, within, words_of

from keepstone.web import conflict
from keepstone.web.conflict import Conflict, ask_deleted
from keepstone.web.diff import three_way


def between(base: str, mine: str, theirs: str) -> Conflict:
    return Conflict(three_way(base, mine, theirs))


def test_changes_of_different_lines_are_merged_without_a_choice() -> None:
    made = between("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n")
    assert (made.conflicts, made.merged) == ([], "A\nb\nC\n")


@pytest.mark.parametrize(("choice", "text"), [("mine", "x\n"), ("theirs", "y\n"), ("both", "x\ny\n")])
def test_a_conflict_is_merged_as_chosen(choice: str, text: str) -> None:
    made = between("a\n", "x\n", "y\n")
    made.choices = dict.fromkeys(made.conflicts, choice)
    assert made.merged == text


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        (
            "A\nb\nc\n",
            "a\nb\nC\n",
            "You made 1 change; 1 change came from elsewhere. They do not touch each other.",
        ),
        (
            "A\nb\nc\n",
            "X\nb\nc\n",
            "You made 1 change; 1 change came from elsewhere. 1 conflict: choose what to keep.",
        ),
        (
            "A\nb\nc\n",
            "A\nb\nc\n",
            "You made 1 change; 1 change came from elsewhere. They do not touch each other.",
        ),
        (
            "A\nb\nC\n",
            "a\nb\nc\n",
            "You made 2 changes; 0 changes came from elsewhere. They do not touch each other.",
        ),
    ],
)
def test_the_summary_counts_the_changes_of_each_side(mine: str, theirs: str, words: str) -> None:
    assert between("a\nb\nc\n", mine, theirs).summary() == words


def asked(base: str, mine: str, theirs: str, *answers: str) -> tuple[str, str] | None:
    """Return the answer and the text after these buttons were pressed."""
    found: list[tuple[str, str] | None] = []

    async def steps(page: Client) -> None:
        asking = asyncio.create_task(within(page, lambda: conflict.ask(base, mine, theirs)))
        await opened(page, asking)
        for answer in answers:
            await press(page, answer)
        found.append(await asyncio.wait_for(asking, 20))

    on_a_page(steps)
    return found[0]


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        (["Keep mine"], ("mine", "x\n")),
        (["Take theirs"], ("theirs", "y\n")),
        (["Go on editing"], None),
        (["Both", "Merge"], ("merged", "x\ny\n")),
        (["Both", "Theirs", "Merge"], ("merged", "y\n")),
    ],
)
def test_the_answer_comes_with_its_text(answers: list[str], found: tuple[str, str] | None) -> None:
    assert asked("a\n", "x\n", "y\n", *answers) == found


def test_merging_waits_until_each_conflict_is_chosen() -> None:
    async def steps(page: Client) -> None:
        made = between("a\nb\nc\n", "1\nb\n3\n", "4\nb\n6\n")
        asking = asyncio.create_task(within(page, made.ask))
        await opened(page, asking)
        assert (made.merge.text, made.merge.props["disabled"]) == ("Merge: 2 conflicts left", True)
        for name in ("Conflict 1", "Conflict 2"):
            assert name in words_of(page)
        asking.cancel()

    on_a_page(steps)


def test_texts_with_too_many_changes_are_not_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflict, "_MOST_CHANGES", 0)

    async def steps(page: Client) -> None:
        asking = asyncio.create_task(within(page, between("a\n", "x\n", "y\n").ask))
        await turn(page, ui.dialog)
        words = words_of(page)
        assert "There are too many changes to show and merge them here." in words
        assert [name for name in words if name in {"Merge", "Keep mine", "Take theirs"}] == [
            "Take theirs",
            "Keep mine",
        ]
        asking.cancel()

    on_a_page(steps)


@pytest.mark.parametrize(
    ("answer", "found"),
    [("Keep mine", ("mine", "text")), ("Leave it deleted", ("theirs", "")), ("Go on editing", None)],
)
def test_a_deleted_text_is_written_again_only_if_chosen(answer: str, found: tuple[str, str] | None) -> None:
    answers: list[tuple[str, str] | None] = []

    async def steps(page: Client) -> None:
        asking = asyncio.create_task(within(page, lambda: ask_deleted("text")))
        await turn(page, ui.dialog)
        await press(page, answer)
        answers.append(await asyncio.wait_for(asking, 20))

    on_a_page(steps)
    assert answers == [found]
