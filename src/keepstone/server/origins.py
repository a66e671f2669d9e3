"""Whether a request was meant for us: which name it asked for, and which page sent it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping

from keepstone.server.problems import ProblemError

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
_HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::[0-9]{1,5})?")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Origins:
    """The names under which the server may be reached.

    Args:
        names: Host names, without a port. Any port is fine: a tunnel may have another than ours.
        any_address: Whether every IP address is fine, too, as it must be where the server listens on all.
            No page from elsewhere can have an address of ours as its origin, so nothing is given away.
    """

    def __init__(self, names: Collection[str], *, any_address: bool = False) -> None:
        self._names = frozenset(name.lower() for name in names)
        self._any_address = any_address

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Refuse a request for another name than ours: a page could have made it ours (DNS rebinding).

        Raises:
            ProblemError: It is for another name.
        """
        name = _name_in(headers.get("host", ""))
        if name in self._names or (self._any_address and _is_address(name)):
            return
        raise ProblemError(421, "wrong_host", "this server does not go by that name: see --allow-host")

    @staticmethod
    def check_origin(headers: Mapping[str, str], method: str) -> None:
        """Refuse what a page from elsewhere sends.

        Raises:
            ProblemError: It is from elsewhere.
        """
        origin = headers.get("origin")
        if origin is not None and not _is_own(origin, headers):
            raise _foreign()
        site = headers.get("sec-fetch-site", "none")
        opens_page = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
        if site not in ("none", "same-origin") and not opens_page:
            raise _foreign()

    @staticmethod
    def check_own_page(headers: Mapping[str, str]) -> None:
        """Refuse a change, sent by a browser, that does not say it comes from a page of ours (CSRF).

        Raises:
            ProblemError: It does not.
        """
        if _is_own(headers.get("origin", ""), headers) or headers.get("sec-fetch-site") == "same-origin":
            return
        raise _foreign()


def _foreign() -> ProblemError:
    return ProblemError(403, "cross_origin", "requests of other sites' pages are not answered")


def _is_own(origin: str, headers: Mapping[str, str]) -> bool:
    scheme, _, authority = origin.lower().partition("://")
    return scheme in ("http", "https") and authority == headers.get("host", "").lower()


def _name_in(host: str) -> str:
    """Return the name in a header ``Host`` without its port; nothing where it is not of that form."""
    found = _HOST.fullmatch(host.lower())
    return "" if found is None else (found["address"] or found["name"]).rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
