"""Folders of an agent that is purged: put out of sight, then removed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from keepstone.store.files import dying_folders
from keepstone.store.files.dying_folders import number_of, put_away, remove_tree, rename


def made(*folders: Path) -> list[Path]:
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "file").touch()
    return list(folders)


def test_folders_get_names_under_which_nobody_looks_for_them(tmp_path: Path) -> None:
    put_away(made(tmp_path / "one" / "a", tmp_path / "two" / "a"))
    names = [path.name for sub in ("one", "two") for path in (tmp_path / sub).iterdir()]
    assert len(names) == 2
    assert all(re.fullmatch(r"\.purge\.a\.\d+", name) for name in names)


def test_missing_folders_and_links_are_left_alone(tmp_path: Path) -> None:
    (target,) = made(tmp_path / "target")
    (tmp_path / "a").symlink_to(target)
    put_away([tmp_path / "a", tmp_path / "none"])
    assert (tmp_path / "a").is_symlink()
    assert (target / "file").exists()


def test_a_kill_between_two_renames_leaves_a_name_that_tells_the_other_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = made(tmp_path / "one" / "a", tmp_path / "two" / "a")
    number = number_of(second)

    def once(folder: Path, other: Path) -> None:
        rename(folder, other)
        raise KeyboardInterrupt

    monkeypatch.setattr(dying_folders, "rename", once)
    with pytest.raises(KeyboardInterrupt):
        put_away([first, second])
    (name,) = (path.name for path in (tmp_path / "one").iterdir())
    assert name.endswith(f"-{number}")
    assert second.is_dir()


def test_a_folder_has_a_number_and_anything_else_none(tmp_path: Path) -> None:
    (folder,) = made(tmp_path / "a")
    (tmp_path / "link").symlink_to(folder)
    assert number_of(folder) == folder.stat().st_ino
    assert [number_of(path) for path in (tmp_path / "link", folder / "file", tmp_path / "none")] == [None] * 3


def test_a_folder_that_another_process_renamed_is_no_error(tmp_path: Path) -> None:
    rename(tmp_path / "none", tmp_path / "other")
    assert list(tmp_path.iterdir()) == []


def test_a_tree_is_removed_whole_and_only_once(tmp_path: Path) -> None:
    (folder,) = made(tmp_path / "a" / "b")
    remove_tree(folder.parent)
    remove_tree(folder.parent)
    assert list(tmp_path.iterdir()) == []


def test_files_that_others_make_during_the_removal_are_removed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder,) = made(tmp_path / "a")
    removed, tries = shutil.rmtree, list[Path]()

    def racing(path: Path) -> None:
        tries.append(path)
        if len(tries) == 1:
            raise OSError("directory not empty")
        removed(path)

    monkeypatch.setattr(shutil, "rmtree", racing)
    remove_tree(folder)
    assert (len(tries), folder.exists()) == (2, False)


def test_a_removal_that_the_system_forbids_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder,) = made(tmp_path / "a")

    def refused(_: Path) -> None:
        raise PermissionError("refused")

    monkeypatch.setattr(shutil, "rmtree", refused)
    with pytest.raises(PermissionError, match="refused"):
        remove_tree(folder)
