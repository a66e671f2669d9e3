"""The file of tokens."""

import json
import stat
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from keepstone.errors import InvalidAgentIdError, StoreError
from keepstone.server.tokens import PREFIX, Tokens


def test_a_secret_is_shown_once_and_only_its_hash_is_kept(tmp_path: Path) -> None:
    secret, token = Tokens(tmp_path).create(["coder"], read_only=True)
    raw = (tmp_path / ".tokens.json").read_text("utf-8")
    assert secret.startswith(PREFIX)
    assert secret.removeprefix(PREFIX) not in raw
    assert token.digest in raw
    assert Tokens(tmp_path).holder(secret) == token


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    Tokens(tmp_path / "home").create()
    assert stat.S_IMODE((tmp_path / "home" / ".tokens.json").stat().st_mode) == 0o600


def test_a_token_is_of_no_use_from_its_end_on(tmp_path: Path) -> None:
    now = datetime(2026, 1, 11, tzinfo=UTC)
    secret, _ = Tokens(tmp_path, clock=lambda: now).create(lifetime=timedelta(days=30))
    assert Tokens(tmp_path, clock=lambda: now + timedelta(days=29)).holder(secret) is not None
    assert Tokens(tmp_path, clock=lambda: now + timedelta(days=30)).holder(secret) is None


def test_a_token_for_an_invalid_agent_is_refused(tmp_path: Path) -> None:
    for agents, error in ((["../x"], InvalidAgentIdError), ([], ValueError)):
        with pytest.raises(error):
            Tokens(tmp_path).create(agents)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"tokens": [{}]}', '{"tokens": [1]}', '{"tokens": [null]}', "\0", "[" * 100_000]
)
def test_a_damaged_token_file_refuses_everyone(tmp_path: Path, text: str) -> None:
    secret, _ = Tokens(tmp_path).create()
    (tmp_path / ".tokens.json").write_text(text)
    with pytest.raises(StoreError, match="damaged"):
        Tokens(tmp_path).holder(secret)


@pytest.mark.parametrize(
    "value",
    [
        '"agents": "coder"',
        '"agents": [1]',
        '"read_only": 0',
        '"expires": "soon"',
        '"sha256": "é"',
        '"sha256": null',
    ],
)
def test_a_malformed_token_record_refuses_everyone(tmp_path: Path, value: str) -> None:
    secret, _ = Tokens(tmp_path).create()
    file = tmp_path / ".tokens.json"
    record = json.loads(file.read_text())["tokens"][0] | json.loads("{" + value + "}")
    file.write_text(json.dumps({"tokens": [record]}))
    with pytest.raises(StoreError, match="damaged"):
        Tokens(tmp_path).holder(secret)


def test_a_token_file_writable_by_others_refuses_everyone(tmp_path: Path) -> None:
    secret, _ = Tokens(tmp_path).create()
    (tmp_path / ".tokens.json").chmod(0o622)
    with pytest.raises(StoreError, match="chmod 600"):
        Tokens(tmp_path).holder(secret)


def test_a_change_of_mode_is_noticed_by_those_who_have_read_the_file(tmp_path: Path) -> None:
    tokens, file = Tokens(tmp_path), tmp_path / ".tokens.json"
    secret, token = tokens.create()
    assert tokens.holder(secret) == token
    file.chmod(0o660)
    with pytest.raises(StoreError, match="chmod 600"):
        tokens.holder(secret)
    file.chmod(0o600)
    assert tokens.holder(secret) == token


def test_a_revoked_token_is_gone_for_all_who_have_the_file_open(tmp_path: Path) -> None:
    one, other = Tokens(tmp_path), Tokens(tmp_path)
    secret, token = one.create()
    assert other.holder(secret) == token
    assert one.revoke(token.id)
    assert other.holder(secret) is None
    assert not one.revoke(token.id)


def test_tokens_made_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    start = threading.Barrier(8)

    def make() -> None:
        start.wait()
        Tokens(tmp_path).create()

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Tokens(tmp_path).all()) == 8


def test_a_home_is_not_made_by_looking_for_tokens(tmp_path: Path) -> None:
    assert Tokens(tmp_path / "none").all() == []
    assert not (tmp_path / "none").exists()


def test_a_file_from_before_tokens_had_names_is_read(tmp_path: Path) -> None:
    secret, token = Tokens(tmp_path).create(["coder"], name="laptop")
    file = tmp_path / ".tokens.json"
    document = json.loads(file.read_text())
    del document["tokens"][0]["name"]
    file.write_text(json.dumps(document))
    assert Tokens(tmp_path).holder(secret) == replace(token, name="")


def test_a_link_is_taken_once_and_not_after_its_time(tmp_path: Path) -> None:
    now = [datetime(2026, 3, 1, tzinfo=UTC)]
    tokens = Tokens(tmp_path, clock=lambda: now[0])
    late, link = (tokens.add_link(timedelta(minutes=15)) for _ in range(2))
    assert [Tokens(tmp_path, clock=lambda: now[0]).take_link(link), tokens.take_link(link)] == [True, False]
    now[0] += timedelta(minutes=15)
    assert not tokens.take_link(late)


def test_a_link_is_no_token_and_a_token_no_link(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    link, (secret, token) = tokens.add_link(timedelta(minutes=15)), tokens.create()
    assert (tokens.holder(link), tokens.take_link(secret), tokens.all()) == (None, False, [token])
    assert link not in (tmp_path / ".tokens.json").read_text()


@pytest.mark.parametrize("origin", ["user", "web"])
def test_a_token_of_an_origin_it_must_not_have_is_refused(tmp_path: Path, origin: str) -> None:
    with pytest.raises(ValueError, match=f"^origin of a token must be one of .*, not .{origin}"):
        Tokens(tmp_path).create(origin=origin)
    assert not (tmp_path / ".tokens.json").exists()
