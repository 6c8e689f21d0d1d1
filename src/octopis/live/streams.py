"""All streams of a client: which delivery is for which, and how much has been consumed.

Deliveries are numbered as they arrive. The broker is told the number of the oldest one that
nobody has read yet, so that it never sends more than the window ahead of the slowest stream.
"""

from collections.abc import Iterator

from octopis.errors import OctopisError
from octopis.live.notifications import Gap, Notifications
from octopis.wire.client import Delivery


class Streams:
    """The open streams of a client."""

    def __init__(self, window: int) -> None:
        self._report_every = max(1, window // 4)
        self._streams: dict[Notifications, None] = {}
        self._by_number: dict[int, Notifications] = {}
        self._arrived = 0
        self._reported = 0
        self._base = 0

    def __iter__(self) -> Iterator[Notifications]:
        return iter(list(self._streams))

    def __contains__(self, stream: Notifications) -> bool:
        return stream in self._streams

    def add(self, stream: Notifications) -> None:
        """Let a stream get what its numbers name."""
        self._streams[stream] = None
        self._by_number |= dict.fromkeys(stream.names, stream)

    def remove(self, stream: Notifications) -> None:
        """Let a stream get nothing more, and forget what it has not read."""
        self._streams.pop(stream, None)
        for number in stream.names:
            self._by_number.pop(number, None)
        stream.clear()

    def start_connection(self) -> int:
        """Count anew on a new connection; return how many deliveries wait to be read."""
        self._base = self._reported = self._oldest()
        return self._arrived - self._base

    def deliver(self, deliveries: list[Delivery]) -> None:
        """Hand deliveries to the streams that they are for."""
        numbered = list(enumerate(deliveries, self._arrived))
        self._arrived += len(deliveries)
        known = self._by_number
        if len(self._streams) == 1:  # the usual case, and fast
            (stream,) = self._streams
            stream.push([each for each in numbered if not known.keys().isdisjoint(each[1].numbers)])
            return
        found: dict[Notifications, list[tuple[int, Delivery | Gap]]] = {}
        for each in numbered:
            for stream in dict.fromkeys(known[n] for n in each[1].numbers if n in known):
                found.setdefault(stream, []).append(each)
        for stream, items in found.items():
            stream.push(items)

    def tell_gap(self, gap: Gap) -> None:
        """Tell every stream of a gap: what is missing may have been for any."""
        for stream in self._streams:
            stream.push([(self._arrived, gap)])

    def end(self, failure: OctopisError | None) -> None:
        """Let nothing more come on any stream, because of `failure` if it was not wanted."""
        for stream in self._streams:
            stream.end(failure)

    def to_report(self) -> int | None:
        """Return how many deliveries of this connection are consumed, where it is time to say."""
        if self._arrived - self._reported < self._report_every:
            return None
        oldest = self._oldest()
        if oldest - self._reported < self._report_every:
            return None
        self._reported = oldest
        return oldest - self._base

    def _oldest(self) -> int:
        waiting = [stream.oldest for stream in self._streams if stream.oldest is not None]
        return min(waiting, default=self._arrived)
