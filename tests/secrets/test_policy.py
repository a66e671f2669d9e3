"""What a home does with secrets, and what the program's own log may hold."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.secrets.samples import TOKEN, letters

import keepstone
from keepstone import Home, MemoryAdapter, MemoryService, SecretError, Session
from keepstone.secrets.policy import mask


def test_a_payload_key_that_names_a_password_tells_of_its_value() -> None:
    record = {"id": "1", "data": {"login": {"password": "hunter2hunter", "user": "ada1815xx"}}}
    assert mask(record)["data"]["login"] == {"password": "[secret: password]", "user": "ada1815xx"}


@pytest.mark.parametrize("value", ["/home/ada/key1.pem", "see_ticket_123", "${KEY_1}", "two words 1"])
def test_a_payload_key_that_names_a_secret_may_hold_a_placeholder(value: str) -> None:
    record = {"id": "1", "data": {"api_key": value}}
    assert mask(record) is record


def test_credentials_in_a_header_of_a_payload_are_masked() -> None:
    record = {"id": "1", "data": {"headers": {"Authorization": "Basic Ym9iOmh1bnRlcjI=", "Accept": "a/b1"}}}
    assert mask(record)["data"]["headers"] == {"Authorization": "[secret: password]", "Accept": "a/b1"}


def test_a_line_without_a_secret_is_not_even_copied() -> None:
    record = {"id": "1", "data": {"content": "Use OAuth"}}
    assert mask(record) is record


def test_two_keys_that_are_secrets_do_not_become_one() -> None:
    record = {"id": "1", "data": {TOKEN: 1, "gho_" + letters(36): 2}}
    assert sorted(mask(record)["data"].values()) == [1, 2]


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_what_holds_no_secret_is_left_alone(value: Any) -> None:
    assert mask({"id": "1", "data": {"value": value}}) == {"id": "1", "data": {"value": value}}


# In a home


Opening = Callable[..., Session]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Opening]:
    """Opens a session, of an id if need be, in a home with these options."""
    with ExitStack() as homes:

        def opened(name: str = "s", **options: Any) -> Session:
            home = homes.enter_context(keepstone.open(tmp_path, embedder="none", **options))
            return home.agent("a").session(name)

        yield opened


def bytes_of(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.rglob("*") if file.is_file())


PLACES: list[dict[str, Any]] = [
    {"text": TOKEN},
    {"summary": TOKEN},
    {"tags": ["ok", TOKEN]},
    {"data": {"content": TOKEN}},
    {"data": {"headers": [{"Authorization": f"Bearer {TOKEN}"}]}},
    {"data": {TOKEN: "as a key"}},
    {"links": [{"to": TOKEN, "rel": "x"}]},
]


@pytest.mark.parametrize("keys", PLACES)
def test_masked_secrets_reach_no_byte_of_the_home(
    tmp_path: Path, session: Opening, keys: dict[str, Any]
) -> None:
    target = session(secrets="mask")
    entry = target.add("note", id="it", **{"text": "note"} | keys)
    target.add_many([{"type": "note", "text": "note", **keys}])
    target.put({"id": "it", "type": "note", "text": "other", **keys})
    target.update("it", **keys)
    assert "[secret: GitHub token]" in str(entry.line)
    assert TOKEN.encode() not in bytes_of(tmp_path)


@pytest.mark.parametrize("keys", PLACES)
def test_refused_secrets_are_named_and_never_shown(
    tmp_path: Path, session: Opening, keys: dict[str, Any]
) -> None:
    with pytest.raises(SecretError, match="GitHub token") as raised:
        session(secrets="refuse").add("note", **{"text": "note"} | keys)
    assert TOKEN not in str(raised.value)
    assert bytes_of(tmp_path) == b""


def test_a_refusal_says_which_keys_lead_to_the_secret(session: Opening) -> None:
    with pytest.raises(SecretError, match=r"^data\.steps\[1\]\.token contains what looks like a secret"):
        session(secrets="refuse").add("note", {"steps": ["a", {"token": TOKEN}]})


def test_one_secret_keeps_all_of_a_batch_out(session: Opening) -> None:
    target = session(secrets="refuse")
    with pytest.raises(SecretError):
        target.add_many([{"type": "note", "text": "fine"}, {"type": "note", "text": TOKEN}])
    assert target.entries() == []


def test_a_change_that_is_refused_leaves_the_entry(session: Opening) -> None:
    target = session(secrets="refuse")
    target.add("note", text="fine", id="it")
    with pytest.raises(SecretError):
        target.update("it", text=TOKEN)
    with pytest.raises(SecretError):
        target.put({"id": "it", "text": TOKEN})
    assert [entry.text for entry in target.entries()] == ["fine"]


@pytest.mark.parametrize("policy", ["mask", "refuse"])
def test_an_id_that_is_a_secret_is_refused_either_way(session: Opening, policy: str) -> None:
    with pytest.raises(SecretError, match="choose another id|remove it") as raised:
        session(secrets=policy).add("note", text="x", id=TOKEN)
    with pytest.raises(SecretError, match="the session's id") as other:
        session(TOKEN, secrets=policy).add("note", text="x")
    assert TOKEN not in f"{raised.value} {other.value}"


def test_by_default_what_is_remembered_is_kept_as_it_is(session: Opening) -> None:
    assert session().add("note", text=TOKEN).text == TOKEN


def test_another_word_than_the_three_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'keep', 'mask' or 'refuse', not 'hide'"):
        keepstone.open(tmp_path, secrets="hide")  # type: ignore[arg-type]


def test_memory_services_on_such_a_home_mask_what_they_keep(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, secrets="mask", embedder="none") as home:
        MemoryService(home).create_memory("s", TOKEN, [1.0, 0.0], TOKEN)
        assert [memory.text for memory in MemoryService(home).get_memories_by_session("s")] == [
            "[secret: GitHub token]"
        ]
    assert TOKEN.encode() not in bytes_of(tmp_path)


def test_who_keeps_secrets_does_not_load_the_table_of_them() -> None:
    program = (
        "import sys, tempfile, keepstone\n"
        "home = keepstone.open(tempfile.mkdtemp(), embedder='none')\n"
        "home.agent('a').session('s').add('note', text='x')\n"
        "assert 'keepstone.secrets.policy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


# The program's own log


def failures(home: Home) -> None:
    """What goes wrong for a caller, with the marked text wherever one can hand text in."""
    target = home.agent("a").session("s")
    for wrong in (
        lambda: target.add("note", {"walnut": object()}),
        lambda: target.add("note", text="walnut \ud800"),
        lambda: target.add("note", text="walnut other", id="it"),
        lambda: target.update("missing", text="walnut"),
        lambda: home.agent("a").files.read("walnut.md"),
    ):
        with pytest.raises((keepstone.KeepstoneError, ValueError, TypeError)):
            wrong()


def test_the_programs_log_never_holds_what_is_remembered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("a")
        agent.session("s").add("note", {"content": "walnut"}, id="it", summary="walnut", tags=["walnut"])
        agent.files.write("x.md", "walnut")
        failures(home)
        (tmp_path / ".index/a").rename(tmp_path / ".index/gone")
        agent.recall("walnut")
        agent.context("walnut")
        with (tmp_path / "agents/a/memory/sessions/s.ndjson").open("a") as log:
            log.write("walnut is no line\n")
        home.doctor(deep=True, fix=True)
        agent.purge("it")
        home.purge_agent("a")
    MemoryAdapter(tmp_path).clear("s")
    assert "walnut" not in caplog.text


class Quoting:
    """An embedder whose errors quote what it was given, as servers do."""

    id, dim = "quoting", 2

    def embed_documents(self, texts: list[str]) -> Any:
        raise RuntimeError(f"cannot embed {texts}")

    def embed_query(self, text: str) -> Any:
        raise RuntimeError(f"cannot embed {text}")


def test_an_embedder_that_quotes_texts_does_not_bring_them_into_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with keepstone.open(tmp_path, embedder=Quoting()) as home:
        home.agent("a").session("s").add("note", text="walnut")
        home.agent("a").recall("walnut")
    assert caplog.records
    assert "walnut" not in caplog.text
