"""Query parameters: those of a route, each once unless it is a list, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from fastapi import Request
from fastapi.dependencies.models import Dependant

from keepstone.server.problems import ProblemError
from keepstone.text.display import clipped


async def refuse_unknown(request: Request) -> None:
    """Refuse a query that its route would not read as it was meant.

    Raises:
        ProblemError: A parameter is unknown, or is given twice.
    """
    if not request.scope["query_string"]:
        return
    known = dict(_parameters(request.scope["route"].dependant))
    given = [name for name, _ in request.query_params.multi_items()]
    for name in given:
        if name not in known:
            there = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            raise _refused(f"this route has no parameter {clipped(name, 80)!r}; {there}")
        if given.count(name) > 1 and not known[name]:
            raise _refused(f"parameter {name!r} is given twice; give it once")


def _refused(detail: str) -> ProblemError:
    return ProblemError(400, "invalid_argument", detail)


def _parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """Yield the names of the query's parameters, each with whether it may be repeated."""
    for field in dependant.query_params:
        yield field.alias, _is_list(field.field_info.annotation)
    for inner in dependant.dependencies:
        yield from _parameters(inner)


def _is_list(annotation: Any) -> bool:
    return any(get_origin(part) is list for part in (annotation, *get_args(annotation)))
