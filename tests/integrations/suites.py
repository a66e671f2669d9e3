"""The frameworks' own tests: downloaded at the installed versions, and run against our adapters.

Nothing of them is copied into this repository. A plugin in ``suite_plugins`` puts our adapter in the place of
the framework's own implementation. Tests that cannot apply to another implementation are left out by name,
each with its reason.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pytest
from filelock import FileLock

PLUGINS = Path(__file__).parent / "suite_plugins"


class Outcome(NamedTuple):
    """What a run of a framework's tests came to."""

    passed: int
    failed: list[str]


def source_of(distribution: str, cache: pytest.Cache) -> Path:
    """Return the unpacked source distribution of an installed package; skip the test without a network."""
    name = f"{distribution.replace('-', '_')}-{version(distribution)}"
    folder = cache.mkdir("suites")
    with FileLock(folder / f"{name}.lock"):
        if not (folder / name).exists():
            _download(f"{distribution}=={version(distribution)}", folder)
            with tarfile.open(folder / f"{name}.tar.gz") as archive:
                # Python 3.11 has the argument from its fourth patch on.
                safely: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
                archive.extractall(folder / f"{name}.part", **safely)  # noqa: S202  Of PyPI, at a pinned version.
            (folder / f"{name}.part" / name).rename(folder / name)
    return folder / name


def _download(requirement: str, folder: Path) -> None:
    options = f"--quiet --no-deps --no-binary {requirement.partition('==')[0]}".split()
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), requirement],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"the sources of {requirement} cannot be downloaded: {done.stderr.strip()[-200:]}")


def run_suite(
    source: Path,
    plugin: str,
    files: Iterable[str],
    left_out: Mapping[str, str],
    folder: Path,
    options: Iterable[str] = (),
    *,
    target: str = "",
) -> Outcome:
    """Run files of a framework's tests with one of our plugins, without the tests that are left out.

    Each store is a home in a folder, or an agent of the database that ``target`` names.
    """
    report = folder / "report.xml"
    environment = {"PYTHONPATH": str(PLUGINS), "KEEPSTONE_SUITE_HOMES": str(folder), "OPENAI_API_KEY": "none"}
    if target.startswith("postgres"):
        environment["KEEPSTONE_SUITE_DSN"] = target
    plugins = f"-p {plugin} -p no:schemathesis -p no:langsmith_plugin -p no:xdist -p no:cacheprovider".split()
    deselected = [option for test in left_out for option in ("--deselect", test)]
    # Names of tests are relative to the root, which would be ours where the suite has no configuration.
    given = [*plugins, "--rootdir", str(source), *deselected, *options, "--junit-xml", str(report)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *given, *files],
        cwd=source,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if not report.exists():
        pytest.fail(f"the suite did not run:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    failed, passed = [], 0
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  Our own run wrote it.
        kinds = {result.tag for result in case}
        if kinds & {"failure", "error"}:
            failed.append(f"{case.get('classname')}::{case.get('name')}")
        elif "skipped" not in kinds:
            passed += 1
    return Outcome(passed, failed)
