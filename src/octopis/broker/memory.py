"""What all clients of a broker together may make it hold in memory.

Each client has bounds of its own, but there may be many clients. Where their unfinished frames,
waiting publications and undelivered notifications are too much together, whoever holds the most is
sent away: never one who holds little. What is only kept to be sent again after a broken connection
is let go before anybody is sent away.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

_PIECE_BYTES = 64 * 1024
"""Whoever is so far into a frame, or farther, reads on in its turn."""

_PIECES_AT_ONCE = 2
"""So many pieces of unfinished frames are read in a turn of the event loop."""

_LARGE_BYTES = 2**20
_LARGE_MAX = 4
"""So many clients at a time may be in the middle of a frame that is longer than that."""


class Reader(Protocol):
    """Whoever reads frames."""

    def pause_reading(self, *, on: bool) -> None:
        """Read no more for now, or read again."""


def _call_soon(action: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_soon(action)


class LargeFrames:
    """Lets large frames come in a piece at a time, and only a few of the largest at a time.

    Reading takes long where hundreds send at once as much as fits: so nobody who is in the middle
    of a frame reads on before all others had a turn. `call_soon` is for tests.
    """

    def __init__(self, call_soon: Callable[[Callable[[], None]], object] | None = None) -> None:
        self._call_soon = call_soon or _call_soon
        self._reading: set[Reader] = set()
        self._waiting: dict[Reader, None] = {}
        self._turns: dict[Reader, None] = {}
        self._is_scheduled = False

    def look(self, reader: Reader, pending: int) -> None:
        """Note how much of a frame has arrived, and let the reader wait where it has to."""
        if pending <= _LARGE_BYTES:
            self._give_way(reader)
        elif reader not in self._reading:
            if len(self._reading) >= _LARGE_MAX:
                self._turns.pop(reader, None)
                self._waiting[reader] = None
                reader.pause_reading(on=True)
                return
            self._reading.add(reader)
        if pending > _PIECE_BYTES:
            reader.pause_reading(on=True)
            self._line_up(reader)
        elif reader in self._turns:
            del self._turns[reader]
            reader.pause_reading(on=False)

    def is_waiting(self, reader: Reader) -> bool:
        """Tell whether a reader waits: then it cannot give a sign of life."""
        return reader in self._waiting

    def leave(self, reader: Reader) -> None:
        """Forget a reader that is gone: the next one may go on."""
        self._turns.pop(reader, None)
        self._give_way(reader)

    def _give_way(self, reader: Reader) -> None:
        self._waiting.pop(reader, None)
        if reader in self._reading:
            self._reading.discard(reader)
            if self._waiting:
                following = next(iter(self._waiting))
                del self._waiting[following]
                self._reading.add(following)
                self._line_up(following)

    def _line_up(self, reader: Reader) -> None:
        self._turns[reader] = None
        if not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._turn)

    def _turn(self) -> None:
        """Let the first in the line read a piece."""
        self._is_scheduled = False
        for reader in list(self._turns)[:_PIECES_AT_ONCE]:
            del self._turns[reader]
            reader.pause_reading(on=False)
        if self._turns:
            self._is_scheduled = True
            self._call_soon(self._turn)


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
