"""One server for many agents: the HTTP API below ``/v1``, and who may use it.

Needs the extra ``server``. ``app`` puts everything together, ``running`` runs it, ``tokens`` keeps
what opens it, ``guard`` stands before it, and ``routes`` has a module for each resource.
Routes call Home, Agent, Session, Notes and Files only.
"""

from __future__ import annotations

from keepstone.server.app import create_app
from keepstone.server.authorization import Access, signed_in, still_signed_in
from keepstone.server.tokens import Token, Tokens

__all__ = ["Access", "Token", "Tokens", "create_app", "signed_in", "still_signed_in"]
