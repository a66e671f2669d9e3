"""Where models lie, and whether they are whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.embed.tiny import TINY

from keepstone.embed.catalogue import MINILM
from keepstone.embed.installed import check_file, model_folder, models_folder, state_of
from keepstone.errors import EmbedderUnavailableError


def test_models_lie_in_the_users_data_folder(user_folder: Path) -> None:
    assert models_folder().is_relative_to(user_folder)
    assert model_folder(MINILM).parts[-2:] == ("models", "minilm")


def test_a_variable_names_another_folder_of_models(models: Path) -> None:
    assert model_folder(TINY) == models / "tiny"


def test_a_model_that_lacks_a_file_is_damaged(models: Path) -> None:
    (models / "tiny").mkdir(parents=True)
    assert state_of(TINY) == "damaged"


def test_a_file_that_is_none_of_the_models_is_refused(tiny_folder: Path) -> None:
    with pytest.raises(EmbedderUnavailableError, match="has a wrong hash: its sha256 is"):
        check_file(tiny_folder / "tokenizer.json", TINY.files[0])
    check_file(tiny_folder / "tokenizer.json", TINY.files[1])


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        EmbedderUnavailableError, match=r"cannot read the model's file .*nowhere: No such file"
    ):
        check_file(tmp_path / "nowhere", TINY.files[0])
