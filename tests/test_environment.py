"""scripts/environment.py makes .venv, and ends each trouble in one line with the next step."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BACKEND = """
import zipfile

def build_editable(folder, settings=None, metadata=None):
    name = "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    return name

build_wheel = build_sdist = build_editable
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "tiny"
version = "1.0"
"""
MISSING = f"nowhere-to-be-found==1.0 --hash=sha256:{'0' * 64}\n"


def _project(folder: Path) -> Path:
    root = folder / "clone ü"
    (root / "scripts").mkdir(parents=True)
    (root / "scripts/environment.py").write_bytes((ROOT / "scripts/environment.py").read_bytes())
    (root / "backend.py").write_text(BACKEND)
    (root / "pyproject.toml").write_text(PROJECT)
    (root / "requirements-run.lock").write_text("# nothing\n")
    (root / "requirements.lock").write_text("# nothing more\n")
    return root


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A project without dependencies, in a folder whose name has a space and an umlaut."""
    return _project(tmp_path)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[int, str]]:
    """A clone whose environment was made from nothing, and what was said; nobody changes it."""
    root = _project(tmp_path_factory.mktemp("first"))
    return root, made(root)


@pytest.fixture
def made_clone(first: tuple[Path, tuple[int, str]], tmp_path: Path) -> Path:
    """A clone with its environment: a copy, which is there sooner than one that is made."""
    root = shutil.copytree(first[0], tmp_path / "clone ü", symlinks=True)
    state = json.loads((root / ".venv/keepstone.json").read_text())
    (root / ".venv/keepstone.json").write_text(json.dumps({**state, "root": str(root)}))
    return root


def made(clone: Path, wanted: str = "run", before: str = "", **variables: str) -> tuple[int, str]:
    """Run the script, perhaps after other statements, and return its status and what it printed last."""
    script = clone / "scripts/environment.py"
    program = f"""
import runpy, shutil, sys
sys.argv[1:] = [{wanted!r}]
{before}
runpy.run_path({str(script)!r}, run_name="__main__")
"""
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, **variables}
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False
    )
    return ended.returncode, ended.stderr.strip()


def has_package(clone: Path) -> bool:
    listed = subprocess.run(
        [clone / ".venv/bin/python", "-m", "pip", "show", "--quiet", "tiny"], capture_output=True, check=False
    )
    return listed.returncode == 0


def test_an_environment_is_made_once(first: tuple[Path, tuple[int, str]]) -> None:
    clone, said = first
    assert said == (0, "")
    assert has_package(clone)
    log = (clone / ".venv/install.log").stat().st_mtime_ns
    assert made(clone) == (0, "")
    assert (clone / ".venv/install.log").stat().st_mtime_ns == log


def test_the_tests_add_to_the_environment_of_the_demo(made_clone: Path) -> None:
    (made_clone / ".venv/kept").touch()
    assert made(made_clone, "test") == (0, "")
    assert (made_clone / ".venv/kept").exists()
    assert "requirements.lock" in json.loads((made_clone / ".venv/keepstone.json").read_text())


def test_an_interrupted_environment_is_made_again(clone: Path) -> None:
    (clone / ".venv/bin").mkdir(parents=True)
    (clone / ".venv/bin/python").touch()
    assert made(clone) == (0, "")
    assert has_package(clone)


def test_another_lock_makes_another_environment(made_clone: Path) -> None:
    (made_clone / ".venv/left-over").touch()
    (made_clone / "requirements-run.lock").write_text("# another one\n")
    assert made(made_clone) == (0, "")
    assert not (made_clone / ".venv/left-over").exists()


def test_a_moved_clone_makes_its_environment_again(made_clone: Path) -> None:
    moved = made_clone.rename(made_clone.parent / "moved")
    assert made(moved) == (0, "")
    assert has_package(moved)


def test_a_failed_installation_is_not_taken_for_a_whole_one(made_clone: Path) -> None:
    (made_clone / "requirements.lock").write_text(MISSING)
    status, told = made(made_clone, "test")
    assert status == 1
    assert told.startswith("keepstone: ERROR: No matching distribution found for nowhere-to-be-found==1.0")
    assert not (made_clone / ".venv/keepstone.json").exists()


def test_a_proxy_that_refuses_is_named(made_clone: Path) -> None:
    (made_clone / "requirements.lock").write_text(MISSING)
    status, told = made(
        made_clone,
        "test",
        PIP_NO_INDEX="0",
        PIP_INDEX_URL="https://127.0.0.1:9/simple",
        PIP_PROXY="http://127.0.0.1:9",
    )
    assert (status, told) == (
        1,
        "keepstone: the proxy refused the connection: check HTTPS_PROXY and 'pip config list',"
        " then run make again",
    )


def test_an_index_that_cannot_be_reached_is_named(made_clone: Path) -> None:
    (made_clone / "requirements.lock").write_text(MISSING)
    unreachable = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "NO_PROXY": "*"}
    status, told = made(made_clone, "test", **unreachable)
    assert status == 1
    assert told.startswith("keepstone: the package index cannot be reached: check the network")


def test_an_old_python_is_refused(clone: Path) -> None:
    status, told = made(clone, before="sys.version_info = (3, 9); sys.version = '3.9.18 (main)'")
    assert status == 1
    assert told.startswith("keepstone: Python 3.11 or newer is needed")
    assert told.endswith("is 3.9.18: try make PYTHON=python3.12")
    assert not (clone / ".venv").exists()


def test_a_python_without_venv_is_refused(clone: Path) -> None:
    status, told = made(clone, before="sys.modules['ensurepip'] = None")
    assert status == 1
    assert "has no venv module: install it (Debian and Ubuntu: apt-get install python3-venv)" in told


def test_a_full_disk_is_refused_with_what_is_needed(clone: Path) -> None:
    full = "shutil.disk_usage = lambda path: type('Usage', (), {'free': 3e8})"
    status, told = made(clone, before=full)
    assert status == 1
    assert told.startswith("keepstone: 0.8 GB are needed in ")
    assert told.endswith("and 0.3 GB are free: free some and run make again")
    assert not (clone / ".venv").exists()


def test_without_a_recent_node_its_tests_are_left_out_in_one_line() -> None:
    planned = subprocess.run(
        [shutil.which("make") or "make", "--dry-run", "test", "NODE=this is Node 18.20.8"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert (
        "Left out: packages/voltagent, which needs npm and Node 20.15 or newer (this is Node 18.20.8)."
        in planned
    )
    assert "npm --prefix" not in planned


def test_tests_that_are_left_out_are_named_in_one_line(tmp_path: Path) -> None:
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/web/test_settings.py"]
    ended = subprocess.run(
        tests, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PATH": str(tmp_path)}, check=True
    )
    (line,) = [line for line in ended.stdout.splitlines() if line.startswith("Left out: ")]
    assert line.endswith("tests: no Chromium is here (Debian: apt-get install chromium-headless-shell)")
