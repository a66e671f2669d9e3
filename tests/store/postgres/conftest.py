"""A home in PostgreSQL for each test."""

from collections.abc import Iterator

import pytest
from tests.postgres_server import schema_of


@pytest.fixture
def dsn(postgres: str) -> Iterator[str]:
    """The URL of an empty home in a schema of its own."""
    with schema_of(postgres) as url:
        yield url
