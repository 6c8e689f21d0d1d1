"""What all clients of a broker together may make it hold in memory.

Each client has bounds of its own, but there may be many clients. Where their unfinished frames,
waiting publications and undelivered notifications are too much together, whoever holds the most is
sent away: never one who holds little. What is only kept to be sent again after a broken connection
is let go before anybody is sent away.
"""

from typing import Protocol

_LARGE_BYTES = 2**20
_LARGE_MAX = 4
"""So many clients at a time may be in the middle of a frame that is longer than that."""


class Reader(Protocol):
    """Whoever reads frames."""

    def pause_reading(self, *, on: bool) -> None:
        """Read no more for now, or read again."""


class LargeFrames:
    """Lets only a few large frames come in at a time; who else has one waits in its turn."""

    def __init__(self) -> None:
        self._reading: set[Reader] = set()
        self._waiting: dict[Reader, None] = {}

    def look(self, reader: Reader, pending: int) -> None:
        """Note how much of a frame has arrived, and let the reader wait where it has to."""
        if pending <= _LARGE_BYTES:
            self.leave(reader)
        elif reader not in self._reading:
            if len(self._reading) < _LARGE_MAX:
                self._reading.add(reader)
            elif reader not in self._waiting:
                self._waiting[reader] = None
                reader.pause_reading(on=True)

    def is_waiting(self, reader: Reader) -> bool:
        """Tell whether a reader waits: then it cannot give a sign of life."""
        return reader in self._waiting

    def leave(self, reader: Reader) -> None:
        """Note that a large frame is whole, or its reader gone: the next one may go on."""
        self._waiting.pop(reader, None)
        if reader in self._reading:
            self._reading.discard(reader)
            if self._waiting:
                following = next(iter(self._waiting))
                del self._waiting[following]
                self._reading.add(following)
                following.pause_reading(on=False)


class Holder(Protocol):
    """Whoever makes the broker hold something."""

    def send_away(self, reason: str) -> None:
        """Let go of it all."""


class Memory:
    """How many bytes are held for whom. All that a broker holds for clients passes here."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held: dict[Holder, int] = {}
        self._spare: dict[Holder, int] = {}
        self.large_frames = LargeFrames()
        self.bytes = 0
        """How many are held in all."""

    def hold(self, holder: Holder, size: int) -> None:
        """Note that `size` bytes are held for `holder` now."""
        self._note(self._held, holder, size)

    def spare(self, holder: Holder, size: int) -> None:
        """Note that `size` bytes are held for `holder` as long as there is room for them."""
        self._note(self._spare, holder, size)

    def _note(self, sizes: dict[Holder, int], holder: Holder, size: int) -> None:
        self.bytes += size - sizes.get(holder, 0)
        if size:
            sizes[holder] = size
        else:
            sizes.pop(holder, None)
        while self.bytes > self._bytes_max and (held := self._spare or self._held):
            most = max(held, key=held.__getitem__)
            self.bytes -= (size := held.pop(most))
            most.send_away(
                f"it makes the broker hold {size:,} bytes, the most of all, and together these "
                f"are more than the {self._bytes_max:,} allowed"
            )
