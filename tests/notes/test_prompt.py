import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.notes.bullets import Bullets
from keepstone.notes.prompt import MOST_MISSES, Source, fitting, prompt_of


def sources(project: str, user: str = "") -> list[Source]:
    return [
        Source("Project", "/p/AGENTS.md", Bullets(project.encode(), "Memories")),
        Source("User", "/u/memory.md", Bullets(user.encode())),
    ]


def tokens(text: str) -> int:
    return math.ceil(len(text.encode()) / 3)


def notes(*contents: str) -> str:
    return "## Memories\n\n" + "".join(f"- {content}\n" for content in contents)


def test_both_files_are_whole_while_they_fit() -> None:
    text = prompt_of(sources("# Rules\n\nBe kind.\n", "- tea"), 1000, None)
    assert text == (
        'Project notes, from "/p/AGENTS.md":\n```markdown\n# Rules\n\nBe kind.\n```\n\n'
        'User notes, from "/u/memory.md":\n```markdown\n- tea\n```\n'
    )


def test_without_a_budget_everything_is_in() -> None:
    assert prompt_of(sources(notes("x" * 10_000)), None, None).count("x") == 10_000


def test_files_without_text_give_an_empty_prompt() -> None:
    assert prompt_of(sources("", " \n"), None, None) == ""


def test_beyond_the_budget_the_last_notes_come_first() -> None:
    text = prompt_of(sources("prose\n" * 100 + notes(*"abcdefgh")), 50, None)
    assert "\n- g\n- h\n```\n" in text
    assert "prose" not in text
    assert re.search(r"\nLeft out \(budget 50 tokens\): \d of 8 notes, and all other text.\n\Z", text)


def test_beyond_the_budget_notes_with_words_of_the_query_come_first() -> None:
    project = notes("Deploy on Friday", *(f"filler {number}" for number in range(99)))
    text = prompt_of(sources(project), 60, "when do we deploy?")
    assert "- Deploy on Friday\n- filler" in text


def test_notes_of_both_files_share_the_budget() -> None:
    filler = ["x" * 40] * 50
    text = prompt_of(sources(notes(*filler, "ours"), "- mine\n"), 90, None)
    assert "- ours" in text
    assert "- mine" in text


@pytest.mark.parametrize("budget", [0, 1, 10, 20])
def test_a_budget_too_small_for_anything_gives_nothing(budget: int) -> None:
    assert prompt_of(sources(notes("a note of some words " * 20)), budget, None) == ""


TEXT = st.lists(
    st.sampled_from(["- a\n", "- `````\n", "- b\n  c\n", "é" * 30, "\n", "## Memories\n"]), max_size=30
)


@given(TEXT.map("".join), TEXT.map("".join), st.integers(0, 200), st.sampled_from([None, "", "a b", "*?"]))
def test_the_prompt_is_never_over_budget(project: str, user: str, budget: int, query: str | None) -> None:
    assert tokens(prompt_of(sources(project, user), budget, query)) <= budget


def test_a_selection_passes_over_notes_that_do_not_fit() -> None:
    assert list(fitting("abXcd", lambda note: None if note == "X" else note.upper())) == [
        ("a", "A"),
        ("b", "B"),
        ("c", "C"),
        ("d", "D"),
    ]


@pytest.mark.parametrize(("misses", "taken"), [(MOST_MISSES - 1, ["last"]), (MOST_MISSES, [])])
def test_a_selection_ends_after_many_notes_that_do_not_fit(misses: int, taken: list[str]) -> None:
    wanted = ["long"] * misses + ["last"]
    assert [note for note, _ in fitting(wanted, lambda note: None if note == "long" else note)] == taken


@given(TEXT.map("".join), st.sampled_from([None, 60, 100]))
def test_memory_text_cannot_close_its_fence(project: str, budget: int | None) -> None:
    lines = prompt_of(sources(project), budget, None).split("\n")
    fences = [line for line in lines if re.fullmatch(r"`{3,}(markdown)?", line)]
    if len(lines) > 2 and fences:
        opening = next(line for line in lines if line.endswith("`markdown")).removesuffix("markdown")
        assert [line for line in lines if line.startswith(opening)] == [opening + "markdown", opening]


def test_the_name_of_a_file_cannot_break_the_header() -> None:
    source = Source("Project", '/a\n"```\n/AGENTS.md', Bullets(b"text"))
    assert prompt_of([source], None, None).startswith(
        'Project notes, from "/a\\n\\"```\\n/AGENTS.md":\n```markdown\n'
    )
