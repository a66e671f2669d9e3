"""What the check of wording refuses."""

from __future__ import annotations

import pytest
from tests.scripts import script

wording = script("wording")


@pytest.mark.parametrize("path", ["docs/page.md", "src/module.py"])
@pytest.mark.parametrize(
    "phrase",
    [
        "words in the mean",
        "so many rows",
        "takes note of it",
        "built anew",
        "Whoever asks",
        "tell whether",
        "where the line stands",
        "as far as it is known",
        "that which was removed",
        "an index that has got rows",
        "the agent that was used last",
    ],
)
def test_phrases_to_decode_are_refused(path: str, phrase: str) -> None:
    assert len(list(wording.findings(path, f"# {phrase}\n"))) == 1


@pytest.mark.parametrize("first", ["What it holds.", "Of the rows.", "Which rows.", "Where they are."])
def test_docstrings_begin_with_a_noun_or_a_verb(first: str) -> None:
    module = f'"""{first}"""\n\nclass Row:\n    """{first}"""\n    size: int\n    """{first}"""\n'
    assert {line for line, _ in wording.findings("src/module.py", module)} == {1, 4, 6}


def test_tests_may_say_what_they_are_about() -> None:
    assert list(wording.findings("tests/test_it.py", '"""What it does."""\n')) == []


def test_a_finding_names_line_and_better_wording() -> None:
    text = 'def f():\n    """Do it.\n\n    It is made anew.\n    """\n'
    assert list(wording.findings("src/module.py", text)) == [(4, "'anew': write again")]


def test_names_of_tests_are_prose() -> None:
    assert list(wording.findings("tests/test_it.py", "def test_a_row_is_made_anew(): ...\n"))


@pytest.mark.parametrize(
    "text", ["they are told apart", "meaning", "a mean time", "it stands for a secret", "a stand-in"]
)
def test_other_words_pass(text: str) -> None:
    assert list(wording.findings("docs/page.md", text)) == []


def test_code_is_not_prose() -> None:
    assert list(wording.findings("src/module.py", "anew = meanwhile(whoever)\n")) == []
