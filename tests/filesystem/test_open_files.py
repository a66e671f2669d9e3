"""How many files a process may have open."""

import subprocess
import sys

import pytest

from keepstone.filesystem.open_files import files_allowed

resource = pytest.importorskip("resource")

RAISED = """
import resource, sys
from keepstone.filesystem.open_files import allow_more_files
limits = int(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
allow_more_files()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("soft", "hard", "expected"), [(256, 512, 512), (512, 512, 512)])
def test_a_program_of_ours_raises_its_soft_limit_to_the_hard_one(soft: int, hard: int, expected: int) -> None:
    command = [sys.executable, "-c", RAISED, str(soft), str(hard)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == [str(expected), str(hard)]


def test_a_limit_without_end_is_raised_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: found.append(limits))
    from keepstone.filesystem.open_files import allow_more_files

    allow_more_files()
    assert found == [(32768, resource.RLIM_INFINITY)]


@pytest.mark.parametrize(("limit", "allowed"), [(1024, 1024), (resource.RLIM_INFINITY, None)])
def test_files_allowed_are_the_soft_limit(
    monkeypatch: pytest.MonkeyPatch, limit: int, allowed: int | None
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert files_allowed() == allowed


LIBRARY = """
import resource, sys, keepstone
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 512))
with keepstone.open(sys.argv[1], embedder="none") as home:
    home.agent("a").session("s").add("note", text="walnut")
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def test_the_library_leaves_the_limit_of_its_program(tmp_path: object) -> None:
    command = [sys.executable, "-c", LIBRARY, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["256", "512"]


@pytest.mark.parametrize("command", ["serve", "mcp"])
def test_servers_may_open_as_many_files_as_the_system_allows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object, command: str
) -> None:
    from typer.testing import CliRunner

    from keepstone.cli import mcp, serve
    from keepstone.cli.app import app

    raised: list[str] = []

    def stop() -> None:
        raised.append(command)
        raise KeyboardInterrupt

    for module in (mcp, serve):
        monkeypatch.setattr(module, "allow_more_files", stop)
    CliRunner().invoke(app, [command, "--home", str(tmp_path)])
    assert raised == [command]
