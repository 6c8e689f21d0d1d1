"""How long to wait before trying again: twice as long each time, and never quite the same."""

import random


class Backoff:
    """Waits that grow from `first_s` to `most_s`; chance spreads those who failed together."""

    def __init__(self, first_s: float = 0.05, most_s: float = 1.0) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._next_s = first_s

    def next(self) -> float:
        """Return the seconds to wait now."""
        wait, self._next_s = self._next_s, min(2 * self._next_s, self._most_s)
        return wait * random.uniform(0.5, 1.0)  # noqa: S311 - no secret

    def reset(self) -> None:
        """Start anew: it has worked."""
        self._next_s = self._first_s
