"""Strict query parameters: unknown and repeated ones are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from fastapi import Request
from fastapi.dependencies.models import Dependant

from keepstone.server.problems import ProblemError
from keepstone.text.display import clipped


async def refuse_unknown(request: Request) -> None:
    """Raise for a query parameter that the route would ignore.

    Raises:
        ProblemError: A parameter is unknown, or repeated although it is not a list.
    """
    if not request.scope["query_string"]:
        return
    known = dict(_parameters(request.scope["route"].dependant))
    given = [name for name, _ in request.query_params.multi_items()]
    for name in given:
        if name not in known:
            allowed = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            raise _invalid(f"this route has no parameter {clipped(name, 80)!r}; {allowed}")
        if given.count(name) > 1 and not known[name]:
            raise _invalid(f"parameter {name!r} is repeated; give it once")


def _invalid(detail: str) -> ProblemError:
    return ProblemError(400, "invalid_argument", detail)


def _parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """Yield the name of each query parameter, and whether it may be repeated."""
    for field in dependant.query_params:
        yield field.alias, _is_list(field.field_info.annotation)
    for inner in dependant.dependencies:
        yield from _parameters(inner)


def _is_list(annotation: Any) -> bool:
    return any(get_origin(part) is list for part in (annotation, *get_args(annotation)))
