"""The checks of selections tell a store that does one thing wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.testing.broken import Fault, fails

from keepstone.model import Scope
from keepstone.store.paging import Page
from keepstone.testing import Check, selecting


def of_all_types(store: Any, scope: Scope, *page: Any, **how: Any) -> Any:
    return store.select(replace(scope, types=None), *page, **how)


def in_one_order(store: Any, scope: Scope, *page: Any, **_: Any) -> Any:
    return store.select(scope, *page)


def one_more(store: Any, scope: Scope) -> Any:
    return store.select_count(scope) + 1


def skipping_one(store: Any, scope: Scope, limit: Any = None, cursor: Any = None, **how: Any) -> Any:
    page = store.select(scope, limit, cursor, **how)
    return page if cursor is None else Page(page[1:], page.next)


def each_given_id(store: Any, agent: str, session: str, ids: Any, ts: str) -> Any:
    store.delete(agent, session, ids, ts)
    return len(ids)


@pytest.mark.parametrize(
    ("check", "method", "fault", "told"),
    [
        (selecting.check_select, "select", in_one_order, "all entries, the newest first"),
        (selecting.check_select, "select", of_all_types, "the count is that of the entries"),
        (selecting.check_select, "select_count", one_more, "the count is that of the entries"),
        (selecting.check_select_pages, "select", skipping_one, "all pages of a selection"),
        (selecting.check_delete_many, "delete", each_given_id, "two were there"),
    ],
)
def test_a_store_that_selects_wrongly_is_told_what(
    check: Check, method: str, fault: Fault, told: str, tmp_path: Path
) -> None:
    assert fails(check, method, fault, tmp_path).startswith(told)
