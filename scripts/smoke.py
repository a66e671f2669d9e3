#!/usr/bin/env python3
"""Run a part of the tests in an environment different from the development environment.

python scripts/smoke.py lowest      # the oldest Python, and the versions of requirements-lowest.lock
python scripts/smoke.py newest      # the newest Python, and the versions of requirements.lock
python scripts/smoke.py frameworks  # the oldest Python, and the frameworks of requirements-frameworks.lock
python scripts/smoke.py sources     # the oldest Python, and the tools of requirements-sources.lock
python scripts/smoke.py hindsight   # the oldest Python, and the tool of requirements-hindsight.lock

The interpreter is searched for in the usual folders and among pyenv's and uv's versions, and else installed
by ``uv python install``. If the wanted version is not available, the nearest one is used, and the first line
of output reports it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST, NEWEST = (3, 11), (3, 14)
PLACES = [
    "/usr/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    *map(str, Path.home().glob(".pyenv/versions/*/bin")),
]
TESTS = """
    tests/test_public_api.py tests/test_docs.py tests/test_docstrings.py tests/test_home.py tests/text
    tests/index/test_index.py tests/index/words tests/index/vectors/test_hnsw.py
    tests/index/vectors/test_segment.py tests/notes/test_bullets.py
    tests/embed/test_minilm.py tests/embed/test_static.py tests/cli/test_app.py
    tests/cli/test_command_line.py tests/cli/test_version.py
    tests/chat/test_openai_model.py tests/chat/test_anthropic_model.py tests/tui/test_talking.py
    tests/server/test_http.py tests/server/test_running.py
""".split()
"""Test files: at least one for each dependency and extra. ``test_docstrings`` imports every module."""

APART = """
    tests/integrations/test_strands.py tests/integrations/test_strands_suite.py
    tests/integrations/test_crewai.py tests/integrations/test_crewai_suite.py
    tests/integrations/test_langchain_suite.py
    tests/integrations/test_examples.py::test_an_example_runs_offline_and_recalls_something[crewai_memory]
    tests/integrations/test_examples.py::test_an_example_runs_offline_and_recalls_something[strands_agents]
    tests/integrations/test_examples.py::test_programs_of_a_page_run[crewai]
    tests/integrations/test_examples.py::test_programs_of_a_page_run[strands]
""".split()
"""Tests of frameworks that need an older ``mcp`` than development, or that install pytest plugins."""

SOURCES = """
    tests/importing/test_newest_sources.py tests/importing/test_newest_services.py
    tests/importing/test_claude_mem.py tests/integrations/test_mem0.py
""".split()
"""Tests of imports from the newest releases of other memory tools, and of the mem0 adapter."""

HINDSIGHT = ["tests/importing/test_hindsight.py"]
"""Tests of the import from Hindsight, whose dependencies conflict with those of the other tools."""

KINDS = {
    "lowest": (OLDEST, "requirements-lowest.lock", TESTS),
    "newest": (NEWEST, "requirements.lock", TESTS),
    "frameworks": (OLDEST, "requirements-frameworks.lock", APART),
    "sources": (OLDEST, "requirements-sources.lock", SOURCES),
    "hindsight": (OLDEST, "requirements-hindsight.lock", HINDSIGHT),
}

Version = tuple[int, ...]


def main(arguments: list[str]) -> int:
    """Create the environment, run the tests in it, and return their exit status."""
    if len(arguments) != 1 or arguments[0] not in KINDS:
        sys.exit(__doc__)
    (kind,) = arguments
    wanted, lock, chosen = KINDS[kind]
    version, python = _interpreter(wanted)
    folder = ROOT / f".venv-{kind}"
    _announce(kind, wanted, version, lock)
    uv = [sys.executable, "-m", "uv"]
    target = ["--quiet", "--python", str(folder / "bin" / "python")]
    for command in (
        [*uv, "venv", "--quiet", "--clear", "--seed", "--python", python, str(folder)],
        [*uv, "pip", "install", *target, "--require-hashes", "-r", lock],
        [*uv, "pip", "install", *target, "--no-deps", "--no-build-isolation", "-e", "."],
    ):
        subprocess.run(command, cwd=ROOT, check=True)
    # A library's own deprecation is not an error of ours, and old versions have many.
    # One worker a core: each worker imports the tests again, and make runs two of these at the same time.
    workers = str(os.cpu_count() or 1)
    tests = [str(folder / "bin" / "python"), "-m", "pytest", "-q", "-n", workers, "-W", "default", *chosen]
    return subprocess.run(tests, cwd=ROOT, check=False).returncode


def _interpreter(wanted: Version) -> tuple[Version, str]:
    """Return the version and path of the wanted Python, or of the nearest available version."""
    found = _installed()
    if wanted not in {version[:2] for version in found}:
        subprocess.run(
            [sys.executable, "-m", "uv", "python", "install", "--quiet", ".".join(map(str, wanted))],
            capture_output=True,
            check=False,
        )
        found = _installed()
    nearest = min(found, key=lambda version: (abs(version[1] - wanted[1]), version))
    return nearest, found[nearest]


def _installed() -> dict[Version, str]:
    """Return the installed CPython versions that are not older than ``OLDEST``, with their paths."""
    listed = subprocess.run(
        [sys.executable, "-m", "uv", "python", "dir"], capture_output=True, text=True, check=True
    ).stdout.strip()
    folders = [*PLACES, *map(str, Path(listed).glob("*/bin")), str(Path(sys.executable).resolve().parent)]
    paths = [path for folder in folders for path in Path(folder).glob("python3.*")]
    program = "import sys, venv, ensurepip; print(*sys.version_info[:3])"
    found: dict[Version, str] = {}
    for path in (path for path in paths if re.fullmatch(r"python3\.\d+", path.name)):
        answer = subprocess.run([str(path), "-c", program], capture_output=True, text=True, check=False)
        version = tuple(map(int, answer.stdout.split()))
        if answer.returncode == 0 and version >= OLDEST:
            found.setdefault(version, str(path))
    return found


def _announce(kind: str, wanted: Version, version: Version, lock: str) -> None:
    used, ideal = (".".join(map(str, one)) for one in (version, wanted))
    instead = "" if version[:2] == wanted else f" (Python {ideal} could not be found or installed here)"
    print(f"{kind}: Python {used}{instead}, versions of {lock}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
