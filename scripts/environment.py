#!/usr/bin/env python3
"""Create .venv with the packages for the demo or for the tests.

python scripts/environment.py run    # the library with its model, server and chat: requirements-run.lock
python scripts/environment.py test   # also what tests and checks need: requirements.lock

The file ``.venv/keepstone.json`` records what was installed. It is written last: an environment without this
file was interrupted, and is created again. An environment whose lock file has changed is also created again,
so that no old package stays. This script runs on every Python 3, so that it can refuse an old version with a
clear message.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STATE = VENV / "keepstone.json"
LOG = VENV / "install.log"
OLDEST = (3, 11)
LOCKS = {"run": ["requirements-run.lock"], "test": ["requirements-run.lock", "requirements.lock"]}
NEEDED = {"run": 0.8, "test": 2.5}
"""Free disk space needed to create the environment, in GB."""
UNREACHABLE = (
    "the package index cannot be reached: check the network and 'pip config list', then run make again"
)
TROUBLE = {
    "no space left": "the disk is full: {needed} GB are needed in {venv}; free some and run make again",
    "proxy": "the proxy refused the connection: check HTTPS_PROXY and 'pip config list', then run make again",
    "failed to establish a new connection": UNREACHABLE,
    "name resolution": UNREACHABLE,
    "do not match the hashes": "a package differs from its lock: run 'make clean', then make again",
}
"""Phrases in pip's log, in lower case, and the message for each."""


def main(arguments: list) -> int:
    """Create or update the environment that ``arguments`` name, and return the exit status."""
    if len(arguments) != 1 or arguments[0] not in LOCKS:
        sys.exit(__doc__)
    (wanted,) = arguments
    _check_python()
    digests = {
        name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest()
        for name in [*LOCKS["test"], "pyproject.toml"]
    }
    state = _state()
    locks = [lock for lock in LOCKS[wanted] if state.get(lock) != digests[lock]]
    is_new = state.get("root") != str(ROOT) or any(lock in state for lock in locks)
    if not is_new and not locks and state["pyproject.toml"] == digests["pyproject.toml"]:
        return 0
    if is_new:
        state, locks = {"root": str(ROOT)}, LOCKS[wanted]
        _make(wanted)
    elif STATE.exists():
        STATE.unlink()  # Until the installation ends, the environment counts as interrupted.
    for lock in locks:
        print(f"Installing what {lock} names into .venv (once, about a minute) ...", flush=True)
        _pip(wanted, "install", "--require-hashes", "--no-compile", "--no-deps", "--retries", "2", "-r", lock)
        state[lock] = digests[lock]
    _pip(wanted, "install", "--no-deps", "--no-build-isolation", "-e", ".")
    state["pyproject.toml"] = digests["pyproject.toml"]
    part = VENV / "keepstone.json.tmp"
    part.write_text(json.dumps(state, indent=1), encoding="utf-8")
    part.replace(STATE)
    return 0


def _check_python() -> None:
    version = sys.version.split()[0]
    if sys.version_info < OLDEST:
        _stop(
            f"Python 3.11 or newer is needed, and {sys.executable} is {version}: try make PYTHON=python3.12"
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        _stop(
            f"Python {version} has no venv module: install it (Debian and Ubuntu: apt-get install"
            " python3-venv), or name another Python: make PYTHON=python3.12"
        )


def _make(wanted: str) -> None:
    """Replace the environment by an empty one."""
    if os.path.lexists(VENV):
        shutil.rmtree(VENV)
    free = shutil.disk_usage(ROOT).free / 1e9
    if free < NEEDED[wanted]:
        _stop(
            f"{NEEDED[wanted]} GB are needed in {ROOT}, and {free:.1f} GB are free:"
            " free some and run make again"
        )
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(VENV)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if made.returncode != 0:
        _explain(wanted, made.stdout.decode("utf-8", "replace"))
    if os.environ.get("KEEPSTONE_PIP"):
        _pip(wanted, "install", f"pip=={os.environ['KEEPSTONE_PIP']}")


def _pip(wanted: str, *arguments: str) -> None:
    command = [str(VENV / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    with LOG.open("ab+") as log:
        begin = log.tell()
        status = subprocess.run(command, cwd=str(ROOT), stdout=log, stderr=log, check=False).returncode
        log.seek(begin)
        said = log.read().decode("utf-8", "replace")
    if status != 0:
        _explain(wanted, said)


def _explain(wanted: str, said: str) -> None:
    """Exit with one line: a known cause and its remedy, or the last error and the path of the log."""
    for sign, remedy in TROUBLE.items():
        if sign in said.lower():
            _stop(remedy.format(needed=NEEDED[wanted], venv=VENV))
    lines = (
        [line for line in said.splitlines() if line.startswith("ERROR")] or said.splitlines() or ["no output"]
    )
    _stop(f"{lines[-1]} (all of it is in {LOG})")


def _stop(message: str) -> None:
    sys.exit(f"keepstone: {message}")


def _state() -> dict:
    try:
        return json.loads(STATE.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # The file is missing or damaged.
        return {}


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        _stop("interrupted; the next make begins again")
