"""The version and the owner's fields are in one place, and every file that repeats them agrees."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from tests.scripts import script

ROOT = Path(__file__).parent.parent
fields = script("release_fields")
FILLED = """
repository = "https://github.com/example/keepstone"
documentation = "https://example.org/keepstone/"
security = "security@example.org"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in [*fields.PLACES, "owner.toml"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def filled(tree: Path) -> Path:
    (tree / "owner.toml").write_text(FILLED)
    assert fields.main([], tree) == 0
    return tree


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_every_file_agrees_with_the_version_and_the_owners_fields() -> None:
    assert fields.outdated(ROOT) == {}


def test_installed_distribution_has_the_version_of_the_project() -> None:
    assert version("keepstone") == fields.facts(ROOT).version


def test_a_new_version_reaches_every_file_that_names_it(tree: Path) -> None:
    project = tree / "pyproject.toml"
    project.write_text(project.read_text().replace('\nversion = "0.1.0"', '\nversion = "7.8.9"'))
    fields.main([], tree)
    versioned = [name for name in fields.PLACES if "7.8.9" in (tree / name).read_text()]
    assert sorted(versioned) == sorted(set(fields.PLACES) - fields.WITHOUT_VERSION)


def test_a_file_with_another_version_is_named(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = tree / "server.json"
    server.write_text(server.read_text().replace("0.1.0", "0.2.0"))
    assert fields.main(["--check"], tree) == 1
    assert capsys.readouterr().out.startswith("server.json is out of date: ")


def test_nothing_is_named_while_the_owner_has_not_said_it() -> None:
    if fields.facts(ROOT).repository:
        pytest.skip("the owner has filled in the fields")
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in fields.PLACES}
    addresses = re.compile(r"^\W*(repository|repo_url|site_url|homepage|bugs|urls|Source)\W", re.MULTILINE)
    assert {name: found for name, text in texts.items() if (found := addresses.findall(text))} == {}


def test_empty_fields_refuse_a_release(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "owner.toml").write_text('repository = ""\ndocumentation = ""\nsecurity = ""\n')
    assert fields.main(["--release"], tree) == 1
    said = capsys.readouterr().out
    assert "repository is empty" in said
    assert "security is empty" in said


def test_a_malformed_address_refuses_a_release(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "owner.toml").write_text(FILLED.replace("security@example.org", "nobody"))
    fields.main([], tree)
    assert fields.main(["--release"], tree) == 1
    assert "security 'nobody'" in capsys.readouterr().out


def test_a_tag_that_is_not_the_version_refuses_a_release(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    version = fields.facts(filled(tree)).version
    assert fields.main(["--release", f"v{version}"], tree) == 0
    assert fields.main(["--release", "v9.9.9"], tree) == 1
    assert "'v9.9.9' is not the version" in capsys.readouterr().out


def test_filled_fields_allow_a_release_and_can_be_taken_out_again(tree: Path) -> None:
    before = {name: (tree / name).read_text() for name in fields.PLACES}
    owner = (tree / "owner.toml").read_text()
    assert fields.main(["--release"], filled(tree)) == 0
    (tree / "owner.toml").write_text(owner)
    fields.main([], tree)
    assert {name: (tree / name).read_text() for name in fields.PLACES} == before


def test_the_packages_link_to_the_repository(tree: Path) -> None:
    project = tomllib.loads((filled(tree) / "pyproject.toml").read_text())["project"]
    assert list(project["urls"]) == ["Homepage", "Documentation", "Source", "Changelog", "Issues"]
    package = read_json(tree / "packages/voltagent/package.json")
    assert package["repository"]["url"] == "git+https://github.com/example/keepstone.git"
    assert package["bugs"] == {"url": "https://github.com/example/keepstone/issues"}


def test_mcps_registry_and_the_packages_page_have_one_name(tree: Path) -> None:
    server = read_json(filled(tree) / "server.json")
    assert server["name"] == "io.github.example/keepstone"
    assert "mcp-name: io.github.example/keepstone " in (tree / "pyproject.toml").read_text()


def targets_of_the_packages_page(tree: Path) -> list[str]:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    settings = tomllib.loads((tree / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]
    for rule in settings["fancy-pypi-readme"]["substitutions"]:
        page = re.sub(rule["pattern"], rule["replacement"], page)
    return re.findall(r"\]\(([^)]+)\)", page)


def test_links_of_the_packages_page_are_absolute(tree: Path) -> None:
    targets = targets_of_the_packages_page(filled(tree))
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    assert "https://github.com/example/keepstone/raw/v$HFPR_VERSION/docs/recall.svg" in targets


def test_the_packages_page_has_no_relative_link_without_a_repository(tree: Path) -> None:
    (tree / "owner.toml").write_text('repository = ""\ndocumentation = ""\nsecurity = ""\n')
    fields.main([], tree)
    targets = targets_of_the_packages_page(tree)
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
