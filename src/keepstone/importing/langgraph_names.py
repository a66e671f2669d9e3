"""Stored form of LangGraph's namespaces, keys and vectors, for the adapter and for imports."""

from __future__ import annotations

import base64
from typing import TypeAlias

from keepstone.filesystem.layout import session_id_of
from keepstone.model import Record

Namespace: TypeAlias = tuple[str, ...]

TYPE = "item"
"""The type of entries that hold LangGraph items."""
_HEAD = "langgraph/"


def session_name(namespace: Namespace) -> str:
    """Return the name of a namespace's session.

    Examples:
        >>> session_name(("users", "a/b"))
        'langgraph/users/a%2Fb'
    """
    # Escape the percent sign first: else the labels "a%2Fb" and "a/b" would get the same name.
    return _HEAD + "/".join(label.replace("%", "%25").replace("/", "%2F") for label in namespace)


def session_id(namespace: Namespace) -> str:
    """Return the id of a namespace's session: its name, or a digest if the name is too long for an id."""
    return session_id_of(session_name(namespace))


def kept_with(namespace: Namespace) -> Record:
    """Return the ``namespace`` key of a log line; empty if the session's id already has the namespace."""
    name = session_name(namespace)
    return {} if session_id_of(name) == name else {"namespace": list(namespace)}


def namespace_of(session: str) -> Namespace | None:
    """Return the namespace encoded in a session's id; None if there is none.

    Examples:
        >>> namespace_of("langgraph/users/a%2Fb"), namespace_of("main")
        (('users', 'a/b'), None)
    """
    if not session.startswith(_HEAD):
        return None
    labels = session.removeprefix(_HEAD).split("/") if session != _HEAD else []
    # Unescape the percent sign last, in the reverse order of escaping.
    return tuple(label.replace("%2F", "/").replace("%25", "%") for label in labels)


def id_of(key: str) -> str:
    """Return the id of an entry for a key: the key itself. The empty key becomes ``=``, as ids are not empty.

    Examples:
        >>> id_of("theme"), id_of(""), id_of("=")
        ('theme', '=', '==')
    """
    # Keys that consist only of ``=`` get one more, so that none collides with the empty key, whose id is
    # ``=``.
    return key if key.strip("=") else f"{key}="


def key_of(entry_id: str) -> str:
    """Return the key for an entry's id."""
    return entry_id if entry_id.strip("=") else entry_id[:-1]


def kept_vectors(dim: int, rows: bytes) -> Record:
    """Encode the float32 vectors of an item's indexed paths for its log line."""
    return {"dim": dim, "f32": base64.b64encode(rows).decode()}
