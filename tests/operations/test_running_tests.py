"""The result of each test of a home, and the reason where it fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Home
from keepstone.operations import running_tests
from keepstone.operations.running_tests import expect, forget, has_tests, restore, run_tests
from keepstone.store.memory_tests import test_of as line_as_test


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        agent = home.agent("default")
        agent.add("We use pnpm as our package manager", id="pnpm")
        agent.add("The office is in Bern", id="office", session="other")
        yield home


def reason(home: Home, ask: str = "Which package manager do we use?", **keys: Any) -> str:
    test = line_as_test({"id": "t", "ask": ask, **keys})
    (result,) = run_tests(home, [test])
    assert result.test == test
    return result.reason


@pytest.mark.parametrize("wanted", ["pnpm", "PACKAGE Manager"])
def test_an_id_or_a_part_of_a_text_is_expected(home: Home, wanted: str) -> None:
    assert reason(home, expect=[wanted]) == ""


def test_an_id_goes_before_texts_that_contain_it(home: Home) -> None:
    home.agent("default").add("Which package manager is it: q", id="text")
    home.agent("default").add("A package manager to use is cargo", id="q")
    assert " is q, relevance" in reason(home, never=["q"])
    assert " is text, relevance" in reason(home, never=["it: q"])


def test_what_must_not_be_found_is_named_with_its_rank(home: Home) -> None:
    assert reason(home, never=["npm"]).startswith("'npm' must not be found, but #1 is pnpm, relevance ")
    assert reason(home, never=["yarn"]) == ""


def test_nothing_relevant_is_nothing(home: Home) -> None:
    assert reason(home, "Who won the cup?", nothing=True) == ""
    assert reason(home, nothing=True).startswith("nothing should be relevant, but #1 is pnpm")


def test_an_unknown_id_is_named_with_the_hits(home: Home) -> None:
    found = reason(home, expect=["gone"])
    assert found.startswith("no entry has the id 'gone', and no hit contains it: the hits are #1 pnpm")


def test_without_hits_a_reason_says_so(home: Home) -> None:
    assert reason(home, "xyzzy", expect=["gone"]).endswith("no hit contains it: there are no hits")


def test_an_entry_behind_the_limit_is_named(home: Home) -> None:
    home.agent("default").add("A package manager installs packages that we use", id="more")
    found = {reason(home, expect=[wanted], limit=1) for wanted in ("pnpm", "more")}
    assert any("is not among the first 1 hits: the hits are #1" in one for one in found)


def test_an_id_of_several_sessions_is_named(home: Home) -> None:
    for session in ("x", "y"):
        home.agent("default").add("Tulips", id="twice", session=session)
    assert reason(home, expect=["twice"]).startswith("'twice' is in several sessions and is not among")


def test_a_superseded_entry_names_its_successor(home: Home) -> None:
    home.agent("default").supersede("pnpm", {"id": "bun", "text": "We use bun as our package manager"})
    assert reason(home, expect=["pnpm"]) == "'pnpm' is superseded by 'bun': expect that one"


def test_an_entry_that_does_not_hold_any_more_says_so(home: Home) -> None:
    home.agent("default").add("Tulips were in bloom", id="past", valid_to="2020-01-01")
    assert reason(home, expect=["past"]) == "'past' is not valid now: expect another one"


def test_a_test_of_the_past_asks_the_memory_of_then(home: Home) -> None:
    home.agent("default").add("We used npm as our package manager", id="npm", valid_to="2020-01-01")
    assert reason(home, expect=["pnpm"], as_of="2019-01-01") != ""


def test_all_failures_of_one_test_are_said(home: Home) -> None:
    found = reason(home, expect=["gone", "lost"], never=["pnpm"])
    said = ("'pnpm' must not be found", "no entry has the id 'gone'", "no entry has the id 'lost'")
    assert all(part in found for part in said)


def test_an_expectation_is_kept_forgotten_and_restored(home: Home) -> None:
    test = expect(running_tests.tests_file(home), "default", "Which package manager?", expect=["pnpm"])
    assert running_tests.tests_of(home) == [test]
    forget(home, test)
    assert running_tests.tests_of(home) == []
    restore(home, test)
    assert running_tests.tests_of(home) == [test]


def test_a_home_in_a_folder_has_a_file_of_tests(home: Home) -> None:
    assert has_tests(home)
    assert running_tests.tests_file(home) == home.root / "tests.ndjson"
