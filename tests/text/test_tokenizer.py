import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.text.tokenizer import STOP_WORDS, is_unspaced, pairs, pieces, spread, stem, stems_of, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Use OAuth2, not basic_auth!", ["use", "oauth2", "not", "basic", "auth"]),
        ("東京tower京都", ["東京", "tower", "京都"]),
        ("Cafe\u0301", ["café"]),
        ("a\ud800b\0c", ["a", "b", "c"]),
        ("ひらがなカタカナー漢字", ["ひらがなカタカナー漢字"]),
        ("한국어 말", ["한국어", "말"]),
        ("ประชุม ๙โมง", ["ประชุม", "๙", "โมง"]),
        ("ພົບ, ជួប။ တွေ့", ["ພົບ", "ជួប", "တွေ့"]),
        ("", []),
    ],
)
def test_a_text_is_cut_into_words_in_lower_case(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@given(st.text(st.characters(max_codepoint=127)))
def test_words_of_an_ascii_text_are_those_among_other_letters(text: str) -> None:
    assert [*words_of(text), "é"] == words_of(f"{text} é")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("東京", True),
        ("말", True),
        ("あア", True),
        ("ชุม", True),
        ("ជួប", True),
        ("a", False),
        ("東a", False),
        ("ชุa", False),
        ("हिन्दी", False),
        ("", False),
    ],
)
def test_a_run_without_spaces_is_known_as_one(word: str, expected: bool) -> None:  # noqa: FBT001
    assert is_unspaced(word) is expected


def test_a_run_is_spread_into_pairs_and_its_last_character() -> None:
    assert pairs("東京都") == ["東京", "京都", "都"]
    assert spread("in東京 now").split() == ["in", "東京", "京", "now"]


@pytest.mark.parametrize("language", ["en", "de"])
def test_vowels_and_tones_stay_in_the_pairs_of_a_run(language: str) -> None:
    assert stems_of("ชุ่ม", language) == ["ชุ", "ุ่", "่ม", "ม"]
    assert stems_of("ទឹក တွေ့", language) == ["ទឹ", "ឹក", "ក", "တွ", "ွေ", "ေ့", "့"]


@pytest.mark.parametrize(
    "text",
    [
        "हिन्दी ज़रूर",
        "বৈঠক মঙ্গলবার",
        "ਪੰਜਾਬੀ ਬੱਚਾ",
        "ગુજરાતી",
        "ଓଡ଼ିଆ",
        "கூட்டம்",
        "తెలుగు",
        "ಕನ್ನಡ",
        "മലയാളം",
        "සිංහල",
        "བོད་སྐད་",
        "ދިވެހި",
    ],
)
def test_vowels_and_other_signs_stay_in_their_words(text: str) -> None:
    assert words_of(text) == unicodedata.normalize("NFC", text.replace("\u0f0b", " ")).split()
    assert stems_of(text) == words_of(text)


def test_a_joiner_of_letters_makes_no_other_word() -> None:
    assert words_of("ශ්\N{ZERO WIDTH JOINER}රී") == words_of("ශ්රී") == stems_of("ශ්\N{ZERO WIDTH JOINER}රී")


def test_words_with_signs_are_stemmed_whole() -> None:
    assert stem("लड़कियों", "hi") == stem("लड़की", "hi")


@pytest.mark.parametrize(("run", "found"), [("東京都", ["東京", "京都"]), ("ชุ่ม", ["ชุ่", "ุ่ม"])])
def test_letters_are_looked_for_three_in_a_row(run: str, found: list[str]) -> None:
    assert pieces(run) == found


@given(st.text(st.characters(max_codepoint=127)))
def test_a_text_without_such_characters_is_left_alone(text: str) -> None:
    assert spread(text) == text


@given(st.text())
def test_spreading_keeps_every_character_that_words_have(text: str) -> None:
    assert set("".join(words_of(text))) == set("".join(words_of(spread(text))))


@pytest.mark.parametrize(
    ("word", "other"), [("deployments", "deployment"), ("café", "cafe"), ("running", "runs")]
)
def test_forms_of_a_word_have_one_stem(word: str, other: str) -> None:
    assert stem(word) == stem(other)


def test_different_words_have_different_stems() -> None:
    assert len({stem(word) for word in ("walnut", "walrus", "größe", "東京")}) == 4


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("путешествиями", "путешествие"),
        ("ёлка", "ЕЛКИ"),
        ("мой", "мои\u0306"),
        ("θάλασσες", "ΘΑΛΑΣΣΑ"),
        ("Straße", "STRASSE"),
        ("Cafe\u0301s", "café"),
    ],
)
def test_forms_of_a_word_have_one_stem_in_other_scripts(word: str, other: str) -> None:
    assert stem(word) == stem(other)


@pytest.mark.parametrize(
    ("language", "word", "other"),
    [("de", "Häuser", "haus"), ("fr", "chevaux", "cheval"), ("es", "corriendo", "correr")],
)
def test_a_named_language_stems_latin_letters(language: str, word: str, other: str) -> None:
    assert stem(word, language) == stem(other, language)
    assert stem(word) != stem(other)
    assert stem("путешествиями", language) == stem("путешествие", language)


@given(st.text())
def test_stemming_takes_a_text_of_any_kind(text: str) -> None:
    assert isinstance(stem(text), str)


def test_stop_words_are_words_as_a_text_gives_them() -> None:
    assert all(words_of(word) == [word] for word in STOP_WORDS)


@pytest.mark.parametrize("language", ["en", "de"])
@given(text=st.text(alphabet="abcdeghinorstuyAZ ,.-_'09äöüßéñøčжияёΣσάς東京都の한국\n"))
def test_the_stems_of_a_text_are_those_of_its_words(language: str, text: str) -> None:
    parts = [part for word in words_of(text) for part in (pairs(word) if is_unspaced(word) else [word])]
    assert stems_of(text, language) == [stem(part, language) for part in parts]
