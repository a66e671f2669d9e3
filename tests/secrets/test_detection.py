"""Secrets in texts and lines: what is found, where it is said to be, and what masking leaves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.secrets.samples import SECRETS, TOKEN, letters

from keepstone.secrets.detection import UNTOUCHED, is_password, kinds_in, masked, placeholder, secrets_in


def found(record: dict[str, Any]) -> list[tuple[str, str]]:
    return [(secret.kind, secret.where) for secret in secrets_in(record)]


def test_each_kind_is_named_once_in_the_order_of_the_table() -> None:
    stripe, other = "sk_live_" + letters(24), "gho_" + letters(36)
    assert kinds_in(f"{stripe} {TOKEN} {other}") == ["GitHub token", "Stripe key"]


def test_every_secret_of_a_text_is_masked() -> None:
    assert masked(f"{TOKEN}, {TOKEN}") == "[secret: GitHub token], [secret: GitHub token]"


@pytest.mark.parametrize("text", ["", "ghp_", "a text without any"])
def test_a_text_without_a_secret_stays(text: str) -> None:
    assert (kinds_in(text), masked(text)) == ([], text)


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in SECRETS}))
def test_a_placeholder_is_not_taken_for_a_secret(kind: str) -> None:
    assert kinds_in(f"use {placeholder(kind)} here, api_key: {placeholder(kind)}") == []


@given(st.text(), st.sampled_from(SECRETS), st.text())
def test_masking_twice_changes_no_more_than_once(before: str, secret: tuple[str, str], after: str) -> None:
    text = masked(f"{before} {secret[1]} {after}")
    assert secret[1] not in text
    assert masked(text) == text


# Places in a line


@pytest.mark.parametrize(
    ("record", "where"),
    [
        ({"text": TOKEN}, "text"),
        ({"id": TOKEN}, "id"),
        ({"tags": ["ok", TOKEN]}, "tags[1]"),
        ({"data": {"steps": [{"said": [1, TOKEN]}]}}, "data.steps[0].said[1]"),
    ],
)
def test_a_secret_is_named_by_the_keys_that_lead_to_it(record: dict[str, Any], where: str) -> None:
    assert found(record) == [("GitHub token", where)]


def test_a_key_that_is_a_secret_is_found_and_not_shown() -> None:
    assert found({"data": {TOKEN: 1}}) == [("GitHub token", "data.[secret: GitHub token]")]


def test_a_path_below_a_key_that_is_a_secret_does_not_show_it() -> None:
    assert [where for _, where in found({"data": {TOKEN: {"x": TOKEN}}})] == [
        "data.[secret: GitHub token]",
        "data.[secret: GitHub token].x",
    ]


@pytest.mark.parametrize("key", sorted(UNTOUCHED))
def test_keys_without_text_of_the_caller_are_not_searched(key: str) -> None:
    assert found({key: TOKEN}) == []


def test_values_in_a_list_have_the_name_of_its_key() -> None:
    assert found({"data": {"passwords": ["x"], "password": ["hunter22pw"]}}) == [
        ("password", "data.password[0]")
    ]


# Values named by their key


@pytest.mark.parametrize("key", ["password", "DB_PASSWORD", "apiKey", "client_secret", "access_token"])
def test_a_value_is_a_password_by_the_end_of_its_key(key: str) -> None:
    assert is_password(key, "a1b2c3d4e5f6a7b8")
    assert not is_password(f"{key}_note", "a1b2c3d4e5f6a7b8")


@pytest.mark.parametrize("value", ["short1", "two words 1", "", "'quoted1'"])
def test_a_value_is_no_password_unless_it_is_one_long_word(value: str) -> None:
    assert not is_password("password", value)


def test_credentials_of_a_header_are_a_password() -> None:
    assert is_password("Authorization", "Basic Ym9iOmh1bnRlcjI=")
    assert not is_password("Authorization", "none")
