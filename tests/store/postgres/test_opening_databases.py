"""A home opens on a database, makes its schema, and says nothing of passwords."""

from __future__ import annotations

import logging

import pytest
from tests.postgres_server import PASSWORD

import keepstone
from keepstone.errors import StoreError


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("127.0.0.1:1/db", ""),
        ("127.0.0.1:1/db?connect_timeout=x", ""),
        ("no host/db", ""),
        ("127.0.0.1:port/db", ""),
    ],
)
@pytest.mark.parametrize("secret", ["hunter2-secret", "hun@ter2secret", "hun/ter2secret", "hunter2%2Fsecret"])
def test_no_error_shows_a_password(
    begin: str, end: str, secret: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.store.postgres.schema.POOL_SECONDS", 0)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(StoreError) as refused:
        keepstone.open(f"postgresql://ada:{secret}@{begin}{end}")
    said = f"{refused.value!r} {caplog.text}"
    assert "ter2" not in said
    assert "secret" not in said
    assert refused.value.__cause__ is None


def test_a_wrong_password_is_an_error_with_a_remedy(dsn: str) -> None:
    with pytest.raises(StoreError, match=r"password authentication failed.*; check") as refused:
        keepstone.open(dsn.replace(PASSWORD, "wrong-one"))
    assert "wrong-one" not in str(refused.value)


def test_a_home_in_a_database_is_shown_without_its_password(dsn: str) -> None:
    with keepstone.open(dsn) as home:
        assert PASSWORD not in f"{home!r} {home.root}"


def test_an_opened_language_is_kept_and_stems(dsn: str) -> None:
    with keepstone.open(dsn) as home:
        home.agent("a").session("s").add("note", text="Die Häuser am See")
        assert home.agent("a").recall("Haus") == []
    with keepstone.open(dsn, language="de") as home:
        assert [hit.entry.text for hit in home.agent("a").recall("Haus")] == ["Die Häuser am See"]
    with keepstone.open(dsn) as home:
        assert len(home.agent("a").recall("Haus")) == 1
