"""Running the tests of a home: each test runs a recall and reports wrong or missing hits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from keepstone.agent import Agent
from keepstone.errors import AmbiguousIdError, EntryNotFoundError
from keepstone.filesystem.layout import TESTS
from keepstone.home import Home
from keepstone.log.arguments import new_id
from keepstone.model import SUPERSEDES, Hit
from keepstone.recall.relevance import worth_telling
from keepstone.store.memory_tests import MemoryTest, add_test, read_tests, remove_test, test_of
from keepstone.store.opening import is_database


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of a test; the reason is empty if it passed."""

    __test__: ClassVar[bool] = False  # Not a test of pytest.

    test: MemoryTest
    reason: str


def tests_file(home: Home) -> Path:
    """Return the file of a home's tests.

    Raises:
        ValueError: The home is in a database.
    """
    if not has_tests(home):
        raise ValueError("a home in a database has no tests.ndjson: name a file with --file")
    return home.root / TESTS


def has_tests(home: Home) -> bool:
    """Return whether a home can have tests: one in a database has no file for them."""
    return not is_database(home.root)


def tests_of(home: Home) -> list[MemoryTest]:
    """Return the tests of a home; an empty list for a home in a database."""
    return read_tests(tests_file(home)) if has_tests(home) else []


def expect(file: Path, agent: str, ask: str, **keys: object) -> MemoryTest:
    """Add a test to a file: the hits that a question must, or must not, have; ``keys`` are for its line."""
    test = test_of({"id": new_id(), "agent": agent, "ask": ask, "expect": [], "never": [], **keys})
    add_test(file.parent, test, file.name)
    return test


def forget(home: Home, test: MemoryTest) -> None:
    """Remove a test from a home."""
    remove_test(tests_file(home).parent, test.id)


def restore(home: Home, test: MemoryTest) -> None:
    """Add a removed test again."""
    add_test(tests_file(home).parent, test)


def run_tests(home: Home, tests: Sequence[MemoryTest]) -> list[TestResult]:
    """Return the result of each test. Nothing is written."""
    return [TestResult(test, "; ".join(_failures(home.agent(test.agent), test))) for test in tests]


def _failures(agent: Agent, test: MemoryTest) -> list[str]:
    hits = agent.recall(test.ask, limit=test.limit, as_of=test.as_of)
    failures = [hit for wanted in test.never if (hit := _failure_of_never(wanted, hits)) is not None]
    if test.nothing and (relevant := worth_telling(hits)):
        failures.append(f"nothing should be relevant, but {_shown(hits, relevant[0])}")
    missing = [wanted for wanted in test.expect if not _matching(wanted, hits)]
    return [*failures, *(_missing(agent, wanted, hits) for wanted in missing)]


def _failure_of_never(wanted: str, hits: Sequence[Hit]) -> str | None:
    matching = _matching(wanted, hits)
    return f"{wanted!r:.80} must not be found, but {_shown(hits, matching[0])}" if matching else None


def _matching(wanted: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits with an id; if there are none, the hits whose text contains it, ignoring case."""
    by_id = [hit for hit in hits if hit.entry.id == wanted]
    # Without a hit of this id, treat it as a text: a test may give either, and its line does not say which.
    return by_id or [hit for hit in hits if wanted.casefold() in hit.text.casefold()]


def _missing(agent: Agent, wanted: str, hits: Sequence[Hit]) -> str:
    among = "there are no hits"
    if hits:
        shown = ", ".join(f"#{rank} {hit.entry.id:.80}" for rank, hit in enumerate(hits, 1))
        among = f"the hits are {shown} ({_shown(hits, hits[0])})"
    # The reason shows what to change: the memory, or a test that expects a replaced entry.
    try:
        entry = agent.get(wanted)
    except AmbiguousIdError:
        return f"{wanted!r:.80} is in several sessions and is not among the hits: {among}"
    except EntryNotFoundError:
        return f"no entry has the id {wanted!r:.80}, and no hit contains it: {among}"
    if not agent.holds(entry):
        newer = [
            candidate.id for candidate in agent.related(wanted, SUPERSEDES) if wanted in candidate.supersedes
        ]
        if newer:
            return f"{wanted!r:.80} is superseded by {newer[0]!r:.80}: expect that one"
        return f"{wanted!r:.80} is not valid now: expect another one"
    return f"{wanted!r:.80} is not among the first {len(hits)} hits: {among}"


def _shown(hits: Sequence[Hit], hit: Hit) -> str:
    rank = next(place for place, other in enumerate(hits, 1) if other is hit)
    return f"#{rank} is {hit.entry.id:.80}, relevance {hit.relevance:.2f}, {hit.why}"
