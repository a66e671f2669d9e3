"""What goes into the packages of a release, as hatchling builds them."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
_PYTHON = re.compile(r"Programming Language :: Python :: 3\.(\d+)")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True)
    return folder


def names_in_sdist(folder: Path) -> list[str]:
    (path,) = folder.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return [name.partition("/")[2] for name in archive.getnames()]


def test_sdist_holds_source_tests_and_texts_only(built: Path) -> None:
    tops = {name.partition("/")[0] for name in names_in_sdist(built)}
    texts = {"README.md", "CHANGELOG.md", "LICENSE", "NOTICE", "PKG-INFO", "pyproject.toml", ".gitignore"}
    assert tops == {"src", "tests", "docs"} | texts
    pages = [name for name in names_in_sdist(built) if name.startswith("docs/")]
    assert [name for name in pages if not name.endswith(".md")] == ["docs/recall.svg"]


def test_wheel_has_the_package_its_licence_and_its_notice(built: Path) -> None:
    (path,) = built.glob("*.whl")
    names = zipfile.ZipFile(path).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"keepstone"}
    licences = [name.rpartition("/")[2] for name in names if "/licenses/" in name]
    assert sorted(licences) == ["LICENSE", "NOTICE"]


def test_page_of_the_package_is_the_readme(built: Path) -> None:
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("dist-info/METADATA"))
        metadata = wheel.read(name).decode()
    assert "Description-Content-Type: text/markdown" in metadata
    assert "\n# keepstone\n" in metadata


def test_classifiers_are_the_pythons_that_the_page_about_stability_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    minors = [int(found[1]) for found in map(_PYTHON.fullmatch, project["classifiers"]) if found]
    assert minors == [*range(minors[0], minors[-1] + 1)]
    assert f"today 3.{minors[0]} to 3.{minors[-1]}" in (ROOT / "docs/stability.md").read_text("utf-8")
    assert project["requires-python"] == f">=3.{minors[0]}"
