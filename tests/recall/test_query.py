from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.recall.query import (
    MOST_TERMS,
    Period,
    is_of_user,
    named,
    periods_of,
    speaker_of,
    subject_of,
    terms_of,
    without,
)


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("What did we decide about OAuth?", ["decide", "oauth"]),
        ("the who", ["the", "who"]),
        ("Apple apple APPLE", ["apple"]),
        ("don't", ["don", "t"]),
        ("東京 tower", ["東京", "tower"]),
        ("", []),
        (" ?! \0\ud800", []),
    ],
)
def test_the_words_that_say_something_are_looked_for(query: str, terms: list[str]) -> None:
    assert terms_of(query) == terms


def test_a_text_of_a_megabyte_is_cut_to_the_first_words() -> None:
    assert terms_of(" ".join(f"word{n}" for n in range(100_000))) == [f"word{n}" for n in range(MOST_TERMS)]


@given(st.text())
def test_terms_are_few_different_and_not_empty(query: str) -> None:
    terms = terms_of(query)
    assert len(terms) == len(set(terms)) <= MOST_TERMS
    assert all(terms)


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("Ann: Good morning", "Ann"),
        ("Ann Lee: we meet at 10: 30", "Ann Lee"),
        ("安: 早上好", "安"),
        ("user: Good morning", None),
        ("decision: Use OAuth", None),
        ("Good morning", None),
        ("12:30 is fine", None),
        (": nobody", None),
        ("We talked\nThen: nothing", None),
        (f"{'A' * 60}: a long name", "A" * 60),
        (f"{'A' * 61}: no name any more", None),
        ("", None),
    ],
)
def test_the_name_before_a_text_is_its_speaker(text: str, speaker: str | None) -> None:
    assert speaker_of(text) == speaker


@pytest.mark.parametrize(
    ("query", "speakers", "found"),
    [
        ("What does Ann do?", ["Ann", "Bob"], {"Ann"}),
        ("what does ann's sister do", ["Ann Lee"], {"Ann Lee"}),
        ("Did Ann meet Bob?", ["Ann", "Bob"], {"Ann", "Bob"}),
        ("What about the annex?", ["Ann"], set()),
        ("What will they do?", ["Will"], set()),
        ("What is plan B?", ["B. Stone"], set()),
        ("", ["Ann"], set()),
    ],
)
def test_a_speaker_is_named_by_any_part_of_the_name(query: str, speakers: list[str], found: set[str]) -> None:
    assert named(query, speakers) == found


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("What does Ann do on weekends?", "What does do on weekends?"),
        ("Is ann's or ANN\u2019s bike red?", "Is or bike red?"),
        ("Where is the annex?", "Where is the annex?"),
        ("Who is Ann?", "Who is Ann?"),
        ("", ""),
    ],
)
def test_names_go_where_something_telling_is_left(query: str, rest: str) -> None:
    assert without(query, ["Ann"]) == rest


def test_a_query_without_speakers_stays_as_it_is() -> None:
    assert without("  What  about\nAnn?", []) == "  What  about\nAnn?"


@given(st.text(), st.lists(st.text()))
def test_taking_names_from_a_query_never_makes_it_longer(query: str, speakers: list[str]) -> None:
    assert len(without(query, named(query, speakers))) <= len(query)


@pytest.mark.parametrize(
    ("query", "periods"),
    [
        ("What happened on 3 May 2023?", [Period(2023, 5, 3)]),
        ("the 3rd of May, 2023", [Period(2023, 5, 3)]),
        ("What about May 3rd, 2023?", [Period(2023, 5, 3)]),
        ("on 2023-05-03", [Period(2023, 5, 3)]),
        ("between 2023-05 and Oct. 2023", [Period(2023, 5), Period(2023, 10)]),
        ("on august 3", [Period(None, 8, 3)]),
        ("in March or in mid-July", [Period(None, 3), Period(None, 7)]),
        ("since 2021", [Period(2021)]),
        ("In May 2023 and in June", [Period(2023, 5), Period(None, 6)]),
        ("am 3. Mai 2023", [Period(2023, 5, 3)]),
        ("im März, im Oktober oder Ende Dezember", [Period(None, 3), Period(None, 10), Period(None, 12)]),
        ("on 19.01.2024, or am 3.5.2023.", [Period(2024, 1, 19), Period(2023, 5, 3)]),
        ("Januar 2023, seit Juli, im Jahr 2021", [Period(2023, 1), Period(None, 7), Period(2021)]),
    ],
)
def test_dates_are_read_as_people_write_them(query: str, periods: list[Period]) -> None:
    assert periods_of(query) == periods


@pytest.mark.parametrize(
    "query",
    [
        "May I march on?",
        "you may 5 times",
        "April said so",
        "Mai wohnt hier",
        "room 2001",
        "version 1.3.11.2024 or 3.11.2024.1 or 3.13.2024",
        "20 marchers",
        "12023-05-03",
        "",
        "\ud800",
    ],
)
def test_what_only_looks_like_a_date_is_none(query: str) -> None:
    assert periods_of(query) == []


def test_a_text_of_a_megabyte_is_not_read_through_for_dates() -> None:
    assert periods_of("x" * 1_000_000 + " in May 2023") == []


@given(st.text(alphabet="0123456789- ,.MayJuneinof", max_size=60), st.datetimes())
def test_any_date_that_was_read_can_be_compared(query: str, ts: datetime) -> None:
    assert all(period.holds(ts) in (True, False) for period in periods_of(query))


@pytest.mark.parametrize(
    ("period", "held"),
    [
        (Period(2023, 5, 3), True),
        (Period(2023, 5, 2), True),
        (Period(2023, 5, 4), False),
        (Period(2023, 5, 1), False),
        (Period(None, 5, 3), True),
        (Period(2022, 5, 3), False),
        (Period(2023, 5), True),
        (Period(2023, 4), False),
        (Period(None, 5), True),
        (Period(2023), True),
        (Period(2024), False),
        (Period(2023, 2, 31), False),
    ],
)
def test_a_period_holds_its_days_and_a_day_the_next_one(period: Period, *, held: bool) -> None:
    assert period.holds(datetime(2023, 5, 3, 12, tzinfo=UTC)) is held


def test_a_day_holds_the_next_one_across_a_new_year() -> None:
    assert Period(2023, 12, 31).holds(datetime(2024, 1, 1, tzinfo=UTC))


def test_the_first_day_there_is_has_none_before_it() -> None:
    assert not Period(2023, 5, 3).holds(datetime.min.replace(tzinfo=UTC))


@pytest.mark.parametrize("query", ["Which bicycle did I buy?", "what is MY bicycle", "I'd like tea"])
def test_a_query_in_the_first_person_is_about_who_asks(query: str) -> None:
    assert is_of_user(query)


@pytest.mark.parametrize(
    "query", ["Which is best?", "phase i of the plan", "Which army was it?", "", "we chose"]
)
def test_other_queries_are_not_about_who_asks(query: str) -> None:
    assert not is_of_user(query)


def test_the_subject_of_a_query_leaves_out_speakers_and_dates() -> None:
    assert subject_of("What did Ann paint on 3 May 2023?", ["Ann Lee"]) == ["paint"]


def test_a_query_of_nothing_but_a_name_and_a_date_is_about_the_name() -> None:
    assert subject_of("Ann in May 2023?", ["Ann"]) == ["ann"]


def test_a_query_of_nothing_but_a_date_keeps_it_as_its_subject() -> None:
    assert subject_of("in 2023?", ["Ann"]) == ["2023"]
