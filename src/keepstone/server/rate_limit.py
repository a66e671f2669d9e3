"""How often somebody may be wrong."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable

MOST = 20
"""Failures that an address may have within ``WINDOW`` seconds."""
WINDOW = 60.0
_MOST_ADDRESSES = 10_000


class Failures:
    """Counts the failures of each address. For one thread, that of the event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        self.total = 0

    def record(self, address: str) -> None:
        """Count one more failure."""
        self.total += 1
        times = self._times.setdefault(address, deque(maxlen=MOST))
        times.append(self._clock())
        self._times.move_to_end(address)
        while len(self._times) > _MOST_ADDRESSES:
            self._times.popitem(last=False)

    def wait(self, address: str) -> float:
        """Return for how many seconds the address gets no answer but this; 0.0 if it has not failed often."""
        times = self._times.get(address)
        if times is None or len(times) < MOST:
            return 0.0
        return max(0.0, times[0] + WINDOW - self._clock())
