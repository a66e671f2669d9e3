"""The store in PostgreSQL keeps the contract of a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from tests.postgres_server import schema_of

from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.protocol import Store
from keepstone.testing import CHECKS, CHECKS_OF_TWO_AGENTS, Check


@pytest.mark.parametrize("check", [*CHECKS, *CHECKS_OF_TWO_AGENTS])
def test_the_postgres_store_keeps_the_contract(check: Check, postgres: str) -> None:
    @contextmanager
    def factory() -> Iterator[Store]:
        with schema_of(postgres) as dsn, closing(PostgresStore(dsn)) as store:
            yield store

    check(factory)
