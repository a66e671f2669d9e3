"""Rate limit of failed authentications per client address."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable

MOST = 20
"""Failures allowed per address within ``WINDOW`` seconds."""
WINDOW = 60.0
_MOST_ADDRESSES = 10_000


class Failures:
    """Counts failures per address. Not thread-safe: use it only in the event loop's thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        self.total = 0

    def record(self, address: str) -> None:
        """Count a failure."""
        self.total += 1
        times = self._times.setdefault(address, deque(maxlen=MOST))
        times.append(self._clock())
        # Limit the number of addresses, as one host may have any number of IPv6 addresses. The address whose
        # last failure is oldest is forgotten first.
        self._times.move_to_end(address)
        while len(self._times) > _MOST_ADDRESSES:
            self._times.popitem(last=False)

    def wait(self, address: str) -> float:
        """Return how many seconds the address must wait; 0.0 below the limit."""
        times = self._times.get(address)
        if times is None or len(times) < MOST:
            return 0.0
        # The deque holds the last ``MOST`` failures. Once the oldest one leaves the window, the address is
        # below the limit.
        return max(0.0, times[0] + WINDOW - self._clock())
