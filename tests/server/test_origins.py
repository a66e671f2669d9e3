"""Whether a request was meant for us: which name it asked for, and which page sent it."""

from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.server.origins import LOOPBACK, Origins
from keepstone.server.problems import ProblemError

OWN = {"host": "localhost:8765", "origin": "http://localhost:8765"}


@pytest.mark.parametrize(
    "host",
    ["memory.example.org", "MEMORY.example.org:9", "memory.example.org.", "[::1]", "[::1]:80", "[::1]:65535"],
)
def test_a_name_is_ours_in_any_case_with_any_port_and_with_its_last_dot(host: str) -> None:
    Origins({"Memory.Example.org", "::1"}).check_host({"host": host})


@pytest.mark.parametrize(
    "host",
    [
        "", ":80", ".", "[]", "[]:80", "localhost:", "localhost:x", "localhost:123456", "localhost/", "::1",
        "[localhost]", "localhost:80:80", "user@localhost", "localhost\n", "localhost evil", "localhost.evil",
    ],
)  # fmt: skip
@pytest.mark.parametrize("any_address", [False, True])
def test_an_unknown_name_is_refused_with_the_remedy(host: str, *, any_address: bool) -> None:
    with pytest.raises(ProblemError, match="--allow-host") as refused:
        Origins(LOOPBACK, any_address=any_address).check_host({"host": host})
    assert (refused.value.status, refused.value.code) == (421, "wrong_host")


def test_a_request_that_names_no_host_is_refused() -> None:
    with pytest.raises(ProblemError):
        Origins(LOOPBACK).check_host({})


@given(st.ip_addresses())
def test_every_address_is_ours_only_where_the_server_listens_on_all(address: object) -> None:
    host = f"[{address}]:80" if isinstance(address, IPv6Address) else f"{address}:80"
    Origins({"name"}, any_address=True).check_host({"host": host})
    with pytest.raises(ProblemError):
        Origins({"name"}).check_host({"host": host})


def test_listening_on_all_addresses_makes_no_other_name_ours() -> None:
    with pytest.raises(ProblemError):
        Origins({"name"}, any_address=True).check_host({"host": "10.0.0.1.example.org"})


@pytest.mark.parametrize("origin", ["http://localhost:8765", "https://LOCALHOST:8765"])
@pytest.mark.parametrize("method", ["GET", "POST", "WEBSOCKET"])
def test_a_page_of_ours_may_send_anything(origin: str, method: str) -> None:
    Origins.check_origin(OWN | {"origin": origin, "sec-fetch-site": "same-origin"}, method)
    Origins.check_own_page(OWN | {"origin": origin})


FOREIGN = [
    "", "null", "http://localhost", "http://localhost:8765.evil", "http://evil@localhost:8765",
    "ftp://localhost:8765", "localhost:8765", "//localhost:8765", "http:localhost:8765", "http://[",
    "http://[::1", "http://x]",
]  # fmt: skip


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_page_of_another_origin_is_refused_whatever_it_sends(origin: str, method: str) -> None:
    with pytest.raises(ProblemError) as refused:
        Origins.check_origin(OWN | {"origin": origin, "sec-fetch-site": "same-origin"}, method)
    assert (refused.value.status, refused.value.code) == (403, "cross_origin")


@given(st.text())
def test_no_text_but_our_own_origin_is_taken_for_ours(origin: str) -> None:
    with pytest.raises(ProblemError):
        Origins.check_own_page(OWN | {"origin": origin})


def test_a_program_that_says_nothing_of_pages_is_let_through() -> None:
    Origins.check_origin({"host": "localhost"}, "DELETE")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_elsewhere_may_open_a_page_and_do_nothing_else(site: str) -> None:
    link = {"host": "localhost", "sec-fetch-site": site, "sec-fetch-mode": "navigate"}
    Origins.check_origin(link, "GET")
    for method, headers in (("POST", link), ("GET", link | {"sec-fetch-mode": "cors"})):
        with pytest.raises(ProblemError):
            Origins.check_origin(headers, method)


@pytest.mark.parametrize("headers", [{}, {"sec-fetch-site": "none"}, {"sec-fetch-site": "same-site"}])
def test_a_change_by_a_browser_says_that_it_comes_from_our_page(headers: dict[str, str]) -> None:
    Origins.check_own_page({"host": "localhost", "sec-fetch-site": "same-origin"})
    with pytest.raises(ProblemError, match="other origins are not allowed"):
        Origins.check_own_page({"host": "localhost"} | headers)
