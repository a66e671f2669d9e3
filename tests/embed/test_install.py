"""A model is installed whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock
from tests.embed.tiny import FILES, TINY, everything_below, no_progress

from keepstone.embed import install as installing
from keepstone.embed.install import install, remove
from keepstone.embed.installed import state_of
from keepstone.embed.sources import folder
from keepstone.errors import EmbedderUnavailableError, LockTimeoutError

WHOLE = ["tiny", "tiny/model.safetensors", "tiny/tokenizer.json"]


def test_an_installed_model_has_the_files_of_its_folder(models: Path, tiny_folder: Path) -> None:
    assert install(TINY, folder(tiny_folder), no_progress) == models / "tiny"
    assert {name: (models / "tiny" / name).read_bytes() for name in FILES} == FILES
    assert everything_below(models) == WHOLE
    assert state_of(TINY) == "installed"


def test_progress_goes_up_to_the_bytes_of_the_model(models: Path, tiny_folder: Path) -> None:
    told: list[tuple[int, int]] = []
    install(TINY, folder(tiny_folder), lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert len(told) > 2
    assert told[-1] == (TINY.size, TINY.size)
    assert models.is_dir()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (FILES["model.safetensors"][:-1], r"ended after 2399999 of 2400000 bytes"),
        (b"", "ended after 0 of 2400000 bytes"),
        (FILES["model.safetensors"] + b"!", "has a wrong hash"),
        (b"!" + FILES["model.safetensors"][1:], "has a wrong hash"),
    ],
)
def test_a_short_or_changed_file_is_refused_and_leaves_nothing(
    models: Path, tiny_folder: Path, data: bytes, message: str
) -> None:
    (tiny_folder / "model.safetensors").write_bytes(data)
    with pytest.raises(EmbedderUnavailableError, match=message):
        install(TINY, folder(tiny_folder), no_progress)
    assert everything_below(models) == []


def test_an_interrupted_installation_leaves_nothing_behind(models: Path, tiny_folder: Path) -> None:
    def interrupt(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install(TINY, folder(tiny_folder), interrupt)
    assert everything_below(models) == []


def test_what_a_killed_installation_left_is_cleared_away(models: Path, tiny_folder: Path) -> None:
    (models / ".tmp-killed" / "tiny").mkdir(parents=True)
    install(TINY, folder(tiny_folder), no_progress)
    assert everything_below(models) == WHOLE


def test_a_whole_model_is_not_installed_again(models: Path, tiny_folder: Path) -> None:
    install(TINY, folder(tiny_folder), no_progress)
    before = (models / "tiny").stat().st_ino
    install(TINY, folder(tiny_folder / "gone"), no_progress)
    assert (models / "tiny").stat().st_ino == before


@pytest.mark.parametrize("damage", [b"", b"!" + FILES["model.safetensors"][1:]])
def test_a_damaged_model_is_replaced_by_a_whole_one(models: Path, tiny_folder: Path, damage: bytes) -> None:
    install(TINY, folder(tiny_folder), no_progress)
    (models / "tiny" / "model.safetensors").write_bytes(damage)
    install(TINY, folder(tiny_folder), no_progress)
    assert (models / "tiny" / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert everything_below(models) == WHOLE


def test_a_damaged_model_stays_until_a_whole_one_is_there(models: Path, tiny_folder: Path) -> None:
    install(TINY, folder(tiny_folder), no_progress)
    (models / "tiny" / "tokenizer.json").unlink()
    (tiny_folder / "tokenizer.json").write_bytes(b"[]")
    with pytest.raises(EmbedderUnavailableError):
        install(TINY, folder(tiny_folder), no_progress)
    assert state_of(TINY) == "damaged"


def test_a_removed_model_leaves_nothing_behind(models: Path, tiny_folder: Path) -> None:
    install(TINY, folder(tiny_folder), no_progress)
    assert remove(TINY) is True
    assert everything_below(models) == []
    assert state_of(TINY) == "missing"


def test_removing_what_is_not_installed_writes_nothing(models: Path) -> None:
    assert remove(TINY) is False
    assert not models.exists()


def test_two_installations_at_a_time_do_not_mix(
    models: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "_WAIT", 0)
    models.mkdir()
    with (
        FileLock(models / ".lock", is_singleton=False),
        pytest.raises(LockTimeoutError, match="another process is installing"),
    ):
        install(TINY, folder(tiny_folder), no_progress)
    assert everything_below(models) == []
