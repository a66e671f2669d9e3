"""Codes and messages of errors for ``--json`` and the server."""

from __future__ import annotations

import re

import pytest

from keepstone import errors
from keepstone.errors import EntryNotFoundError, KeepstoneError, LockTimeoutError, SourceError
from keepstone.operations.error_codes import FORESEEN, code_of, codes, message_of, word_of

PUBLIC = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, KeepstoneError)
]


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("EntryNotFoundError", "entry_not_found"),
        ("IsAFolderError", "is_a_folder"),
        ("HTTPTimeoutError", "http_timeout"),
        ("StoreError", "store"),
        ("Error", ""),
        ("Warned", "warned"),
    ],
)
def test_a_code_is_the_name_of_the_class_in_snake_case(name: str, word: str) -> None:
    assert word_of(type(name, (Exception,), {})) == word


@pytest.mark.parametrize("kind", PUBLIC)
def test_every_error_of_ours_has_a_listed_code(kind: type[KeepstoneError]) -> None:
    error = kind.__new__(kind)
    assert isinstance(error, FORESEEN)
    if kind is not KeepstoneError:
        assert code_of(error) in codes()


def test_codes_are_words_each_listed_once_in_order() -> None:
    assert codes() == sorted(set(codes()))
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes())


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("x"), "invalid_argument"),
        (TypeError("x"), "invalid_argument"),
        (FileExistsError("x"), "invalid_argument"),
        (NotADirectoryError("x"), "invalid_argument"),
        (SourceError("x"), "invalid_argument"),
        (OSError("x"), "system"),
        (PermissionError("x"), "system"),
        (EntryNotFoundError("x"), "entry_not_found"),
        (LockTimeoutError("x"), "lock_timeout"),
    ],
)
def test_a_built_in_error_is_an_invalid_argument_or_the_systems(error: Exception, code: str) -> None:
    assert code_of(error) == code


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FileNotFoundError(2, "No such file or directory", "/x/y"), "No such file or directory: /x/y"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("by hand"), "by hand"),
        (EntryNotFoundError("no entry 'x'"), "no entry 'x'"),
        (ValueError(""), "ValueError"),
    ],
)
def test_a_message_names_the_file_and_no_error_number(error: Exception, message: str) -> None:
    assert message_of(error) == message


def test_a_key_error_of_ours_is_shown_without_quotation_marks() -> None:
    assert message_of(EntryNotFoundError("no entry 'x' in session 'y'")) == "no entry 'x' in session 'y'"
