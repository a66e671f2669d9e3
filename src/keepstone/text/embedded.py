"""The part of an entry's text that is embedded.

An index does not record this rule. A change to the rule must raise ``SCHEMA`` of the index, so that vectors
made by the old rule and by the new rule are never compared.
"""

from __future__ import annotations

ROLES = frozenset("user assistant system tool human ai developer function model bot".split())
"""Names before a text that are roles and add nothing to its subject."""

LONGEST = 400
"""Maximum number of characters that are embedded: more make the vector of a long text less precise."""


def embedded_text(text: str) -> str:
    """Return the part of an entry's text for an embedder: its first characters, without a role before it.

    A person's name before the text is kept.

    Examples:
        >>> embedded_text("user: I moved to Lisbon."), embedded_text("Ann: I moved to Lisbon.")
        ('I moved to Lisbon.', 'Ann: I moved to Lisbon.')
    """
    role, _, rest = text.partition(": ")
    said = rest if role in ROLES and rest.strip() else text
    return said.lstrip()[:LONGEST] or text[:LONGEST]
