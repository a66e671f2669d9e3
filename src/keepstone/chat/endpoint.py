"""Common parts of remote models: timeouts, keys and errors."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec

from keepstone.errors import ModelError, install_command

SILENCE = 60.0
"""Maximum seconds without data from the server, before an answer begins or within it."""
RETRIES = 1
"""Retries before an answer begins; few, as the user waits."""
NO_KEY = "no-key"
"""The key for servers that need none."""

_DENIED, _MISSING, _BUSY = (401, 403), 404, 429


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A remote model's address and key."""

    model: str
    name: str
    """The model's name in messages."""
    key: str
    key_variable: str
    """The environment variable of the key."""
    base_url: str | None = None
    """The address; None for the package's default or its environment variable."""

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r})"

    def failure(self, error: Exception) -> ModelError:
        """Return the error for the user: what happened and what to do, without the key."""
        return ModelError(f"{self.name} {self._describe(error)} Your message is stored: /retry asks again.")

    def cut(self, reason: str = "the connection ended") -> ModelError:
        """Return the error of an incomplete answer."""
        return ModelError(
            f"{self.name} did not finish: {reason}. The partial answer is kept: /retry asks again."
        )

    def _describe(self, error: Exception) -> str:
        status = getattr(error, "status_code", None)
        # Some servers repeat the key in their message.
        words = str(error).replace(self.key, "***")[:300].rstrip(".") or "no reason given"
        if status in _DENIED:
            return f"rejected the key ({status}): check {self.key_variable}."
        if status == _BUSY:
            return f"is over its rate limit or quota (429). {words}."
        if status == _MISSING:
            return f"was not found (404): check the model's name and the address. {words}."
        if "Timeout" in type(error).__name__:
            return f"timed out after {SILENCE:.0f} s."
        if status is None:
            return f"cannot be reached, or closed the connection ({type(error).__name__}): {words}."
        return f"failed ({status}): {words}."


def check_package(package: str) -> None:
    """Check that a package is installed, without importing it.

    Raises:
        ModelError: The package is not installed.
    """
    if find_spec(package) is None:
        raise ModelError(f"the package {package} is missing: {install_command('chat')}")


def broken_off() -> tuple[type[Exception], ...]:
    """Return the HTTP errors that the packages pass through when a stream breaks."""
    # Each package uses one of the two modules, and neither module is imported for this.
    modules = [sys.modules[name] for name in ("httpx", "httpx2") if name in sys.modules]
    return tuple(module.HTTPError for module in modules)


NO_ANSWER = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""Errors of parsing an invalid response."""
