"""The container: a user without rights, a volume, a health check, and the packages of the tests."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from tests.scripts import script

ROOT = Path(__file__).parent.parent
container = script("container")
INSTRUCTIONS = container.instructions((ROOT / "Dockerfile").read_text("utf-8"))


def words(name: str) -> list[str]:
    return [said for instruction, said in INSTRUCTIONS if instruction == name]


def test_image_runs_as_a_user_without_rights() -> None:
    last = [name for name, _ in INSTRUCTIONS if name in {"USER", "CMD"}]
    assert (last, words("USER")) == (["USER", "CMD"], ["10001"])


def test_image_has_a_volume_and_a_health_check_of_the_server() -> None:
    assert words("VOLUME") == ["/data"]
    (check,) = words("HEALTHCHECK")
    assert "/v1/health" in json.loads(check[check.index("[") :])[2]


def test_packages_of_the_image_are_those_of_the_tests() -> None:
    pinned = re.compile(r"^([\w.-]+)(?:\[.*?\])?==(\S+)", re.MULTILINE)
    image, tests = (
        set(pinned.findall((ROOT / name).read_text("utf-8")))
        for name in ("requirements-image.lock", "requirements.lock")
    )
    assert image
    assert image <= tests


def test_every_copied_file_reaches_the_builder() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    copied = {name for said in words("COPY") if "--from" not in said for name in said.split()[:-1]}
    assert {f"!{name.removeprefix('./')}" for name in copied} <= set(ignored)
    assert all((ROOT / name).exists() for name in copied)


def test_every_instruction_is_one_that_the_script_carries_out(tmp_path: Path) -> None:
    for name, said in INSTRUCTIONS:
        if name not in {"FROM", "RUN", "COPY"}:
            stage = container.Stage.__new__(container.Stage)
            stage.root, stage.variables = tmp_path, {}
            stage.step(name, said, {})


def test_an_unknown_instruction_ends_the_script(tmp_path: Path) -> None:
    stage = container.Stage.__new__(container.Stage)
    with pytest.raises(SystemExit, match="ONBUILD"):
        stage.step("ONBUILD", str(tmp_path), {})


def test_composed_server_waits_for_its_database_and_names_no_password() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    assert services["keepstone"]["depends_on"]["database"] == {"condition": "service_healthy"}
    assert services["keepstone"]["ports"] == ["127.0.0.1:8765:8765"]
    secrets = [value for service in services.values() for value in service["environment"].values()]
    assert [value for value in secrets if "PASSWORD" in value and ":?" not in value] == []


def test_database_of_compose_has_the_extension_that_homes_need() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    assert services["database"]["image"].startswith("pgvector/pgvector:")
    assert (
        "postgres"
        in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    )
