"""Environments of the peers, and the measuring processes in them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BENCH = ROOT / ".bench"
"""Folder of environments, rows and stores; git ignores it."""
REQUIREMENTS = Path(__file__).parent / "requirements"
SHARED = {"sqlite_vec_partition": "sqlite_vec"}
"""Peers that use another peer's environment."""


class StepFailedError(RuntimeError):
    """A peer could not be installed, or one of its steps failed; the message is the last line of output."""


def environment(peer: str) -> Path:
    """Return the Python of a peer's environment, which is created on first use.

    Raises:
        StepFailedError: The peer's packages cannot be installed here.
    """
    name = SHARED.get(peer, peer)
    required = REQUIREMENTS / f"{name}.txt"
    sources = [required, ROOT / "pyproject.toml"] if name == "keepstone" else [required]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    folder = BENCH / "environments" / f"{name}-{digest}"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        print(f"installing {name} ...", flush=True)
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        _run([*pip, "install", "-r", str(required)])
        (folder / "installed").touch()
    return python


def step(name: str, peer: str, data: Path, folder: Path, timeout: float) -> dict[str, Any]:
    """Run a step of a peer in a new process and return its figures.

    Raises:
        StepFailedError: The step failed, or took longer than ``timeout`` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="keepstone-bench-") as place:
        answer = Path(place) / "figures.json"
        arguments = [name, peer, str(data), str(folder), str(answer)]
        _run([str(environment(peer)), "-m", "bench.peers.worker", *arguments], timeout)
        figures: dict[str, Any] = json.loads(answer.read_text())
        return figures


def empty(folder: Path) -> Path:
    """Remove a folder that an earlier run left, and return its path."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


def _run(command: list[str], timeout: float = 1800) -> None:
    # A separate cache folder keeps packages from reading or writing the user's cache.
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(BENCH / "cache")}
    try:
        subprocess.run(  # noqa: S603  Our own commands.
            command, check=True, cwd=ROOT, env=surroundings, timeout=timeout, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        raise StepFailedError(f"took longer than {timeout:.0f} s") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or [f"ended with {error.returncode}"]
        raise StepFailedError(said[-1].replace(str(ROOT), "")[:200]) from None
