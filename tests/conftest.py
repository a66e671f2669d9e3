"""What every test gets: a user of its own, and hypothesis without a stopwatch."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

# What is installed on a machine must not decide what a test sees; tests of meaning name their embedder.
os.environ["KEEPSTONE_EMBEDDER"] = "none"

# No deadlines: a test that fails because the machine was busy says nothing about the code.
settings.register_profile("quick", deadline=None, max_examples=50)
settings.register_profile("fuzz", deadline=None, max_examples=2000)  # One round of ``make fuzz``.
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run two workers a core: who waits for a browser, a lock or a disk leaves the processor idle."""
    return 2 * (os.cpu_count() or 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the pages first: their tests wait the most, and so run beside those that only compute."""
    items.sort(key=lambda item: item.path.parent.name != "web")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in a line for each reason which tests were left out."""
    reasons = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", []))
    for reason, number in sorted(reasons.items()):
        terminalreporter.write_line(f"Left out: {number} tests: {reason.removeprefix('Skipped: ')}")


_NUMBERS = count()


def _new_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """Make an empty folder. ``mktemp`` reads the names of all others in its folder to find a free number."""
    folder = factory.getbasetemp() / "t" / f"{name}{next(_NUMBERS)}"
    folder.mkdir(mode=0o700, parents=True)
    return folder


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder with the name of the test."""
    return _new_folder(tmp_path_factory, re.sub(r"\W", "_", request.node.name)[:30])


@pytest.fixture(autouse=True)
def user_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clean slate: an empty folder is the user's home, and no variable names a memory of the real user."""
    folder = _new_folder(tmp_path_factory, "user")
    for name in ("HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA"):
        monkeypatch.setenv(name, str(folder))
    for name in [name for name in os.environ if name.startswith(("KEEPSTONE_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("KEEPSTONE_EMBEDDER", "none")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a running PostgreSQL with pgvector, in which each home is a schema."""
    from tests.postgres_homes import end_lending  # Late: make frameworks has no psycopg.
    from tests.postgres_server import GIVEN, running_server

    if GIVEN is not None:
        yield GIVEN
        end_lending(GIVEN)
        return
    with running_server() as server:
        yield server.dsn
        end_lending(server.dsn)


@pytest.fixture
def dsn(postgres: str) -> Iterator[str]:
    """The URL of an empty home in a schema of its own; its tables are made."""
    from tests.postgres_homes import home_of

    with home_of(postgres) as url:
        yield url


@pytest.fixture
def bare_dsn(postgres: str) -> Iterator[str]:
    """The URL of a schema of its own without tables, as before a home is opened for the first time."""
    from tests.postgres_server import schema_of

    with schema_of(postgres) as url:
        yield url


@pytest.fixture(params=["files", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty home is: in a folder, then in a database."""
    if request.param == "files":
        return str(tmp_path / "home")
    return str(request.getfixturevalue("dsn"))
