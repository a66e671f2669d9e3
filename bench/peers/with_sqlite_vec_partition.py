"""sqlite-vec with a partition for each session."""

from __future__ import annotations

from bench.peers.data import Scope, Vector
from bench.peers.with_sqlite_vec import SqliteVec


class Partitioned(SqliteVec):
    """Vectors of a session are stored together, so that a query of the session reads no others."""

    settings = (
        "vec0 with session as partition key, type and ts as metadata columns, cosine; WAL, synchronous=FULL"
    )
    session_column = "session text partition key"

    def near(self, vector: Vector, scope: Scope, limit: int) -> list[tuple[int, str]]:
        """Query the nearest rows; with several sessions, query each partition separately."""
        if scope.sessions is None or len(scope.sessions) == 1:
            return super().near(vector, scope, limit)
        statement = "SELECT distance, id, text FROM rows WHERE vector MATCH ? AND k = ? AND session = ?"
        found = [
            row
            for session in scope.sessions
            for row in self._db.execute(statement, [bytes(vector), limit, session])
        ]
        return [(number, text) for _, number, text in sorted(found)[:limit]]


PEER = Partitioned
