"""The site and the place of a page: who may see and change what, and addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from tests.web.page import place_of

import keepstone
from keepstone import AccessDeniedError, Home
from keepstone.web.site import Hook, Open, Permissions, Place, address

REQUEST = Request({"type": "http", "method": "GET", "path": "/", "headers": []})


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        for slug in ("coder", "team"):
            home.agent(slug).add("something")
        yield home


@pytest.fixture
def place(home: Home, tmp_path: Path) -> Place:
    return place_of(home, tmp_path)


def with_access(place: Place, hook: Hook, access: Open | None = None) -> Place:
    """Return the same place, whose site asks another hook."""
    return replace(
        place, site=replace(place.site, access=hook), access=access or place.access, request=REQUEST
    )


def admitted(place: Place) -> Permissions | Response:
    return asyncio.run(place.site.admit(REQUEST))


def test_a_hook_that_waits_is_awaited(place: Place) -> None:
    async def hook(_: object) -> Open:
        await asyncio.sleep(0)
        return Open(holder="Ada")

    assert admitted(with_access(place, hook)) == Open(holder="Ada")


def test_a_hook_that_returns_none_denies_access(place: Place) -> None:
    found = admitted(with_access(place, lambda _: None))
    assert isinstance(found, Response)
    assert (found.status_code, found.body) == (401, b"sign in first")


def test_a_response_of_a_hook_is_sent_as_it_is(place: Place) -> None:
    response = RedirectResponse("/sign-in")
    assert admitted(with_access(place, lambda _: response)) is response


@pytest.mark.parametrize(
    ("now", "holds"),
    [
        (Open(frozenset({"coder"}), holder="Ada", reader="token"), True),
        (Open(frozenset({"coder"}), holder="Ada", reader="another"), True),
        (Open(frozenset({"coder"}), holder="Bob", reader="token"), False),
        (Open(frozenset({"coder", "team"}), holder="Ada"), False),
        (Open(frozenset({"coder"}), read_only=True, holder="Ada"), False),
        (None, False),
    ],
)
def test_access_holds_until_agents_rights_or_holder_change(
    place: Place, now: Open | None, *, holds: bool
) -> None:
    before = Open(frozenset({"coder"}), holder="Ada", reader="token")
    site = with_access(place, lambda _: now).site
    assert asyncio.run(site.still_holds(before, REQUEST)) is holds


@pytest.mark.parametrize(
    ("access", "is_admin", "sees_notes"),
    [
        (Open(), True, True),
        (Open(read_only=True), False, True),
        (Open(frozenset({"coder", "team"})), False, False),
    ],
)
def test_notes_and_the_whole_home_need_access_to_all_agents(
    place: Place, access: Open, *, is_admin: bool, sees_notes: bool
) -> None:
    seen = replace(place, access=access)
    assert (seen.is_admin, seen.sees_notes) == (is_admin, sees_notes)


def test_the_whole_home_is_changed_only_while_access_lasts(place: Place) -> None:
    asyncio.run(with_access(place, lambda _: Open()).check_admin())
    for changed in (None, Open(read_only=True)):
        with pytest.raises(AccessDeniedError, match="sign in again"):
            asyncio.run(with_access(place, lambda _, changed=changed: changed).check_admin())  # type: ignore[misc]


def test_a_reader_of_some_agents_is_no_admin_though_access_lasts(place: Place) -> None:
    limited = Open(frozenset({"coder"}))
    with pytest.raises(AccessDeniedError, match="may change all agents"):
        asyncio.run(with_access(place, lambda _: limited, limited).check_admin())


@pytest.mark.parametrize("access", [Open(frozenset({"coder"})), Open(read_only=True)])
def test_another_agent_is_not_changed_without_the_right(place: Place, access: Open) -> None:
    with pytest.raises(AccessDeniedError, match="agent 'team' may not be changed with this sign-in"):
        replace(place, access=access).other("team")


def test_entries_in_another_agent_have_the_trust_of_the_reader(place: Place) -> None:
    added = replace(place, trust="tool").other("team").add("moved")
    assert added.trust == "tool"


def test_only_agents_that_may_be_seen_are_listed(place: Place) -> None:
    limited = replace(place, access=Open(frozenset({"team", "unknown"})))
    assert (place.agents(), limited.agents()) == (["coder", "team"], ["team"])


def test_only_readers_of_all_agents_learn_that_a_home_is_empty(tmp_path: Path) -> None:
    with keepstone.open(tmp_path / "empty", embedder="none") as home:
        place = place_of(home, tmp_path)
        assert place.is_home_empty()
        assert not replace(place, access=Open(frozenset({"coder"}))).is_home_empty()


def test_links_of_a_place_are_those_of_its_agent(place: Place) -> None:
    assert place.link("session", id="a b") == "/a/coder/session?id=a+b"


@given(st.text(min_size=1), st.text(alphabet=st.characters(codec=None)))
def test_an_address_gives_agent_and_query_back(agent: str, value: str) -> None:
    parts = urlsplit(address(agent, "session", id=value, entry="x"))
    _, _, coded, page = parts.path.split("/")
    assert (unquote(coded), page) == (agent, "session")
    found = parse_qs(parts.query, keep_blank_values=True, errors="surrogatepass")
    assert found == {"id": [value], "entry": ["x"]}
