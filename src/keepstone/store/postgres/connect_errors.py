"""Errors of libpq while it connects. They have no SQLSTATE, so their messages are matched."""

from __future__ import annotations

import re

import psycopg

_REMEDIES = (
    (
        r"authentication failed|no password supplied|role \".*\" does not exist|no pg_hba.conf entry",
        "check user and password",
    ),
    (r"database \".*\" does not exist", "make the database with createdb, or name another one in the URL"),
    (
        r"too many (clients|connections)|connection slots",
        "raise max_connections of the server, or use fewer processes",
    ),
    (
        r"could not translate host name|failed to resolve host|invalid port number|invalid integer value",
        "check the host and port",
    ),
)
_PASSING = re.compile(
    r"Connection refused|starting up|shutting down|recovery|closed the connection|Connection reset"
    r"|session is read-only|terminating connection"
)
_OPTION = re.compile(r"invalid (?:URI query parameter|connection option):? \"(.*)\"")


def remedy_of(error: psycopg.OperationalError) -> str | None:
    """Return the remedy for a connection error, or None if its message names no known cause."""
    said = str(error)
    return next((remedy for words, remedy in _REMEDIES if re.search(words, said)), None)


def may_pass(error: psycopg.OperationalError) -> bool:
    """Return whether a connection error means that the server is restarting or failing over."""
    return error.sqlstate is None and remedy_of(error) is None and bool(_PASSING.search(str(error)))


def unknown_option(error: psycopg.ProgrammingError) -> str | None:
    """Return the option of a URL that libpq does not know, or None if the URL has another fault."""
    found = _OPTION.search(str(error))
    return found[1] if found else None
