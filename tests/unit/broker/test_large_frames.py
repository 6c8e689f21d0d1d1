import asyncio
import logging
from collections.abc import Callable

from octopis.broker.connection import Connection, LogLimit
from octopis.broker.memory import LargeFrames, Memory
from octopis.broker.settings import Limits
from support.live import run_live

MIB = 2**20


class Reader:
    """A reader that notes whether it may read."""

    reads = True

    def pause_reading(self, *, on: bool) -> None:
        self.reads = not on


class Frames:
    """Large frames with turns that are taken when the test says so."""

    def __init__(self) -> None:
        self._soon: list[Callable[[], None]] = []
        self.large = LargeFrames(self._soon.append)

    def turn(self) -> None:
        soon, self._soon[:] = list(self._soon), []
        for each in soon:
            each()


def test_whoever_is_in_the_middle_of_a_frame_reads_a_piece_in_its_turn():
    frames, readers = Frames(), [Reader() for _ in range(10)]
    for reader in readers:
        frames.large.look(reader, 200_000)
    assert not any(reader.reads for reader in readers)
    served = []
    for _ in range(5):
        frames.turn()
        reading = [number for number, reader in enumerate(readers) if reader.reads]
        served.append(reading)
        for number in reading:
            frames.large.look(readers[number], 400_000)
    assert served == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    frames.turn()
    assert readers[0].reads  # it goes round


def test_whoever_has_its_frame_whole_reads_on_at_once():
    frames, reader = Frames(), Reader()
    frames.large.look(reader, 200_000)
    frames.turn()
    frames.large.look(reader, 0)
    assert reader.reads
    frames.large.look(reader, 200_000)
    frames.large.look(reader, 100)
    frames.turn()
    assert reader.reads


def test_a_few_of_the_largest_come_in_and_the_next_when_one_is_gone():
    frames, readers = Frames(), [Reader() for _ in range(6)]
    for reader in readers:
        frames.large.look(reader, 2 * MIB)
    for _ in range(10):
        frames.turn()
    assert [reader.reads for reader in readers] == [True] * 4 + [False] * 2
    assert [frames.large.is_waiting(reader) for reader in readers] == [False] * 4 + [True] * 2
    frames.large.leave(readers[0])
    frames.turn()
    assert readers[4].reads
    assert not readers[5].reads


def test_whoever_is_sent_away_leaves_its_place_to_the_next():
    async def work() -> None:
        memory, readers = Memory(100 * MIB), [Reader() for _ in range(4)]
        warnings = LogLimit(logging.getLogger("octopis.test"))
        first = Connection(Heard(), Limits(), warnings)
        first.memory = memory
        memory.hold(first, 5 * MIB)
        for reader in (first, *readers):
            memory.large_frames.look(reader, 2 * MIB)
        assert memory.large_frames.is_waiting(readers[-1])
        memory.hold(first, 101 * MIB)
        await asyncio.sleep(0.01)
        assert not memory.large_frames.is_waiting(readers[-1])
        assert readers[-1].reads

    run_live(work())


class Heard:
    """A peer that is not interested."""

    name = "somebody"

    def frames_arrived(self, connection: object, frames: object) -> None:
        """Nothing comes."""

    def may_write(self, connection: object) -> None:
        """Nothing is written."""

    def connection_lost(self, connection: object, reason: str) -> None:
        """It does not matter."""
