"""Whatever moment a process is killed at, what it acknowledged is there and the next one just goes on."""

import random
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.faults.killing import Message, heard, kill, killed_before, start, work
from tests.faults.operations import AGENT, KINDS, Inventor, Model, Operation, check, do

import keepstone

MOST, LONGEST = 30, 0.01
"""Limits of lines and of further seconds before a process is killed."""

ROUNDS_A_HOME = 20
"""Deaths after which a home has a little of everything; more would only take longer to look at."""


def settled(model: Model, messages: list[Message]) -> tuple[Model, ...]:
    """What a home may hold after a process said this: the last operation is done, or may be."""
    told = iter(messages)
    for operation in told:
        if isinstance(operation, Operation):
            if next(told, "") != "done":
                return model, model.after(operation)
            model = model.after(operation)
    return (model,)


@pytest.mark.timeout(600)
def test_nothing_acknowledged_is_lost_whenever_a_writer_is_killed(tmp_path: Path, rounds: int) -> None:
    chance, operations = random.Random(6), 0
    for number in range(rounds):
        if number % ROUNDS_A_HOME == 0:
            home, model = tmp_path / f"home{number}", Model()
            home.mkdir()  # The notes of a project need its folder.
        process, reading = start(work, home, 1000 + number, model)
        messages = [reading.recv() for _ in range(chance.randint(1, MOST))]
        time.sleep(chance.uniform(0, LONGEST))
        kill(process)
        messages += heard(reading)
        operations += messages.count("done")
        model = check(home, *settled(model, messages))
    assert operations > rounds


FILLING = [
    "write",
    "note",
    "note",
    *["add", "add_many", "put", "patch", "delete", "add", "compact", "put", "supersede"] * 2,
]


@pytest.fixture
def filled(tmp_path: Path) -> tuple[Path, Model]:
    """A home with a little of everything, an archive too."""
    model, inventor = Model(), Inventor(1)
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        for kind in FILLING:
            operation = inventor.surely(kind, model)
            do(home, operation)
            model = model.after(operation)
    return tmp_path / "home", model


def deaths(home: Path, operation: Operation, numbers: Iterable[int]) -> Iterator[Path]:
    """Copies of a home in which a process died in an operation, before its calls of these numbers."""
    for number in numbers:
        copy = home.with_name(f"copy{number}")
        shutil.copytree(home, copy)
        if not killed_before(copy, operation, number):
            return
        yield copy
        shutil.rmtree(copy)


@pytest.mark.parametrize("kind", KINDS)
def test_an_operation_killed_before_any_call_is_done_or_not(
    filled: tuple[Path, Model],
    kind: str,
    thorough: bool,  # noqa: FBT001
) -> None:
    home, model = filled
    operation, later = Inventor(2).surely(kind, model), Operation("add", "s0", ("later",), ("aftertheflood",))
    numbers = range(1, 100) if thorough else sorted(random.Random(kind).sample(range(1, 13), 2))
    for copy in deaths(home, operation, numbers):
        held = check(copy, model, model.after(operation))
        with keepstone.open(copy, embedder="none") as again:
            do(again, later)
        check(copy, held.after(later))


@pytest.mark.parametrize("kind", ["purge", "clear", "remove", "drop"])
def test_what_others_add_after_an_erasure_was_killed_survives(
    filled: tuple[Path, Model],
    kind: str,
    thorough: bool,  # noqa: FBT001
) -> None:
    home, model = filled
    first = model.live("s0")[0]
    operation = Operation(kind, "s0", (first,))
    later = Operation("put", "s0", (first,), ("aftertheflood",))
    for number in range(1, 100) if thorough else (4, 9):
        copy = home.with_name(f"copy{number}")
        shutil.copytree(home, copy)
        with keepstone.open(copy, embedder="none") as other:
            other.agent(AGENT).session("s0").entries()
            if not killed_before(copy, operation, number):
                break
            do(other, later)
        with keepstone.open(copy, embedder="none") as again:
            shown = {entry.id: entry.data for entry in again.agent(AGENT).session("s0").entries()}
            assert shown[first] == {"content": "aftertheflood"}, number
            assert len(again.agent(AGENT).recall("aftertheflood", limit=1)) == 1
        shutil.rmtree(copy)
