"""How many bytes each client may publish in a second.

Each has a bucket that holds what it may publish in a second, and fills again all the time. Whoever
takes more than is in it rests until the bucket is not in debt any more: its publications wait, and
nothing is lost. So all that it is told otherwise is told as ever, and others are not concerned.
"""

import time
from collections.abc import Callable

from octopis.broker.clients.session import ClientSession


class Rates:
    """The buckets of a broker's clients."""

    def __init__(self, bytes_per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._bytes_per_s = bytes_per_s
        self._clock = clock
        self._full_at: dict[ClientSession, float] = {}
        """When the bucket of each is full again; it is in debt more than a second before."""

    def take(self, session: ClientSession, size: int) -> None:
        """Take what a client publishes out of its bucket."""
        full_at = max(self._full_at.get(session, 0.0), self._clock())
        self._full_at[session] = full_at + size / self._bytes_per_s

    def rest_s(self, session: ClientSession) -> float:
        """Return how long a client has to rest before it may publish more; 0: not at all."""
        return max(0.0, self._full_at.get(session, 0.0) - self._clock() - 1.0)

    def leave(self, session: ClientSession) -> None:
        """Forget somebody who is gone."""
        self._full_at.pop(session, None)
