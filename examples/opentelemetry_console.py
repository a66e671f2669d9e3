"""Spans and metrics of a home, printed by OpenTelemetry's console exporters.

pip install 'keepstone[otel]' opentelemetry-sdk
python examples/opentelemetry_console.py

Without these lines, or without OpenTelemetry, keepstone measures nothing. With a collector use
``opentelemetry-instrument keepstone serve``, or the exporters of OTLP in place of the console's.
"""

from tempfile import TemporaryDirectory

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

import keepstone

traces = TracerProvider()
traces.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
trace.set_tracer_provider(traces)
measured = MeterProvider([PeriodicExportingMetricReader(ConsoleMetricExporter())])
metrics.set_meter_provider(measured)

with TemporaryDirectory() as folder, keepstone.open(folder) as home:
    agent = home.agent("coder")
    entry = agent.add("Ada prefers pnpm", type="preference")
    hits = agent.recall("package manager pnpm")
    context = agent.context("Which package manager?")
    agent.purge(entry.id)
    print("recalled:", len(hits), "hit")
measured.shutdown()
