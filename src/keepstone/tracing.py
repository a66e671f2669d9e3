"""Spans and metrics through OpenTelemetry, where the program that uses keepstone has configured it.

Nothing is imported or sent by keepstone itself: a program that configures OpenTelemetry has loaded its API
and set a provider. In any other program a traced call costs a look into a dictionary. No name and no
attribute holds texts, queries, ids, slugs or messages of errors.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, wraps
from importlib.metadata import version
from typing import Any, ParamSpec, TypeVar

DURATION = "keepstone.operation.duration"
"""The histogram of calls of the library, in seconds."""
OPERATION = "keepstone.operation"
"""The attribute that names a call: ``add``, ``recall``, ``context`` or ``purge``."""
ERROR = "error.type"
"""The attribute with the class or the status of the error."""

BUCKETS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01),
    *(0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
"""Upper bounds of the histograms' buckets, in seconds."""
P = ParamSpec("P")
R = TypeVar("R")


def traced(
    operation: str, counted: Mapping[str, Callable[[Any], int]] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that gives each call of a function a span and a duration.

    ``counted`` are the attributes of the span that come from the result.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if not is_configured():
                return function(*args, **kwargs)
            with span(f"keepstone.{operation}", DURATION, {OPERATION: operation}) as current:
                result = function(*args, **kwargs)
                for name, count in (counted or {}).items():
                    current.set_attribute(name, count(result))
                return result

        return call

    return decorate


def is_configured() -> bool:
    """Return whether the program has set a provider of spans or of metrics."""
    # The API's own question takes 9 µs, as it asks the environment, and its answer is the same.
    return _has("opentelemetry.trace", "_TRACER_PROVIDER") or _has(
        "opentelemetry.metrics._internal", "_METER_PROVIDER"
    )


def _has(module: str, name: str) -> bool:
    loaded = sys.modules.get(module)
    return loaded is not None and vars(loaded).get(name) is not None


@contextmanager
def span(
    name: str,
    metric: str,
    attributes: dict[str, Any],
    *,
    headers: Mapping[str, str] | None = None,
) -> Iterator[Any]:
    """Yield a span, and record its duration; both get the attributes, which may change until the end.

    With ``headers`` the span is a server's, and the headers may name its parent. What is raised inside is
    named by its class only, as a message may hold text.
    """
    from opentelemetry import propagate, trace

    kind = trace.SpanKind.INTERNAL if headers is None else trace.SpanKind.SERVER
    parent = None if headers is None else propagate.extract(headers)
    began = time.perf_counter()
    with tracer().start_as_current_span(
        name, parent, kind, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except BaseException as error:
            attributes.setdefault(ERROR, type(error).__qualname__)
            raise
        finally:
            if ERROR in attributes:
                current.set_status(trace.StatusCode.ERROR)
            # At the end, as the route and the status of a request are known only then.
            current.set_attributes(attributes)
            histogram(metric).record(time.perf_counter() - began, attributes)


@cache
def tracer() -> Any:
    """Return the maker of keepstone's spans."""
    from opentelemetry import trace

    return trace.get_tracer("keepstone", version("keepstone"))


@cache
def histogram(name: str) -> Any:
    """Return a histogram of seconds."""
    from opentelemetry import metrics

    meter = metrics.get_meter("keepstone", version("keepstone"))
    return meter.create_histogram(name, "s", explicit_bucket_boundaries_advisory=BUCKETS)
