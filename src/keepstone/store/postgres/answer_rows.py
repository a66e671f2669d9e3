"""Responses to requests with an idempotency key in the database, for all servers of a home."""

from __future__ import annotations

from http import HTTPStatus

from keepstone.store.postgres.connecting import Connection, Connections
from keepstone.store.postgres.statements import Statement
from keepstone.store.shared_rows import AnswerRow

ALL_AGENTS = "*"
"""The name under which row-level security shows the responses of all agents; it is not a valid slug."""
_NOW = "statement_timestamp()"
_EXPIRE = f"DELETE FROM answers WHERE until <= {_NOW}"
"""Removes the requests that have expired."""
_FORGET_REFUSAL = (
    "DELETE FROM answers WHERE holder = %s AND key = %s "
    f"AND status >= {HTTPStatus.BAD_REQUEST:d} AND body IS NULL"
)
"""Frees the key of a refused request whose response is no longer kept: the request changed nothing."""
_MOST_BODIES = 1_000
"""Maximum number of a holder's kept responses; of further responses, only key and status are kept."""


class AnswerRows:
    """The keyed requests of all servers. Times are by the database's clock, which all servers share."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def claim(
        self, name: tuple[str, str], agent: str, request: bytes, token: int, seconds: float
    ) -> AnswerRow | None:
        """Record that a request is in progress; return the request that has the key already, if any.

        ``token`` identifies this request. The key becomes free again after ``seconds``.
        """
        while True:
            *_, claimed, found = self._connections.read_all(
                ALL_AGENTS,
                [
                    (_EXPIRE, ()),
                    (_FORGET_REFUSAL, name),
                    (
                        "INSERT INTO answers (holder, key, agent, request, token, until) "
                        f"VALUES (%s, %s, %s, %s, %s, {_NOW} + make_interval(secs => %s)) "
                        # A claim whose connection was cut at its commit is retried, and finds its own row.
                        "ON CONFLICT (holder, key) DO UPDATE SET token = excluded.token "
                        "WHERE answers.token = excluded.token RETURNING 1",
                        (*name, agent, request, token, seconds),
                    ),
                    (
                        "SELECT request, status, headers, body FROM answers WHERE holder = %s AND key = %s",
                        name,
                    ),
                ],
            )
            if claimed:
                return None
            if found:  # Else the other request was forgotten just now.
                return AnswerRow(*found[0])

    def keep(
        self,
        name: tuple[str, str],
        token: int,
        status: int,
        answer: tuple[bytes, bytes] | None,
        seconds: float,
    ) -> None:
        """Keep the result of a request for some seconds: its status, and its headers and body if given.

        If memory of the agent was purged after the request began, only the status is kept.
        """
        headers, body = answer or (None, None)
        self._connections.read_all(
            ALL_AGENTS,
            [
                (
                    "UPDATE answers SET status = %s, headers = CASE WHEN NOT purged THEN %s::bytea END, "
                    "body = CASE WHEN NOT purged THEN %s::bytea END, "
                    f"until = {_NOW} + make_interval(secs => %s) "
                    "WHERE holder = %s AND key = %s AND token = %s",
                    (status, headers, body, seconds, *name, token),
                ),
                # If a holder has too many bodies, remove those that expire first.
                (
                    "UPDATE answers SET headers = NULL, body = NULL WHERE body IS NOT NULL "
                    "AND (holder, key) IN (SELECT holder, key FROM answers WHERE holder = %s "
                    "AND body IS NOT NULL ORDER BY until DESC OFFSET %s)",
                    (name[0], _MOST_BODIES),
                ),
            ],
        )

    def forget(self, name: tuple[str, str], token: int) -> None:
        """Forget a request that was not carried out."""
        sql = "DELETE FROM answers WHERE holder = %s AND key = %s AND token = %s"
        self._connections.read(ALL_AGENTS, sql, (*name, token))


_FORGET = "UPDATE answers SET headers = NULL, body = NULL, purged = true WHERE agent = ANY(%s) AND NOT purged"


def forgetting(connections: Connections, agent: str) -> list[Statement]:
    """Return the statements, for a transaction of an agent, that remove responses that may quote the agent.

    Responses without an agent are removed too, as they may do so.
    """
    return [
        # Row-level security shows responses only under their own name: change the setting for this
        # statement, and then back.
        *connections.entering(ALL_AGENTS),
        (_FORGET, ([agent, ""],)),
        *connections.entering(agent),
    ]


def expire(connections: Connections, connection: Connection) -> None:
    """Remove the requests that have expired."""
    with connection.transaction():
        connections.enter(connection, ALL_AGENTS)
        connection.execute(_EXPIRE.encode())
