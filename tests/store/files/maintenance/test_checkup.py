"""The doctor's round through a home: in which order, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

import keepstone
from keepstone.errors import AccessDeniedError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.model import Finding
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.maintenance.checkup import Checkup

LAYOUT = LAYOUTS["default"]
LINE = b'{"id":"x","ts":"2026-01-11T14:31:00Z","type":"note","text":"walnut"}\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two agents with a session each, and one that has none."""
    for agent in ("a", "b"):
        folder = LAYOUT.sessions_folder(tmp_path, agent)
        folder.mkdir(0o700, parents=True)
        (folder / "s.ndjson").write_bytes(LINE)
        (folder / "s.ndjson").chmod(0o600)
    (tmp_path / "agents/c").mkdir()
    for path in (tmp_path / "agents").rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    (tmp_path / "agents").chmod(0o700)
    return tmp_path


def using(root: Path) -> Callable[[str], AbstractContextManager[AgentLogs | None]]:
    @contextmanager
    def use(agent: str) -> Iterator[AgentLogs | None]:
        if not LAYOUT.sessions_folder(root, agent).exists():
            yield None
            return
        logs = AgentLogs(
            root,
            LAYOUT,
            agent,
            durable=False,
            create=False,
            most_logs=lambda: 8,
            finish=lambda _: None,
            language="en",
        )
        logs.refresh(0)
        yield logs
        logs.close()

    return use


def refusing(root: Path, refused: str) -> Callable[[str], AbstractContextManager[AgentLogs | None]]:
    @contextmanager
    def use(agent: str) -> Iterator[AgentLogs | None]:
        if agent == refused:
            raise AccessDeniedError("the system refuses access")
        with using(root)(agent) as logs:
            yield logs

    return use


def levels(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.level, finding.subject) for finding in findings]


@pytest.mark.parametrize("deep", [False, True])
def test_the_place_comes_first_then_each_agent_that_has_sessions(root: Path, *, deep: bool) -> None:
    findings = Checkup(root, LAYOUT, using(root)).run(deep=deep, fix=False)
    assert levels(findings) == [("ok", str(root)), ("ok", "a"), ("ok", "b")]


def test_progress_ends_with_the_bytes_of_all_logs(root: Path) -> None:
    told: list[tuple[int, int]] = []
    Checkup(root, LAYOUT, using(root)).run(
        deep=False, fix=False, progress=lambda done, of: told.append((done, of))
    )
    assert told == [(len(LINE), 2 * len(LINE)), (2 * len(LINE), 2 * len(LINE))]


def test_progress_never_goes_beyond_its_end_where_logs_grow(root: Path) -> None:
    told: list[tuple[int, int]] = []

    def grow(done: int, of: int) -> None:
        told.append((done, of))
        (LAYOUT.sessions_folder(root, "b") / "s.ndjson").write_bytes(LINE * 9)

    Checkup(root, LAYOUT, using(root)).run(deep=False, fix=False, progress=grow)
    assert told[-1] == (2 * len(LINE), 2 * len(LINE))


def test_an_agent_that_cannot_be_opened_is_one_error_and_counts_no_bytes(root: Path) -> None:
    told: list[tuple[int, int]] = []
    findings = Checkup(root, LAYOUT, refusing(root, "a")).run(
        deep=False, fix=False, progress=lambda done, of: told.append((done, of))
    )
    assert levels(findings) == [("ok", str(root)), ("error", "a"), ("ok", "b")]
    assert findings[1].message == "the system refuses access"
    assert told == [(len(LINE), len(LINE))]


def test_one_round_mends_both_lines_and_modes(root: Path) -> None:
    log = LAYOUT.sessions_folder(root, "a") / "s.ndjson"
    log.write_bytes(LINE + b"no line\n")
    log.chmod(0o644)
    findings = Checkup(root, LAYOUT, using(root)).run(deep=False, fix=True)
    assert {finding.level for finding in findings} == {"ok"}
    assert log.stat().st_mode & 0o777 == 0o600


def test_findings_say_which_agent_they_concern_and_of_the_home_none(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("agents").session("s").add("note", text="walnut")
        (tmp_path / "agents/private").symlink_to(tmp_path)
        found = {(finding.subject, finding.agent) for finding in home.doctor()}
    assert found >= {
        ("agents", "agents"),
        ("agents/private", None),
        ("embedder", None),
        (str(tmp_path), None),
    }
