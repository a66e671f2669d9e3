"""What claude-mem writes, with its own code from npm on Bun: ``make frameworks`` has it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from filelock import FileLock

from keepstone.agent import Agent
from keepstone.importing import import_memory

pytest.importorskip(
    "mempalace", reason="the tools whose memory is imported are in another environment: make frameworks"
)

RELEASE, BUN = "13.25.3", "1.4.5"
WRITER = Path(__file__).parent / "write_claude_mem.mjs"


class Written(NamedTuple):
    """A database of claude-mem, and its records as claude-mem itself reads them."""

    database: Path
    records: dict[str, Any]


@pytest.fixture(scope="module")
def tool(pytestconfig: pytest.Config) -> Path:
    """Return a folder with Bun and the unpacked package; only its server needs its dependencies."""
    cache = pytestconfig.cache
    assert cache is not None
    folders = cache.mkdir("claude-mem")
    folder = folders / f"{RELEASE}-{BUN}"
    with FileLock(folders / "lock"):
        if not folder.exists():
            part = folders / "part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            npm("install", "--ignore-scripts", "--prefix", str(part), f"bun@{BUN}")
            npm("pack", "--pack-destination", str(part), f"claude-mem@{RELEASE}")
            with tarfile.open(part / f"claude-mem-{RELEASE}.tgz") as archive:
                # Python 3.11 has the argument from its fourth patch on.
                safely: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
                archive.extractall(part, **safely)  # noqa: S202  Of npm, at a pinned version.
            part.rename(folder)
    return folder


def npm(*command: str) -> None:
    program = shutil.which("npm")
    if program is None:
        pytest.skip("npm is not installed, which brings claude-mem and Bun")
    done = subprocess.run(
        [program, *command, "--silent", "--no-audit", "--no-fund"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        pytest.skip(f"npm cannot bring claude-mem and Bun: {done.stderr.strip()[-200:]}")


@pytest.fixture
def written(tool: Path, tmp_path: Path) -> Written:
    """Let claude-mem write a database; its process is killed, so that all of it is in the journal."""
    bun = next(tool.glob("node_modules/@oven/*/bin/bun"))
    database = tmp_path / "claude-mem.db"
    done = subprocess.run(
        [str(bun), str(WRITER), str(tool / "package"), str(database)],
        env={**os.environ, "HOME": str(tmp_path), "CLAUDE_MEM_DATA_DIR": str(tmp_path / "tool")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout, done.stderr
    return Written(database, json.loads(done.stdout))


@pytest.mark.timeout(600)
def test_everything_that_claude_mem_wrote_is_imported(agent: Agent, written: Written) -> None:
    result = import_memory(agent, "auto", written.database)
    assert (result.source, result.imported, result.failed) == ("claude-mem", 7, [])
    assert import_memory(agent, "claude-mem", written.database).unchanged == 7
    for row in written.records["observations"]:
        entry = agent.get(f"observation-{row['id']}")
        assert (entry.type, entry.data["narrative"]) == (row["type"], row["narrative"])
        assert entry.data.get("facts", []) == json.loads(row["facts"])
        assert entry.tags == tuple(json.loads(row["concepts"]))
        assert int(entry.ts.timestamp() * 1000) == row["created_at_epoch"]
    for row in written.records["prompts"]:
        assert agent.get(f"prompt-{row['id']}").data["content"] == row["prompt_text"]
    for row in written.records["summaries"]:
        assert agent.get(f"summary-{row['id']}").data["learned"] == row["learned"]


@pytest.mark.timeout(600)
def test_sessions_of_two_programs_with_one_id_keep_their_own_prompts(agent: Agent, written: Written) -> None:
    import_memory(agent, "claude-mem", written.database)
    for kind in ("observation", "summary"):
        for number in (1, 2):
            links = agent.get(f"{kind}-{number}").links
            assert [(link["rel"], link["to"]) for link in links] == [("derived_from", f"prompt-{number}")]


@pytest.mark.timeout(600)
def test_the_records_of_an_export_are_those_of_the_database(
    agent: Agent, written: Written, tmp_path: Path
) -> None:
    import_memory(agent, "claude-mem", written.database)
    export = tmp_path / "export.json"
    export.write_text(json.dumps(written.records))
    result = import_memory(agent, "auto", export)
    assert (result.source, result.imported, result.unchanged, result.failed) == ("claude-mem", 0, 7, [])
