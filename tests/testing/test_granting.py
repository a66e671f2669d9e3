"""The check of grants tells a store that does one thing wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.testing.broken import Fault, fails

from keepstone.testing import granting


def newest_first(store: Any, agent: str) -> Any:
    return store.grants(agent)[::-1]


def keeping_later_ones(store: Any, agent: str, grant: Any, **_: Any) -> Any:
    store.add_grant(agent, grant, drop_later=False)


def dropping_later_ones(store: Any, agent: str, grant: Any, **_: Any) -> Any:
    store.add_grant(agent, grant)


def keeping_its_grants(store: Any, agent: str) -> Any:
    kept = {name: store.grants(name) for name in store.agents()}
    store.purge_agent(agent)
    for name, grants in kept.items():
        for grant in grants[len(store.grants(name)) :]:
            store.add_grant(name, grant, drop_later=False)


@pytest.mark.parametrize(
    ("method", "fault", "told"),
    [
        ("grants", newest_first, "in the order of writing"),
        ("add_grant", dropping_later_ones, "later ones stay if they are to"),
        ("add_grant", keeping_later_ones, "later ones to the same agent go"),
        ("purge_agent", keeping_its_grants, "what was granted to a purged agent is gone"),
    ],
)
def test_a_store_that_keeps_grants_wrongly_is_told_what(
    method: str, fault: Fault, told: str, tmp_path: Path
) -> None:
    assert fails(granting.check_grants, method, fault, tmp_path).startswith(told)
