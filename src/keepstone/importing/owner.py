"""Owners of records, for an import into one agent for each user."""

from __future__ import annotations

import re

from keepstone.filesystem.slug import slug
from keepstone.importing.item import Item, named
from keepstone.log.line import payload_of

_FIELD = re.compile(r"user_id|namespace(\.\d{1,3})?")


class AgentFrom:
    """The field that names a record's owner: ``user_id``, ``namespace`` or ``namespace.0``."""

    def __init__(self, field: str) -> None:
        if not _FIELD.fullmatch(field):
            raise ValueError(f"agent_from must be user_id, namespace or namespace.0, not {field!r:.80}")
        self._field, _, place = field.partition(".")
        self._place = int(place) if place else None

    def __str__(self) -> str:
        return self._field if self._place is None else f"{self._field}.{self._place}"

    def slug_of(self, item: Item) -> str | None:
        """Return the slug of the owner's agent; None if the record names no owner.

        Examples:
            >>> AgentFrom("namespace").slug_of(Item("s", {}, "", owner={"namespace": ("users", "Ada")}))
            'u.users._uada'
        """
        if self._field == "user_id":
            name = named(item.owner.get("user_id") or payload_of(item.line).get("user_id"))
        else:
            labels = item.owner.get("namespace", ())
            chosen = labels if self._place is None else labels[self._place : self._place + 1]
            name = ".".join(chosen)
        return slug(name) if name else None
