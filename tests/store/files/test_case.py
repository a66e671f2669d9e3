"""Slugs and session ids that differ only by case, where the file system folds case."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.folding import fold_case

import keepstone
from keepstone import Agent, Home, InvalidAgentIdError, InvalidSessionIdError
from keepstone.filesystem import confine


@pytest.fixture(params=["default", "cache"])
def home(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with keepstone.open(tmp_path, layout=request.param, durability="os") as home:
        home.agent("Ada").session("Plan").add("note", {"content": "walnut"})
        home.agent("Ada").files.write("plan.md", "walnut")
        fold_case(monkeypatch)
        yield home


CALLS: dict[str, Callable[[Agent], object]] = {
    "add": lambda agent: agent.session("s").add("note", text="walnut"),
    "entries": lambda agent: agent.session("Plan").entries(),
    "sessions": lambda agent: agent.sessions(),
    "recall": lambda agent: agent.recall("walnut"),
    "clear": lambda agent: agent.session("Plan").clear(),
    "read": lambda agent: agent.files.read("plan.md"),
    "write": lambda agent: agent.files.write("other.md", "pecan"),
    "list": lambda agent: agent.files.list(),
    "delete": lambda agent: agent.files.delete("plan.md"),
}


def files_below(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_agent_that_differs_by_case_is_refused(home: Home, call: Callable[[Agent], object]) -> None:
    before = files_below(home.root)
    for slug in ("ada", "ADA", "aDa"):
        with pytest.raises(InvalidAgentIdError, match="differs only by case from the existing 'Ada'"):
            call(home.agent(slug))
    assert files_below(home.root) == before
    call(home.agent("Ada"))


def test_an_agent_that_has_only_files_keeps_its_slug(home: Home) -> None:
    home.agent("Bob").files.write("plan.md", "pecan")
    with pytest.raises(InvalidAgentIdError, match="differs only by case"):
        home.agent("bob").session("s").add("note", text="walnut")


@pytest.mark.parametrize("write", ["add", "write"])
def test_of_two_processes_that_make_twins_at_once_one_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    made = confine._descend  # noqa: SLF001  The moment between the look and the making.

    def made_by_both(handle: int, below: list[str], *, create: bool = False, durable: bool = True) -> int:
        other = [name.replace("eve", "Eve") for name in below]
        if create and other != below:
            home.root.joinpath(*other).mkdir(parents=True, exist_ok=True)
        return made(handle, below, create=create, durable=durable)

    monkeypatch.setattr(confine, "_descend", made_by_both)
    with pytest.raises(InvalidAgentIdError, match="differs only by case from the existing 'Eve'"):
        CALLS[write](home.agent("eve"))
    assert "eve" not in home.agents()
    CALLS[write](home.agent("Eve"))


def test_a_session_that_differs_by_case_is_refused(home: Home) -> None:
    agent = home.agent("Ada")
    for call in (agent.session("plan").entries, lambda: agent.session("PLAN").add("note", text="walnut")):
        with pytest.raises(InvalidSessionIdError, match="from the existing 'Plan.ndjson'"):
            call()
    assert [entry.text for entry in agent.session("Plan").entries()] == ["walnut"]
