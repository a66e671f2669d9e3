"""The HTTP server: the API below ``/v1``, authentication and authorization.

Needs the extra ``server``. ``app`` assembles the application, ``running`` runs it in uvicorn, ``tokens``
stores access tokens, ``middleware`` checks every request, and ``routes`` has one module per resource.
Routes call only Home, Agent, Session, Notes and Files.
"""

from __future__ import annotations

from keepstone.server.app import create_app
from keepstone.server.authorization import Access, signed_in, still_signed_in
from keepstone.server.tokens import Token, Tokens

__all__ = ["Access", "Token", "Tokens", "create_app", "signed_in", "still_signed_in"]
