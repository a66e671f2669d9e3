#!/usr/bin/env python3
"""Run the steps of the Dockerfile without a daemon, in temporary root folders on this machine's system.

python scripts/container.py    # builds both stages, starts the server as its user, waits until it is healthy

Needs root on Linux. Each stage gets a folder as its root, in which this machine's system and Python are
mounted read-only. Files that the steps write stay in that folder, which is removed at the end. Base images
are not fetched, so this tests the steps, but not the image.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
SYSTEM = ("usr", "bin", "sbin", "lib", "lib64")
KEPT = re.compile(r"(PIP|SSL|HTTPS?|https?|NO|no)_|LANG$")
"""Environment variables of this machine that an installation may need."""
ATTEMPTS, PAUSE = 60, 0.5


class Stage:
    """A stage's root folder and current settings."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder, self.user = root, "/", "0"
        self.variables = {key: value for key, value in os.environ.items() if KEPT.match(key)}
        self.variables |= {
            "PATH": f"{Path(sys.base_prefix)}/bin:/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin"
        }
        self.start: list[str] = []
        self.health: list[str] = []
        for name in ("proc", "tmp", "dev", "opt", sys.base_prefix.strip("/")):
            (root / name).mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        shutil.copytree("/etc", root / "etc", symlinks=True, ignore_dangling_symlinks=True)

    def run(self, command: list[str], *, user: str = "0", quiet: bool = False) -> subprocess.Popen[bytes]:
        """Start a command in the root folder, in a separate mount namespace."""
        system = [f"/{name}" for name in SYSTEM if Path(f"/{name}").is_dir()]
        mounts = [f"mount --rbind /{name} {self.root}/{name}" for name in ("proc", "dev")]
        mounts += [
            f"mkdir -p {self.root}{path} && mount --rbind -o ro {path} {self.root}{path}"
            for path in (*system, sys.base_prefix)
        ]
        inner = ["env", "-i", *(f"{key}={value}" for key, value in self.variables.items()), *command]
        if user != "0":
            inner = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--", *inner]
        entered = f"cd {shlex.quote(self.folder)} && exec {shlex.join(inner)}"
        steps = " && ".join([*mounts, f"exec chroot {self.root} sh -c {shlex.quote(entered)}"])
        return subprocess.Popen(
            ["unshare", "--mount", "sh", "-ec", steps], stderr=subprocess.DEVNULL if quiet else None
        )

    def step(self, name: str, words: str, stages: dict[str, Stage]) -> None:
        """Execute one instruction."""
        match name:
            case "RUN":
                done = self.run(["sh", "-ec", words]).wait()
                if done != 0:
                    sys.exit(f"RUN {words} ended with status {done}")
            case "COPY":
                self._copy(shlex.split(words), stages)
            case "ENV":
                for pair in shlex.split(words):
                    key, _, value = pair.partition("=")
                    self.variables[key] = value
            case "WORKDIR":
                self.folder = words
                (self.root / words.strip("/")).mkdir(parents=True, exist_ok=True)
            case _:
                self._set(name, words)

    def _set(self, name: str, words: str) -> None:
        match name:
            case "USER":
                self.user = words
            case "CMD":
                self.start = json.loads(words)
            case "HEALTHCHECK":
                self.health = json.loads(words[words.index("[") :])
            case "VOLUME" | "EXPOSE":
                pass  # They only inform the container engine.
            case _:
                sys.exit(f"the Dockerfile has an instruction that this script does not know: {name}")

    def _copy(self, words: list[str], stages: dict[str, Stage]) -> None:
        source = ROOT
        if words[0].startswith("--from="):
            source = stages[words.pop(0).partition("=")[2]].root
        *names, target = words
        into = self.root / (target if target.startswith("/") else f"{self.folder}/{target}").strip("/")
        for name in names:
            path = source / name.strip("/")
            if path.is_dir():
                shutil.copytree(path, into, symlinks=True, dirs_exist_ok=True)
            else:
                into.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, into)


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile as names and arguments, without comments."""
    lines = re.sub(r"\\\n\s*", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [(name, words) for name, _, words in (line.partition(" ") for line in lines) if name]


def build(folder: Path) -> Stage:
    """Execute all instructions and return the last stage."""
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for name, words in instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")):
        print(f"{name} {words}", flush=True)
        if name == "FROM":
            _, _, alias = words.partition(" AS ")
            stages[alias] = stage = Stage(folder / (alias or "final"))
        elif stage is not None:
            stage.step(name, words, stages)
    return stages[""]


def serve(stage: Stage) -> None:
    """Create a token, start the server as the image does, and wait until its health check passes."""
    if stage.run(["keepstone", "token", "create", "first"], user=stage.user).wait() != 0:
        sys.exit("no token could be made as the image's user")
    server = stage.run(stage.start, user=stage.user)
    try:
        for _ in range(ATTEMPTS):
            if stage.run(stage.health, user=stage.user, quiet=True).wait() == 0:
                print("healthy, as user", stage.user)
                return
            time.sleep(PAUSE)
        sys.exit("the server did not become healthy")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)


def main() -> int:
    """Build and serve; return the exit status."""
    if os.geteuid() != 0 or not sys.platform.startswith("linux"):
        print("Left out: the Dockerfile's steps, which need root on Linux.")
        return 0
    with TemporaryDirectory() as folder:
        serve(build(Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
