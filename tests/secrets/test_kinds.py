"""Formats of secrets: each is found by its form, and texts that only resemble one are left alone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.secrets.samples import HARMLESS, SECRETS, letters

from keepstone.secrets.detection import kinds_in, masked
from keepstone.secrets.kinds import KINDS, is_real


@pytest.mark.parametrize(("kind", "secret"), SECRETS)
def test_a_secret_is_found_and_only_its_kind_stays(kind: str, secret: str) -> None:
    assert kinds_in(f"use {secret}, then tell Ana") == [kind]
    assert masked(f"use {secret}, then tell Ana") == f"use [secret: {kind}], then tell Ana"


@pytest.mark.parametrize("text", HARMLESS)
def test_text_that_only_resembles_a_secret_stays(text: str) -> None:
    assert (kinds_in(text), masked(text)) == ([], text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('password = "hunter2hunter"', 'password = "[secret: password]"'),
        ('{"api_key": "abc12345xyz"}', '{"api_key": "[secret: password]"}'),
        ("DB_PWD='p4ssw0rd!'", "DB_PWD='[secret: password]'"),
        (f"aws_secret_access_key = {'a1/B' * 10}", "aws_secret_access_key = [secret: AWS secret key]"),
        ("DB_PASSWORD=hunter2hunter2", "DB_PASSWORD=[secret: password]"),
        ("DB_PASS=hunter2pass9", "DB_PASS=[secret: password]"),
        ("token: 1234567890abcdef1234", "token: [secret: password]"),
        ('"token": "1234567890abcdef1234"', '"token": "[secret: password]"'),
        ("GRAFANA_TOKEN=a1b2c3d4e5f6a7b8c9", "GRAFANA_TOKEN=[secret: password]"),
        ("mysql -uada -pwalnut99x shop", "mysql -uada -p[secret: password] shop"),
        ("mysqldump --host db -u ada -pwalnut99x", "mysqldump --host db -u ada -p[secret: password]"),
        ("PGPASSWORD=hunter22pw psql", "PGPASSWORD=[secret: password] psql"),
        ("password: hunter2hunter2\nuser: bob", "password: [secret: password]\nuser: bob"),
        ("the API key: abc12345xyz, then", "the API key: [secret: password], then"),
        ("Server=h;Password=Passw0rd1;", "Server=h;Password=[secret: password];"),
        (
            "jdbc:mysql://h/d?user=x&password=Passw0rd1&a=b",
            "jdbc:mysql://h/d?user=x&password=[secret: password]&a=b",
        ),
        (f"AWS_SESSION_TOKEN={'a1/B' * 90}", "AWS_SESSION_TOKEN=[secret: password]"),
        ("postgres://app:S3cr3tPw@db.example.com/x", "postgres://app:[secret: password]@db.example.com/x"),
        ("redis://:letmein@r:6379", "redis://:[secret: password]@r:6379"),
        ("curl -u bob:hunter22pw https://x", "curl -u bob:[secret: password] https://x"),
        ("machine h login b password hunter22pw", "machine h login b password [secret: password]"),
        (f"Authorization: Bearer {letters(40)}", "Authorization: Bearer [secret: Authorization header]"),
        (
            '"Authorization": "Basic Ym9iOmh1bnRlcjI="',
            '"Authorization": "Basic [secret: Authorization header]"',
        ),
        (f"SharedAccessKey={letters(43)}=", "SharedAccessKey=[secret: Azure access key]"),
        (f"?sv=2022&sig={letters(43)}%3D", "?sv=2022&sig=[secret: Azure signature]"),
        (f"Private-Lines: 1\n{letters(64)}", "Private-Lines: 1[secret: private key]"),
        (
            f"https://discord.com/api/webhooks/{'1' * 18}/{letters(68)}",
            f"https://discord.com/api/webhooks/{'1' * 18}/[secret: Discord webhook]",
        ),
        (
            f"https://hooks.slack.com/services/{'T0B1' * 8}",
            "https://hooks.slack.com/services/[secret: Slack webhook]",
        ),
    ],
)
def test_of_a_named_secret_only_the_value_is_masked(before: str, after: str) -> None:
    assert masked(before) == after


def test_the_token_that_the_server_makes_is_found(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "keepstone", "token", "create", "--home", str(tmp_path), "--json"]
    made = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    assert kinds_in(json.loads(made)["token"]) == ["keepstone token"]


PATTERNS = {
    kind.pattern.pattern: "".join(f"{mark}{filler}" for filler in ("a", "1", "-", " ", ".a_", "=")) + mark
    for kind in KINDS
    for mark in kind.marks
}


@pytest.mark.parametrize("piece", PATTERNS.values())
def test_no_pattern_takes_longer_than_its_text_is_long(piece: str) -> None:
    def effort(size: int) -> float:
        begin = time.process_time()
        kinds_in((piece * size)[:size])
        return time.process_time() - begin

    assert effort(200_000) < 40 * (min(effort(20_000) for _ in range(3)) + 0.001)


def test_each_kind_has_a_mark_that_its_secrets_contain() -> None:
    for name, secret in SECRETS:
        assert any(mark in secret for kind in KINDS if kind.name == name for mark in kind.marks)


# Values that a person may have chosen


@pytest.mark.parametrize("name", ["password", "api_key", "token", "://"])
@pytest.mark.parametrize("value", ["${SECRET_1}", "<secret1>", "your-key-1", "changeme1", "example1", "xxx1"])
def test_a_placeholder_is_no_secret(name: str, value: str) -> None:
    assert not is_real(value, name)


@pytest.mark.parametrize("value", ["hunter", "12345678"])
def test_a_named_value_needs_a_letter_and_a_digit(value: str) -> None:
    assert (is_real(value, "password"), is_real(value + "a1", "password")) == (False, True)


@pytest.mark.parametrize("value", ["./keys/key1.pem", "~/.ssh/id_1", "a/b/c1"])
def test_a_path_is_no_secret(value: str) -> None:
    assert not is_real(value, "password")


def test_a_word_with_a_number_is_a_password_and_no_key() -> None:
    assert (is_real("walnut12", "password"), is_real("walnut12", "api_key")) == (True, False)


@pytest.mark.parametrize(
    ("value", "is_token"),
    [("a1b2c3d4e5f6a7b8", True), ("word12345678", False), ("page-cursor-1-2-3-4", False)],
)
def test_a_bare_token_must_look_random(value: str, is_token: bool) -> None:  # noqa: FBT001
    assert is_real(value, "token") is is_token


def test_the_password_of_a_url_needs_no_digit() -> None:
    assert (is_real("letmein", "://"), is_real("secret", "://")) == (True, False)
