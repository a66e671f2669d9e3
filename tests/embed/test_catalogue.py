"""The models that can be installed are pinned, byte for byte."""

from __future__ import annotations

import re

import pytest

from keepstone.embed.catalogue import MINILM, MODELS, Model, model_named

EVERY = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown model 'huge': choose from minilm"):
        model_named("huge")
    assert model_named("minilm") is MINILM


def test_a_very_long_name_is_not_repeated_whole() -> None:
    with pytest.raises(ValueError, match="choose from minilm") as caught:
        model_named("x" * 9000)
    assert len(str(caught.value)) < 200


@EVERY
def test_a_model_has_its_own_name_and_has_the_size_of_its_files(model: Model) -> None:
    assert MODELS[model.name] is model
    assert model.size == sum(file.size for file in model.files) > 0


@EVERY
def test_each_file_is_a_plain_name_with_a_whole_digest(model: Model) -> None:
    assert all(re.fullmatch(r"[\w.-]+", file.name) for file in model.files)
    assert all(re.fullmatch(r"[0-9a-f]{64}", file.sha256) for file in model.files)
    assert len({file.name for file in model.files}) == len(model.files)


@EVERY
def test_a_model_comes_from_one_version_of_its_package_and_its_repository(model: Model) -> None:
    assert re.fullmatch(r"[\w-]+==\d+(\.\d+)*(\.post\d+)?", model.package)
    assert re.search("/[0-9a-f]{40}(/|$)", model.address)
    assert not model.package_folder.startswith("/")
    assert all(
        ".." not in folder for folder in (model.package_folder, *(file.folder for file in model.files))
    )
