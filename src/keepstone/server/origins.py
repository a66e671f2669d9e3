"""Checks of the Host and Origin headers, against DNS rebinding and CSRF."""

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
    """The host names that requests may use.

    Args:
        names: Host names without a port. Any port is accepted, as a tunnel may use another one.
        any_address: Whether any IP address is accepted, too; needed if the server listens on all addresses.
            DNS rebinding needs a name, so this allows no attack.
    """

    def __init__(self, names: Collection[str], *, any_address: bool = False) -> None:
        self._names = frozenset(name.lower() for name in names)
        self._any_address = any_address

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Raise if the Host header is not allowed (DNS rebinding).

        Raises:
            ProblemError: The host is not allowed.
        """
        name = _name_in(headers.get("host", ""))
        if name in self._names or (self._any_address and _is_address(name)):
            return
        raise ProblemError(421, "wrong_host", "Host header not allowed; add its name with --allow-host")

    @staticmethod
    def check_origin(headers: Mapping[str, str], method: str) -> None:
        """Raise if a page of another origin sent the request.

        Raises:
            ProblemError: A page of another origin sent the request.
        """
        origin = headers.get("origin")
        if origin is not None and not _is_own(origin, headers):
            raise _foreign()
        # Programs send neither header; a browser sends ``none`` if a person typed the address.
        site = headers.get("sec-fetch-site", "none")
        # A link on another site may open a page, as that site cannot read the response.
        opens_page = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
        if site not in ("none", "same-origin") and not opens_page:
            raise _foreign()

    @staticmethod
    def check_own_page(headers: Mapping[str, str]) -> None:
        """Raise unless the browser's headers show that a page of this server sent the request.

        This protects changes against CSRF.

        Raises:
            ProblemError: The headers do not show this.
        """
        # Either header is enough: Safari before 16.4 sends no Sec-Fetch-Site.
        if _is_own(headers.get("origin", ""), headers) or headers.get("sec-fetch-site") == "same-origin":
            return
        raise _foreign()


def _foreign() -> ProblemError:
    return ProblemError(403, "cross_origin", "requests from pages of other origins are not allowed")


def _is_own(origin: str, headers: Mapping[str, str]) -> bool:
    scheme, _, authority = origin.lower().partition("://")
    # Accept both schemes, as a proxy may terminate TLS in front of this server.
    return scheme in ("http", "https") and authority == headers.get("host", "").lower()


def _name_in(host: str) -> str:
    """Return the name in a Host header without its port; empty if the header is malformed."""
    found = _HOST.fullmatch(host.lower())
    # A host name may end with the dot of the DNS root, as in ``localhost.``.
    return "" if found is None else (found["address"] or found["name"]).rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
