"""What all clients of a broker together may make it hold in memory.

Each client has bounds of its own, but there may be many clients. Where their unfinished frames,
waiting publications and undelivered notifications are too much together, whoever holds the most is
sent away: never one who holds little.
"""

from typing import Protocol


class Holder(Protocol):
    """Whoever makes the broker hold something."""

    def send_away(self, reason: str) -> None:
        """Let go of it all."""


class Memory:
    """How many bytes are held for whom. All that a broker holds for clients passes here."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held: dict[Holder, int] = {}
        self.bytes = 0
        """How many are held in all."""

    def hold(self, holder: Holder, size: int) -> None:
        """Note that `size` bytes are held for `holder` now."""
        self.bytes += size - self._held.get(holder, 0)
        if size:
            self._held[holder] = size
        else:
            self._held.pop(holder, None)
        while self.bytes > self._bytes_max and self._held:
            most = max(self._held, key=self._held.__getitem__)
            self.bytes -= (size := self._held.pop(most))
            most.send_away(
                f"it makes the broker hold {size:,} bytes, the most of all, and together these "
                f"are more than the {self._bytes_max:,} allowed"
            )
