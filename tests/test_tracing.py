"""Spans and metrics through OpenTelemetry: what they say, and that they hold no memory."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.metrics import _internal as metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import keepstone
from keepstone import EntryNotFoundError, Home, tracing

PRIVATE = ("walnut", "pecan", "secretive")
"""Words of texts, queries, ids, sessions and agents of these tests."""


class Recorded:
    """What a program's providers got."""

    def __init__(self) -> None:
        self._exporter, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.traces = TracerProvider()
        self.traces.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.metrics = MeterProvider([self._reader])

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def named(self, name: str) -> ReadableSpan:
        (span,) = (span for span in self.spans if span.name == name)
        return span

    def points(self, metric: str) -> dict[str, int]:
        """Return the counts of a histogram by its attributes."""
        data = json.loads(self._reader.get_metrics_data().to_json())  # type: ignore[union-attr]
        found = [
            each["data"]["data_points"]
            for resource in data["resource_metrics"]
            for scope in resource["scope_metrics"]
            for each in scope["metrics"]
            if each["name"] == metric
        ]
        return {" ".join(map(str, point["attributes"].values())): point["count"] for point in found[0]}

    def all_of_it(self) -> str:
        return "\n".join(span.to_json() for span in self.spans)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    """Set providers as a program does, for one test: the API itself takes them once only."""
    monkeypatch.delenv("OTEL_SDK_DISABLED", raising=False)  # CrewAI sets it for the whole process.
    found = Recorded()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", found.traces)
    monkeypatch.setattr(metrics, "_METER_PROVIDER", found.metrics)
    for cached in (tracing.tracer, tracing.histogram):
        cached.cache_clear()
    yield found
    for cached in (tracing.tracer, tracing.histogram):
        cached.cache_clear()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", embedder="none") as opened:
        yield opened


def work(home: Home) -> None:
    agent = home.agent("secretive")
    agent.add("walnut and pecan", id="walnut-1", session="pecan")
    agent.session("pecan").add_many([{"type": "note", "text": "pecan"}, {"type": "note", "text": "walnut"}])
    agent.recall("walnut", limit=2)
    agent.context("pecan?")
    agent.purge("walnut-1")


def test_add_recall_context_and_purge_have_spans(home: Home, recorded: Recorded) -> None:
    work(home)
    assert sorted(set(recorded.names)) == [
        "keepstone.add",
        "keepstone.context",
        "keepstone.purge",
        "keepstone.recall",
    ]


def test_the_recall_of_a_context_is_a_span_within_it(home: Home, recorded: Recorded) -> None:
    home.agent("a").context("anything")
    outer, inner = recorded.named("keepstone.context"), recorded.named("keepstone.recall")
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id


def test_spans_count_entries_hits_and_tokens(home: Home, recorded: Recorded) -> None:
    agent = home.agent("a")
    agent.session("s").add_many([{"type": "note", "text": "walnut"}, {"type": "note", "text": "walnut tree"}])
    hits = agent.recall("walnut")
    assert (recorded.named("keepstone.add").attributes or {})["keepstone.entries"] == 2
    assert (recorded.named("keepstone.recall").attributes or {})["keepstone.hits"] == len(hits)


def test_durations_are_measured_by_operation(home: Home, recorded: Recorded) -> None:
    work(home)
    assert recorded.points("keepstone.operation.duration") == {
        "add": 2,
        "recall": 2,
        "context": 1,
        "purge": 1,
    }


def test_an_error_is_named_by_its_class_alone(home: Home, recorded: Recorded) -> None:
    with pytest.raises(EntryNotFoundError, match="walnut-9"):
        home.agent("a").session("s").purge("walnut-9")
    span = recorded.named("keepstone.purge")
    assert (span.attributes or {})["error.type"] == "EntryNotFoundError"
    assert (span.status.status_code, span.status.description) == (trace.StatusCode.ERROR, None)
    assert span.events == ()


def test_no_span_holds_what_is_remembered_or_asked(home: Home, recorded: Recorded) -> None:
    work(home)
    with pytest.raises(ValueError, match="walnut"):
        home.agent("secretive").recall("walnut", since="walnut")
    said = recorded.all_of_it()
    assert said
    assert [word for word in PRIVATE if word in said] == []


def test_without_a_provider_nothing_is_recorded_and_nothing_loaded(tmp_path: Path) -> None:
    program = """
import sys, keepstone
with keepstone.open(sys.argv[1], embedder="none") as home:
    agent = home.agent("a")
    agent.add("walnut")
    agent.recall("walnut")
    agent.context("walnut")
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "home")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_an_api_without_a_provider_is_not_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(metrics, "_METER_PROVIDER", None)
    assert not tracing.is_configured()


def test_a_tool_of_mcp_is_a_server_span_around_the_library(home: Home, recorded: Recorded) -> None:
    call_tool(home, "memory_search", {"query": "walnut"})
    tool, recall = recorded.named("tools/call memory_search"), recorded.named("keepstone.recall")
    assert tool.kind is trace.SpanKind.SERVER
    assert recall.context is not None
    assert tool.context is not None
    assert recall.context.trace_id == tool.context.trace_id
    assert "tools/call memory_search" in recorded.points("mcp.server.operation.duration")


def test_spans_of_mcp_hold_no_words_of_the_client(home: Home, recorded: Recorded) -> None:
    call_tool(home, "memory_save", {"text": "walnut", "session": "pecan"})
    call_tool(home, "secretive_tool", {"walnut": "pecan"})
    server_spans = [span for span in recorded.spans if span.kind is trace.SpanKind.SERVER]
    assert "tools/call other" in [span.name for span in server_spans]
    said = "\n".join(span.to_json() for span in server_spans)
    assert [word for word in PRIVATE if word in said] == []


def call_tool(home: Home, name: str, arguments: dict[str, Any]) -> Any:
    mcp = pytest.importorskip("mcp")
    from keepstone.mcp.memory_tools import McpTools
    from keepstone.mcp.resources import View
    from keepstone.mcp.server import create_server

    view = View(home.agent("secretive"), McpTools(home.agent("secretive")), home)

    async def run() -> Any:
        async with mcp.Client(create_server(lambda _: view)) as client:
            return await client.call_tool(name, arguments)

    return asyncio.run(run())


def request(home: Home, path: str, method: str = "GET", body: bytes = b"", **headers: str) -> int:
    pytest.importorskip("fastapi")
    from tests.server.asgi import scope_of, sent_by

    from keepstone.server import create_app
    from keepstone.server.tokens import tokens_of

    tokens = tokens_of(home)
    token, _ = tokens.create()
    headers |= {"authorization": f"Bearer {token}", "content_type": "application/json"}
    sent = sent_by(create_app(home, tokens=tokens), scope_of(path, method=method, **headers), body)
    return int(sent[0]["status"])


def test_a_request_has_one_server_span_named_by_its_route(home: Home, recorded: Recorded) -> None:
    home.agent("secretive").session("pecan").add("note", "walnut")
    assert request(home, "/v1/agents/secretive/sessions/pecan/entries") == 200
    (span,) = (span for span in recorded.spans if span.kind is trace.SpanKind.SERVER)
    assert span.name == "GET /v1/agents/{agent}/sessions/{session}/entries"
    assert (span.attributes or {})["http.response.status_code"] == 200
    assert list(recorded.points("http.server.request.duration").values()) == [1]


def test_a_request_continues_the_trace_of_its_caller(home: Home, recorded: Recorded) -> None:
    caller = "0af7651916cd43dd8448eb211c80319c"
    body = b'{"query": "walnut"}'
    request(home, "/v1/agents/a/recall", "POST", body, traceparent=f"00-{caller}-b7ad6b7169203331-01")
    traces = {f"{span.context.trace_id:032x}" for span in recorded.spans if span.context}
    assert traces == {caller}
    assert "keepstone.recall" in recorded.names


@pytest.mark.parametrize(
    ("path", "method", "body"),
    [
        ("/v1/agents/secretive/sessions/pecan/entries?walnut=pecan", "GET", b""),
        ("/v1/agents/secretive/recall", "POST", b'{"query": 1, "walnut": "pecan"}'),
        ("/v1/agents/secretive/sessions/pecan/entries/walnut", "GET", b""),
        ("/v1/walnut/pecan", "SECRETIVE", b""),
    ],
)
def test_spans_of_requests_hold_no_path_query_or_body(
    home: Home, recorded: Recorded, path: str, method: str, body: bytes
) -> None:
    assert request(home, path, method, body) >= 400
    said = recorded.all_of_it()
    assert said
    assert [word for word in PRIVATE if word in said.lower()] == []
