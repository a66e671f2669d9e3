"""A Python that has imported keepstone already: ``[*warm(), "-m", "keepstone", "list"]`` starts in no time.

A test that starts a process waits for imports most of the time. Here a process imports once and then only
forks: ``parent.py``. What a test starts is ``client.py``, which hands its arguments, environment, folder,
limits and open files to a fork, passes signals on, and ends as the fork ends. So a test sees a process like
any other, in which modules are loaded that nobody has asked for. Where the client is killed by SIGKILL, the
fork is killed a moment later: a test must not rely on its end at once. Tests of imports, of start-up and of
what is left by a process that was killed use ``sys.executable``.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

_HERE = Path(__file__).parent


@cache
def warm() -> Sequence[str]:
    """Return the first words of a command line: a Python with the package and what it needs."""
    if not hasattr(os, "fork"):
        return (sys.executable,)
    folder = mkdtemp(prefix="warm")
    place = f"{folder}/socket"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen(64)
        parent = subprocess.Popen(
            [sys.executable, _HERE / "parent.py", str(listening.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
            cwd=folder,
        )

    # It ends with its standard input, which ends with this process at the latest.
    atexit.register(parent.communicate)
    # Without the site's packages the client is there in 20 milliseconds.
    return (sys.executable, "-I", "-S", str(_HERE / "client.py"), place)
