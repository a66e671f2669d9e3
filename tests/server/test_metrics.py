"""What the server counts, in the text format of Prometheus."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send
from tests.server.asgi import scope_of, sent_by

from keepstone.server.metrics import BUCKETS, Counting, Metrics

SAMPLE = re.compile(r"^(\w+(?:\{[^}]*\})?) (\S+)$", re.MULTILINE)
NAME = "keepstone_http_request_seconds"


def samples(metrics: Metrics, failures: int = 0) -> dict[str, float]:
    return {name: float(value) for name, value in SAMPLE.findall(metrics.text(failures))}


def answering(status: int, metrics: Metrics, route: str | None = None) -> Any:
    async def app(scope: Scope, _: Receive, send: Send) -> None:
        scope["route"] = SimpleNamespace(path=route) if route else None
        assert metrics.in_flight == 1
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return app


def counted(metrics: Metrics) -> list[tuple[str, ...]]:
    return re.findall(
        r'total\{method="(.*?)",route="(.*?)",status="(.*?)"\} 1$', metrics.text(0), re.MULTILINE
    )


def test_a_new_server_has_counted_nothing() -> None:
    assert samples(Metrics(), failures=3) == {
        "keepstone_http_requests_in_flight": 0,
        "keepstone_sign_in_failures_total": 3,
    }


def test_every_count_has_its_kind_and_its_meaning_before_it() -> None:
    metrics = Metrics()
    metrics.record("GET", "/v1/health", 200, 0.1)
    lines = metrics.text(0).splitlines()
    told = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert told == {line.split()[2] for line in lines if line.startswith("# HELP")}
    names = {re.split(r"[{ ]", line)[0] for line in lines if not line.startswith("#")}
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in names} == told


def test_answers_are_counted_by_method_route_and_status() -> None:
    metrics = Metrics()
    for method, status in (("GET", 200), ("GET", 200), ("POST", 200), ("GET", 404)):
        metrics.record(method, "/v1/x", status, 0.1)
    counts = [value for name, value in samples(metrics).items() if "requests_total{" in name]
    assert counts == [2, 1, 1]


@given(st.lists(st.floats(0, 20) | st.sampled_from(BUCKETS), min_size=1))
def test_a_bucket_holds_all_answers_that_took_no_longer(times: list[float]) -> None:
    metrics = Metrics()
    for seconds in times:
        metrics.record("GET", "/x", 200, seconds)
    found = samples(metrics)
    held = [found[f'{NAME}_bucket{{route="/x",le="{bound}"}}'] for bound in BUCKETS]
    assert held == [sum(seconds <= bound for seconds in times) for bound in BUCKETS]
    assert found[f'{NAME}_bucket{{route="/x",le="+Inf"}}'] == len(times)
    assert found[f'{NAME}_count{{route="/x"}}'] == len(times)
    assert found[f'{NAME}_sum{{route="/x"}}'] == pytest.approx(sum(times), abs=1e-6)


@pytest.mark.parametrize("route", ["/v1/agents/{agent}", "/agents/{agent}"])
def test_an_answer_of_the_api_is_counted_under_its_whole_template(route: str) -> None:
    metrics = Metrics()
    sent_by(Counting(answering(201, metrics, route), metrics), scope_of("/v1/agents/coder", method="PUT"))
    assert counted(metrics) == [("PUT", "/v1/agents/{agent}", "201")]
    assert metrics.in_flight == 0


def test_a_page_is_counted_under_its_own_template() -> None:
    metrics = Metrics()
    sent_by(Counting(answering(200, metrics, "/a/{agent}"), metrics), scope_of("/a/coder"))
    assert counted(metrics) == [("GET", "/a/{agent}", "200")]


def test_what_no_route_took_and_no_method_is_are_counted_without_their_names() -> None:
    metrics = Metrics()
    sent_by(Counting(answering(404, metrics), metrics), scope_of("/secret", method="BREW"))
    assert counted(metrics) == [("other", "other", "404")]


def test_a_fault_is_counted_as_500_and_is_not_in_flight_any_more() -> None:
    async def app(*_: Any) -> None:
        raise RuntimeError

    metrics = Metrics()
    sent_by(Counting(app, metrics), scope_of("/x"))
    assert counted(metrics) == [("GET", "other", "500")]
    assert metrics.in_flight == 0


@pytest.mark.parametrize("kind", ["websocket", "lifespan"])
def test_only_requests_are_counted(kind: str) -> None:
    async def app(*_: Any) -> None:
        assert metrics.in_flight == 0

    metrics = Metrics()
    sent_by(Counting(app, metrics), scope_of("/x", kind=kind))
    assert counted(metrics) == []


def test_a_request_without_an_answer_is_counted_as_499() -> None:
    metrics = Metrics()

    async def left(_: Scope, __: Receive, ___: Send) -> None:
        pass

    sent_by(Counting(left, metrics), scope_of("/x"))
    assert counted(metrics) == [("GET", "other", "499")]
