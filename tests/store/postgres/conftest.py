"""Connections to an empty home whose tables are there."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.postgres_store import PostgresStore


@pytest.fixture
def connections(dsn: str) -> Iterator[Connections]:
    PostgresStore(dsn).close()
    with closing(Connections(dsn, durable=False)) as made:
        yield made
