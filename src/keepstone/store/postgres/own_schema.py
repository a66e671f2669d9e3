"""The schema of a home: only the first schema of ``search_path``."""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg import sql

from keepstone.errors import StoreError

_ASKED = "SELECT current_setting('search_path'), current_schema()::text, current_user::text"
_IS_THERE = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
_NAME = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^",\s]+))\s*(?:,|$)')
_OF_ROLE = "$user"
"""In ``search_path``, the schema that has the name of the role, if there is one."""


def own(name: str) -> str:
    """Return SQL for the table or index of this home that an expression names, or null if it is missing.

    An unqualified name could find a table of another home in a later schema of ``search_path``.
    """
    return f"to_regclass(quote_ident(current_schema()) || '.' || {name})"


def check_schema(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Refuse a connection whose first schema is missing: its tables would be created in the next schema.

    Raises:
        StoreError: The schema does not exist, or the role may not use it.
    """
    [(search_path, current, role)] = connection.execute(_ASKED).fetchall()
    name = _first(search_path, current, role)
    if name is None:
        raise StoreError("search_path names no schema: leave it out, or name one that exists")
    if name == current:
        return
    shown, shown_role = sql.Identifier(name).as_string(), sql.Identifier(role).as_string()
    if connection.execute(_IS_THERE, (name,)).fetchall():
        raise StoreError(
            f"the role {shown_role} may not use the schema {shown}: let its owner run "
            f"keepstone postgres init --role {shown_role}, or GRANT USAGE ON SCHEMA {shown} TO {shown_role}"
        )
    raise StoreError(
        f"there is no schema {shown}, which search_path names first: run CREATE SCHEMA {shown}, or name "
        "another one (a home is the first schema of search_path)"
    )


def _first(search_path: str, current: str | None, role: str) -> str | None:
    """Return the first schema of a search path; the schema of the role counts only if it exists."""
    names = [
        quoted.replace('""', '"') if quoted else plain.lower()
        for quoted, plain in _NAME.findall(search_path)
        if quoted or plain
    ]
    if names[:1] == [_OF_ROLE]:
        names = [role, *names[1:]] if current == role else names[1:]
    return names[0] if names else None
