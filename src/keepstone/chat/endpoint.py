"""What models behind a network have in common: time limits, keys, and what goes wrong."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec

from keepstone.chat.messages import ModelError
from keepstone.errors import install_command

SILENCE = 60.0
"""Seconds that a server may keep silent, before its answer or within it."""
RETRIES = 1
"""Further tries before anything was answered: somebody waits."""
NO_KEY = "no-key"
"""What servers that want no key get."""

_DENIED, _MISSING, _BUSY = (401, 403), 404, 429


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is asked, and with which key."""

    model: str
    name: str
    """What people call the model, and messages too."""
    key: str
    key_variable: str
    """The variable that the key is from."""
    base_url: str | None = None
    """Without it the package's own, or the one that its variable names."""

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r})"

    def failure(self, error: Exception) -> ModelError:
        """Return the error that people see: what happened, what to do, and never the key."""
        return ModelError(f"{self.name} {self._told(error)} Your message is kept: /retry asks again.")

    def cut(self, reason: str = "the connection ended") -> ModelError:
        """Return the error of an answer that did not come to its end."""
        return ModelError(f"{self.name} did not finish: {reason}. What came is kept: /retry asks again.")

    def _told(self, error: Exception) -> str:
        status = getattr(error, "status_code", None)
        words = str(error).replace(self.key, "***")[:300].rstrip(".") or "no reason was given"
        if status in _DENIED:
            return f"refuses the key ({status}): check {self.key_variable}."
        if status == _BUSY:
            return f"has no room for us (429): too many requests, or no quota is left. {words}."
        if status == _MISSING:
            return f"is not known there (404): check the model's name and the address. {words}."
        if "Timeout" in type(error).__name__:
            return f"kept silent for {SILENCE:.0f} seconds."
        if status is None:
            return f"cannot be reached, or went away ({type(error).__name__}): {words}."
        return f"failed ({status}): {words}."


def check_package(package: str) -> None:
    """Make sure that a package is there, without loading it.

    Raises:
        ModelError: It is not.
    """
    if find_spec(package) is None:
        raise ModelError(f"the package {package} is missing: {install_command('chat')}")


def broken_off() -> tuple[type[Exception], ...]:
    """Return the errors of a connection that breaks within a stream, which the packages pass through."""
    modules = [sys.modules[name] for name in ("httpx", "httpx2") if name in sys.modules]
    return tuple(module.HTTPError for module in modules)


NO_ANSWER = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What reading an answer raises that is no answer."""
