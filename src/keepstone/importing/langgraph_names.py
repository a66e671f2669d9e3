"""How LangGraph's namespaces, keys and vectors are stored, for its adapter and for imports."""

from __future__ import annotations

import base64
from typing import TypeAlias

from keepstone.filesystem.layout import session_id_of
from keepstone.model import Record

Namespace: TypeAlias = tuple[str, ...]

TYPE = "item"
"""The type of the entries that items are written as."""
_HEAD = "langgraph/"


def session_name(namespace: Namespace) -> str:
    """Return the name of a namespace's session.

    Examples:
        >>> session_name(("users", "a/b"))
        'langgraph/users/a%2Fb'
    """
    # The percent sign first: else a label "a%2Fb" could not be told from "a/b".
    return _HEAD + "/".join(label.replace("%", "%25").replace("/", "%2F") for label in namespace)


def session_id(namespace: Namespace) -> str:
    """Return the id of a namespace's session: its name, or a digest of a name that is too long for an id."""
    return session_id_of(session_name(namespace))


def kept_with(namespace: Namespace) -> Record:
    """Return what each line of a namespace says about it, where the session's id does not."""
    name = session_name(namespace)
    return {} if session_id_of(name) == name else {"namespace": list(namespace)}


def namespace_of(session: str) -> Namespace | None:
    """Return the namespace of a session's id; None if the id does not say one.

    Examples:
        >>> namespace_of("langgraph/users/a%2Fb"), namespace_of("main")
        (('users', 'a/b'), None)
    """
    if not session.startswith(_HEAD):
        return None
    labels = session.removeprefix(_HEAD).split("/") if session != _HEAD else []
    # The percent sign last, in the reverse of the order in which it was written.
    return tuple(label.replace("%2F", "/").replace("%25", "%") for label in labels)


def id_of(key: str) -> str:
    """Return the id of an entry for a key: the key itself, but for the empty one, as ids are not empty.

    Examples:
        >>> id_of("theme"), id_of(""), id_of("=")
        ('theme', '=', '==')
    """
    # One more sign on keys of only ``=`` keeps them apart from the empty key, whose id is ``=``.
    return key if key.strip("=") else f"{key}="


def key_of(entry_id: str) -> str:
    """Return the key of an entry's id."""
    return entry_id if entry_id.strip("=") else entry_id[:-1]


def kept_vectors(dim: int, rows: bytes) -> Record:
    """Return the vectors of an item's paths, given as float32, as its line keeps them."""
    return {"dim": dim, "f32": base64.b64encode(rows).decode()}
