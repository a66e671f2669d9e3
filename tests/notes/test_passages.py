import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.notes import passages as notes_passages
from keepstone.notes.bullets import Bullets
from keepstone.notes.passages import Passages
from keepstone.text.tokenizer import stems_of


def passages(text: str, section: str | None = None) -> Passages:
    return Passages(Bullets(text.encode(), section))


def test_notes_and_paragraphs_are_passages_in_their_order() -> None:
    found = passages("One.\nTwo.\n\n\nThree.\n\n## Memories\n\n- a\n- b\n  c\n\nFour.\n", "Memories")
    assert [(one.text, one.note is not None) for one in found] == [
        ("One.\nTwo.", False),
        ("Three.", False),
        ("- a", True),
        ("- b\n  c", True),
        ("Four.", False),
    ]
    assert [one.number for one in found] == [0, 1, 2, 3, 4]


def test_a_heading_goes_with_the_paragraph_below_it() -> None:
    assert [one.text for one in passages("# A\n\n## B\n\ntext\n\nmore\n\n# C\n")] == ["## B\n\ntext", "more"]


def test_an_empty_file_has_no_passages() -> None:
    assert list(passages(" \n\n\t\n")) == []


@pytest.mark.parametrize("query", ["deploys", "When did we deploy?", "DEPLOYING"])
def test_passages_are_found_by_any_form_of_their_words(query: str) -> None:
    assert [one.text for one in passages("- milk\n- We deploy on Friday\n").about(query)] == [
        "- We deploy on Friday"
    ]


def test_a_first_question_stems_each_passage_once_and_not_each_word(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def told(text: str) -> list[str]:
        called.append(text)
        return stems_of(text)

    monkeypatch.setattr(notes_passages, "stems_of", told)
    bullets = "".join(f"- {' '.join(f'word{number}x{n}' for n in range(200))}\n" for number in range(20))
    assert len(passages(bullets).about("where is word7x7?")) == 1
    assert len(called) <= 20 + 4


def test_a_rare_word_counts_for_more_than_a_common_one() -> None:
    found = passages("- oil the door\n" + "- a wide door\n" * 9).about("oil door")
    assert found[0].text == "- oil the door"


def test_of_equal_passages_the_last_comes_first() -> None:
    assert [one.number for one in passages("- tea\n- milk\n- tea too\n").about("tea")] == [2, 0]


def test_parts_of_east_asian_runs_are_found() -> None:
    assert [one.number for one in passages("- 私は東京都に住む\n- 京都\n").about("東京")] == [0]


@pytest.mark.parametrize("query", [None, "", "?!", "walnut"])
def test_a_query_without_a_word_of_the_file_finds_nothing(query: str | None) -> None:
    assert passages("- milk\n").about(query) == []


def test_a_query_of_common_words_only_still_finds_them() -> None:
    assert len(passages("- to be or not\n- milk\n").about("to be")) == 1


@given(st.text("ab-# \n`\t", max_size=80))
def test_every_word_of_a_file_is_in_a_passage_or_a_heading(text: str) -> None:
    found = "\n".join(one.text for one in passages(text))
    lines = [line for line in text.split("\n") if "#" not in line and "`" not in line]
    assert all(word in found for line in lines for word in line.replace("-", " ").split())


def test_of_many_passages_with_equal_scores_the_last_ones_follow_the_better() -> None:
    found = passages("- a red oak\n" * 3 + "- an oak\n" * 2000).about("red oak")
    numbers = [one.number for one in found]
    assert numbers == [2, 1, 0, *range(2002, 2002 - 497, -1)]
