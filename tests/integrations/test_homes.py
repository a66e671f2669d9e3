"""What adapters share: one home for each folder, and built-in errors."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest

import keepstone
from keepstone import errors
from keepstone.integrations.homes import in_thread, needs, opened_agent, opened_home, plain_errors

FRAMEWORKS = {
    "agent_framework", "agents", "anthropic", "claude_agent_sdk", "crewai", "google.adk", "langchain_core",
    "langgraph", "llama_index", "mcp", "openai", "pydantic_ai", "strands", "anyio",
}  # fmt: skip


def test_importing_keepstone_imports_no_framework() -> None:
    program = "import json, sys, keepstone, keepstone.integrations; print(json.dumps([*sys.modules]))"
    loaded = set(json.loads(subprocess.check_output([sys.executable, "-c", program], text=True)))
    assert loaded & FRAMEWORKS == set()


def test_adapters_of_one_folder_share_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSTONE_HOME", str(tmp_path / "a"))
    first = opened_home(None)
    assert opened_home(None) is first
    monkeypatch.setenv("KEEPSTONE_HOME", str(tmp_path / "b"))
    assert opened_home(None) is not first


def test_a_relative_path_means_the_folder_of_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = []
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        agents.append(opened_agent("memory", "coder"))
    agents[0].session("s").add("note", text="Use pnpm")
    assert (tmp_path / "x" / "memory").exists()
    assert not (tmp_path / "y" / "memory").exists()


def test_an_open_home_is_used_as_it_is(tmp_path: Path) -> None:
    with keepstone.open(tmp_path) as home:
        assert opened_home(home) is home


def test_opening_many_homes_closes_none_in_use(tmp_path: Path) -> None:
    agents = [opened_agent(tmp_path / str(number), "coder") for number in range(20)]
    for agent in agents:
        agent.session("s").add("note", text="Use pnpm")
    assert [agent.count() for agent in agents] == [1] * 20


@pytest.mark.parametrize(("slug", "kind"), [("no slug", ValueError), ("../x", ValueError), (7, TypeError)])
def test_an_invalid_agent_is_a_built_in_error(tmp_path: Path, slug: str, kind: type[Exception]) -> None:
    with pytest.raises(kind) as raised:
        opened_agent(tmp_path / "home", slug)
    assert type(raised.value) is kind
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("ours", "plain"),
    [
        (errors.LockTimeoutError, TimeoutError),
        (errors.EntryExistsError, ValueError),
        (errors.PathEscapeError, PermissionError),
        (errors.StoreError, OSError),
        (errors.CorruptLogError, OSError),
    ],
)
def test_our_errors_become_built_in_ones(ours: type[Exception], plain: type[Exception]) -> None:
    with pytest.raises(plain, match="^what is wrong$") as raised, plain_errors():
        raise ours("what is wrong")
    assert type(raised.value) is plain
    assert type(raised.value.__cause__) is ours


def test_calls_run_in_threads_with_built_in_errors() -> None:
    def refuse() -> None:
        raise errors.LockTimeoutError("the session is locked")

    async def main() -> int:
        with pytest.raises(TimeoutError, match="the session is locked") as raised:
            await in_thread(refuse)
        assert type(raised.value) is TimeoutError
        return await in_thread(threading.get_ident)

    assert asyncio.run(main()) != threading.get_ident()


def test_missing_strands_names_the_extras_it_cannot_be_installed_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "strands", None)
    monkeypatch.delitem(sys.modules, "keepstone.integrations.strands", raising=False)
    with pytest.raises(ImportError, match=r"keepstone\[strands\].*without the extras mcp and all"):
        import_module("keepstone.integrations.strands")


def test_a_missing_framework_names_its_extra() -> None:
    with pytest.raises(ImportError, match=r"keepstone\[langgraph\]"), needs("langgraph"):
        import no_such_framework  # type: ignore[import-not-found]  # noqa: F401
