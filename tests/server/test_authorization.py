"""Who may come in, and what they may touch, through a real server."""

import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.warm import warm

from keepstone.server import Tokens

ADD = "/v1/agents/coder/sessions/s/entries"
NOTE = {"type": "note", "text": "x"}


def routes(http: httpx.Client) -> list[tuple[str, str]]:
    paths = http.get("/v1/openapi.json").json()["paths"]
    filled = [
        (method, re.sub(r"\{[a-z:]+\}", "coder", path)) for path, found in paths.items() for method in found
    ]
    return [(method, path) for method, path in filled if path != "/v1/health"]


def test_no_route_but_health_answers_without_a_token(server: Any) -> None:
    with server.client("") as nobody:
        assert nobody.get("/v1/health").json() == {"status": "ok"}
        for method, path in routes(nobody):
            answer = nobody.request(method, path, json={})
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized"), (method, path)
            assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_wrong_token_opens_nothing(server: Any) -> None:
    with server.client(server.token[:-1] + "~") as wrong:
        assert wrong.get("/v1/agents").status_code == 401
        assert wrong.get("/v1/agents", headers={"Authorization": "Basic eDp5"}).status_code == 401
        assert wrong.get("/v1/agents", headers={"Authorization": "Bearer"}).status_code == 401


def test_an_agent_out_of_reach_answers_as_one_that_is_not_there(server: Any, http: httpx.Client) -> None:
    http.post("/v1/agents/hidden/sessions/s/entries", json=NOTE)
    secret, _ = server.tokens.create(["coder"])
    with server.client(secret) as limited:
        assert limited.post(ADD, json=NOTE).status_code == 201
        for method, path in routes(limited):
            if "/agents/coder" not in path:
                continue
            answers = [limited.request(method, path.replace("/agents/coder", f"/agents/{name}"), json={})
                       for name in ("hidden", "absent")]  # fmt: skip
            assert {answer.status_code for answer in answers} <= {400, 403, 404}, path
            assert answers[0].text.replace("hidden", "absent") == answers[1].text
        assert limited.get("/v1/agents").json()["agents"] == ["coder"]
    assert len(http.get("/v1/agents/hidden/sessions/s/entries").json()["entries"]) == 1


def test_what_belongs_to_the_whole_home_needs_a_token_for_all_agents(server: Any) -> None:
    secret, _ = server.tokens.create(["coder"])
    with server.client(secret) as limited:
        for path in ("doctor", "metrics", "notes", "notes/prompt"):
            assert limited.get(f"/v1/{path}").json()["code"] == "forbidden"
        for path in ("index", "notes/dedupe"):
            assert limited.post(f"/v1/{path}", json={}).json()["code"] == "forbidden"
        assert limited.delete("/v1/agents/coder").json()["code"] == "forbidden"
        assert limited.post("/v1/agents/coder/context", json={"notes": True}).json()["code"] == "forbidden"


READING_POSTS = ("/recall", "/context", "/embed", "/entries/list", "/entries/count")


def test_a_read_only_token_changes_nothing(server: Any, http: httpx.Client) -> None:
    http.post(ADD, json={**NOTE, "id": "kept"})
    before = http.get(ADD).text
    secret, _ = server.tokens.create(read_only=True)
    with server.client(secret) as reader:
        assert reader.get(ADD).text == before
        assert reader.post("/v1/agents/coder/recall", json={"query": "x"}).status_code == 200
        for method, path in routes(reader):
            if method == "get" or path.endswith(
                ("/recall", "/context", "/embed", "/entries/list", "/entries/count")
            ):
                continue
            answer = reader.request(method, path.replace("entries/coder", "entries/kept"), json={})
            assert answer.status_code in (400, 403), (method, path)
    assert http.get(ADD).text == before


def test_an_expired_and_a_revoked_token_open_nothing(server: Any) -> None:
    yesterday = datetime.now(UTC) - timedelta(days=1)
    past = Tokens(server.home, clock=lambda: yesterday)
    expired, _ = past.create(lifetime=timedelta(hours=1))
    revoked, token = server.tokens.create()
    with server.client(revoked) as client:
        assert client.get("/v1/agents").status_code == 200
        assert server.tokens.revoke(token.id)
        assert client.get("/v1/agents").status_code == 401
    with server.client(expired) as client:
        assert client.get("/v1/agents").status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1].evil"]
)
def test_another_name_than_ours_gets_no_answer(server: Any, host: str) -> None:
    with server.client(Host=host) as rebound:
        assert rebound.get("/v1/agents").status_code in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9000", "127.0.0.1", "[::1]:80"])
def test_every_name_of_the_loopback_is_ours(server: Any, host: str) -> None:
    with server.client(Host=host) as client:
        assert client.get("/v1/agents").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
    ],
)
def test_pages_from_elsewhere_get_no_answer(server: Any, headers: dict[str, str]) -> None:
    with server.client(**headers) as foreign:
        answer = foreign.post(ADD, json=NOTE)
        assert (answer.status_code, answer.json()["code"]) == (403, "cross_origin")
        assert "access-control-allow-origin" not in answer.headers


def test_the_link_of_the_console_signs_a_browser_in_once(server: Any) -> None:
    with server.client("") as browser:
        assert browser.get("/", headers={"Accept": "text/html"}).headers["location"] == "/sign-in"
        welcome = browser.get(server.link)
        cookie = welcome.headers["set-cookie"].lower()
        assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
        assert browser.get("/v1/agents").status_code == 200
    with server.client("") as second:
        assert second.get(server.link).status_code == 401


def test_a_form_from_our_own_page_signs_in_and_out(server: Any) -> None:
    own = {"Origin": server.url}
    with server.client("") as browser:
        assert browser.post("/sign-in", data={"token": server.token}).status_code == 403
        assert browser.post("/sign-in", data={"token": "kst_wrong"}, headers=own).status_code == 401
        assert browser.post("/sign-in", data={"token": server.token}, headers=own).status_code == 200
        assert browser.get("/v1/agents").status_code == 200
        name = f"keepstone-session-{server.port}"
        value = browser.cookies[name]
        browser.post("/sign-out", headers=own)
        assert browser.get("/v1/agents", headers={"Cookie": f"{name}={value}"}).status_code == 401


def page_secret_in(html: str) -> str:
    found = re.search(r'data-secret="([0-9a-f]{64})"', html)
    assert found is not None
    return found[1]


def test_a_cookie_changes_nothing_for_a_page_that_does_not_say_it_is_ours(server: Any) -> None:
    own = {"Origin": server.url}
    with server.client("") as browser:
        welcome = browser.post("/sign-in", data={"token": server.token}, headers=own)
        assert browser.post(ADD, json=NOTE, headers=own).json()["code"] == "cross_origin"
        browser.headers["X-Keepstone-Page"] = page_secret_in(welcome.text)
        assert browser.post(ADD, json=NOTE).json()["code"] == "cross_origin"
        assert browser.post(ADD, json=NOTE, headers=own).status_code == 201
        assert browser.post(ADD, json=NOTE, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 201


def test_a_revoked_token_ends_the_browsers_session(server: Any) -> None:
    secret, token = server.tokens.create()
    with server.client("") as browser:
        browser.post("/sign-in", data={"token": secret}, headers={"Origin": server.url})
        assert browser.get("/v1/agents").status_code == 200
        server.tokens.revoke(token.id)
        assert browser.get("/v1/agents").status_code == 401


def test_pages_forbid_scripts_frames_and_guessing(server: Any) -> None:
    with server.client("") as browser:
        headers = browser.get("/sign-in").headers
    assert "script-src" not in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")


def test_what_a_form_sends_is_never_part_of_a_page(server: Any) -> None:
    with server.client("") as browser:
        script = "<script>alert(1)</script>"
        answer = browser.post("/sign-in", data={"token": script}, headers={"Origin": server.url})
        assert "<script" not in answer.text + browser.get("/sign-in", params={"once": script}).text


def test_listening_elsewhere_than_loopback_needs_a_token(tmp_path: Path) -> None:
    command = [*warm(), "-m", "keepstone", "serve", "--home", str(tmp_path), "--host", "0.0.0.0"]  # noqa: S104
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 2
    assert "there is no token" in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_who_fails_often_is_told_to_wait_and_the_right_token_still_passes(server: Any) -> None:
    with server.client("kst_wrong") as guesser:
        codes = [guesser.get("/v1/agents").status_code for _ in range(60)]
        last = guesser.get("/v1/agents")
    assert codes[-1] == last.status_code == 429
    assert 1 <= int(last.headers["retry-after"]) <= 61
    with server.client() as right:
        assert right.get("/v1/agents").status_code == 200
