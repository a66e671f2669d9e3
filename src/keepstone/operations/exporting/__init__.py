"""Exporting agents in open formats, streamed; ``keepstone.importing`` reads all of them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Literal, get_args

from keepstone.agent import Agent
from keepstone.errors import AgentNotFoundError, SessionNotFoundError
from keepstone.filesystem.atomic import private_opener
from keepstone.filesystem.confine import FOLDER_MODE, border
from keepstone.home import Home
from keepstone.model import Entry
from keepstone.session import Session

Format = Literal["ndjson", "md", "okf", "sqlite", "csv"]
FORMATS: tuple[str, ...] = get_args(Format)
_FOLDERS = ("md", "okf")
_FILES = {"ndjson": "entries.ndjson", "csv": "entries.csv", "sqlite": "entries.sqlite"}
_STEP = 200


def export_memory(
    home: Home,
    out: str | os.PathLike[str],
    *,
    agent: str | None = None,
    format: str = "ndjson",  # noqa: A002  The option's name.
    since: datetime | str | None = None,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
    stream: IO[bytes] | None = None,
) -> int:
    """Export the live entries of one agent, or of all agents, and return their number.

    The output for one agent is a file, or a folder for ``md`` and ``okf``; for all agents it is a folder with
    one folder each. The output appears as a whole at the end, or not at all.

    Args:
        home: The home.
        out: The path of the output; ``"-"`` is standard output, for one agent as ``ndjson`` or ``csv``.
        agent: The agent to export; default: all agents.
        format: ``ndjson``, ``md``, ``okf``, ``sqlite`` or ``csv``.
        since: Only entries made at this time or later.
        force: Replace an output that exists.
        progress: Called with the number of entries written and their total.
        stream: The stream for ``"-"``; default: standard output.

    Raises:
        FileExistsError: The output exists.
        ValueError: The format is unknown, or the output lies in the home or cannot be standard output.
        AgentNotFoundError: There is no such agent.
        AccessDeniedError, StoreError: The output cannot be written; no part of it remains.
    """
    agents = home.agents() if agent is None else [agent]
    if agent is not None and home.agent(agent).slug not in home.agents():
        raise AgentNotFoundError(f"there is no agent {agent!r}: see keepstone agents list")
    if agent is not None:
        chosen = home.agent(agent)
        return export_agent(
            chosen,
            home.root,
            out,
            format=format,
            since=since,
            force=force,
            progress=progress,
            stream=stream,
        )
    _check_format(format)
    if str(out) == "-":
        raise ValueError("standard output takes one agent (--agent) as ndjson or csv: name a path with --out")
    counter = _Counter([home.agent(slug) for slug in agents], since, progress)
    with _output(home.root, out, force=force) as new:
        new.mkdir(FOLDER_MODE)
        count = 0
        for slug in agents:
            place = new / slug
            if format not in _FOLDERS:
                place.mkdir(FOLDER_MODE)
                place /= _FILES[format]
            count += _to_path(counter.counted(home.agent(slug)), format, place)
        return count


def export_agent(
    agent: Agent,
    root: Path,
    out: str | os.PathLike[str],
    *,
    format: str = "ndjson",  # noqa: A002  The option's name.
    since: datetime | str | None = None,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
    stream: IO[bytes] | None = None,
) -> int:
    """Export the live entries of an agent of the home at ``root``; see ``export_memory``."""
    _check_format(format)
    counter = _Counter([agent], since, progress)
    if str(out) == "-":
        if format not in ("ndjson", "csv"):
            raise ValueError(
                "standard output takes one agent (--agent) as ndjson or csv: name a path with --out"
            )
        return _to_stream(counter.counted(agent), format, stream or sys.stdout.buffer)
    with _output(root, out, force=force) as new:
        return _to_path(counter.counted(agent), format, new)


def export_session(
    session: Session,
    root: Path,
    out: str | os.PathLike[str],
    *,
    format: str = "ndjson",  # noqa: A002  The option's name.
) -> int:
    """Export the live entries of one session of the home at ``root``; return their number.

    Raises:
        SessionNotFoundError: The session is missing.
        FileExistsError, ValueError, AccessDeniedError, StoreError: As for ``export_memory``.
    """
    _check_format(format)
    if session.info() is None:
        raise SessionNotFoundError(session.agent, session.id)
    with _output(root, out, force=False) as new:
        return _to_path(iter(session.entries(include_superseded=True)), format, new)


def _check_format(format: str) -> None:  # noqa: A002
    if format not in FORMATS:
        raise ValueError(f"unknown format {format!r:.80}; use one of {', '.join(FORMATS)}")


@contextmanager
def _output(root: Path, out: str | os.PathLike[str], *, force: bool) -> Iterator[Path]:
    """Yield a new path, which replaces the output at the end.

    Raises:
        FileExistsError: The output exists, and ``force`` is False.
        ValueError: The output and the home contain each other.
    """
    target = Path(out).expanduser().absolute()
    # Inside the home, the output would be read as a session or an agent's file. If it contained the home,
    # ``force`` would remove the home.
    if target.resolve().is_relative_to(root.resolve()) or root.resolve().is_relative_to(target.resolve()):
        raise ValueError(f"{target} and the home {root} contain each other: choose a place outside of it")
    if (target.exists() or target.is_symlink()) and not force:
        raise FileExistsError(f"{target} exists: choose another path, or replace it with force (--force)")
    with border(target), _replacing(target) as new:
        yield new


class _Counter:
    """Reports progress: the number of entries written so far, and their total."""

    def __init__(
        self,
        agents: Sequence[Agent],
        since: datetime | str | None,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._since = since
        self._total = 0
        # Counting reads as much as an export of small entries, and only a progress bar needs the total.
        if progress is not None:
            self._total = sum(agent.count(since=since, include_superseded=True) for agent in agents)
        self._done = 0
        self._progress = progress

    def counted(self, agent: Agent) -> Iterator[Entry]:
        for entry in agent.iter_entries(since=self._since, include_superseded=True):
            yield entry
            self._done += 1
            if self._progress is not None and self._done % _STEP == 0:
                # Other processes may add entries after they were counted.
                self._progress(self._done, max(self._total, self._done))


def _to_stream(entries: Iterator[Entry], format: str, file: IO[bytes]) -> int:  # noqa: A002
    from keepstone.operations.exporting import tables

    return tables.write_ndjson(entries, file) if format == "ndjson" else tables.write_csv(entries, file)


def _to_path(entries: Iterator[Entry], format: str, path: Path) -> int:  # noqa: A002
    from keepstone.operations.exporting import markdown_files, tables

    if format in _FOLDERS:
        path.mkdir(FOLDER_MODE)
        write = markdown_files.write_md if format == "md" else markdown_files.write_okf
        return write(entries, path)
    if format == "sqlite":
        return tables.write_sqlite(entries, path)
    with ExitStack() as stack:
        # The file has mode 0600 from the beginning, whatever the umask is, as it contains memory.
        file = stack.enter_context(open(path, "xb", opener=private_opener))
        return _to_stream(entries, format, file)


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """Yield a new path beside the target; it replaces the target at the end, or is removed on an error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # The paths are beside the target, as a rename works only within one file system.
    new, old = (target.with_name(f".{target.name}.{os.getpid()}.{kind}") for kind in ("tmp", "old"))
    _remove(new)
    try:
        yield new
        # A rename does not replace a folder that has files: the old output is renamed first and removed last,
        # so that a kill leaves one of the two as a whole.
        if target.is_dir() or (new.is_dir() and os.path.lexists(target)):
            target.rename(old)
        new.replace(target)
        _remove(old)
    finally:
        _remove(new)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
