"""Other processes that use a home: one that does something and ends, and one that kills itself."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from tests.warm import warm

from keepstone import Home


def elsewhere(home: Home, code: str) -> None:
    """Let another process use the session ``s`` of the agent ``a``."""
    program = (
        "import sys, keepstone\n"
        "with keepstone.open(sys.argv[1], durability='os', embedder='none') as home:\n"
        f"    s = home.agent('a').session('s')\n    {code}\n"
    )
    assert _status(program, home.root) == 0


def run_until_killed(root: Path, patch: str, act: str) -> None:
    """Let a process open a home, replace functions, and act until one of them ends it by ``kill()``."""
    program = (
        "import os, signal, sys, keepstone\n"
        "def kill(*_, **__):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "home = keepstone.open(sys.argv[1], durability='os', embedder='none')\n"
        f"agent = home.agent('a')\n{patch}\n{act}\n"
    )
    assert _status(program, root) == -signal.SIGKILL


def _status(program: str, root: Path) -> int:
    return subprocess.run([*warm(), "-c", program, str(root)], check=False, timeout=60).returncode
