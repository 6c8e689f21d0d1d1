"""Deliveries on their way to one client: queued, sent as far as it consumes, kept until it has."""

from collections import deque
from operator import itemgetter

from octopis.broker.clients.kept import SentDeliveries
from octopis.broker.connection import WRITE_BYTES, Connection
from octopis.broker.metrics.delays import ClientDelays
from octopis.broker.queue import OutputQueue
from octopis.broker.watchers import ClientWatcher
from octopis.core.wire.client import encode_delivery, encode_gap
from octopis.core.wire.frames import FrameKind, encode_items
from octopis.core.wire.link import Encoded
from octopis.core.wire.published import Published
from octopis.errors import ProtocolError


class Deliveries:
    """What is on its way to a client, in order.

    At most `window` are sent that the client has not consumed; the others wait in `queue`. Where
    the connection breaks, what was sent and not received is sent again over the next one.
    """

    def __init__(
        self,
        queue: OutputQueue,
        sent: SentDeliveries,
        log: ClientWatcher | None,
        window: int,
        delays: ClientDelays | None = None,
    ) -> None:
        self.queue = queue
        self.count = 0
        """How many were sent for the first time."""

        self.dropped = 0
        self.window = window
        self._sent = sent
        self._log = log
        self._delays = delays
        self._fresh: list[Encoded] = []
        self._again: deque[tuple[int, list[bytes]]] = deque()
        self._consumed = 0
        self._dropped_unsaid = 0

    def add(self, notification: Published, numbers: list[int], subscriptions: list[str]) -> None:
        """Take a notification for these of the client's subscriptions, by numbers and by ids."""
        if self._log is not None:
            self._log.queued(notification, subscriptions)
        if self._delays is not None:
            self._delays.latest = notification
        self._fresh.append((FrameKind.DELIVER, encode_delivery(numbers, notification.encoded)))

    def enqueue(self) -> bool:
        """Put on the queue what was added since the last time; tell if there was anything."""
        if not self._fresh:
            return False
        self.queue.put(self._fresh)
        self._fresh = []
        if self._delays is not None:
            self._delays.queued(self.count + self.dropped + len(self.queue))
        return True

    def send(self, connection: Connection) -> None:
        """Let go what the socket and the client have room for."""
        queue = self.queue
        while self._again and connection.is_writable:
            _write(connection, *self._again.popleft())
        while queue.messages and connection.is_writable:
            credit = self._consumed + self.window - self._sent.count
            if credit <= 0:
                break
            batch = list(map(itemgetter(1), queue.take(WRITE_BYTES, credit)))
            dropped, self._dropped_unsaid = self._dropped_unsaid, 0
            self.count += len(batch)
            if self._log is not None:
                self._log.left(len(batch))
            if self._delays is not None:
                self._delays.left(self.count + self.dropped)
            self._sent.add(batch, _write(connection, dropped, batch), dropped)

    def consumed(self, count: int) -> bool:
        """Know how many the client has consumed; tell if that is progress. Raises ProtocolError."""
        if not self._consumed <= count <= self._sent.count:
            raise ProtocolError(
                f"{count:,} deliveries cannot be consumed: "
                f"{self._sent.count:,} were sent, {self._consumed:,} consumed before"
            )
        if count == self._consumed:  # saying the same again is no progress
            return False
        self._consumed = count
        self._sent.consumed(count)
        return True

    def drop(self) -> None:
        """Drop the oldest that wait, down to the bounds of the queue."""
        dropped = self.queue.drop_oldest()
        self.dropped += dropped
        self._dropped_unsaid += dropped
        if self._log is not None:
            self._log.dropped(dropped)
        if self._delays is not None:
            self._delays.dropped(self.count + self.dropped)

    def may_resume(self, received: int) -> bool:
        """Tell whether all is here that a client lacks which has received so many."""
        return self._consumed <= received and self._sent.reaches(received)

    def resume(self, received: int, window: int) -> None:
        """Send again what a client has not received that is back."""
        self.window = window
        self._again = self._sent.after(received)

    def keep_nothing(self) -> None:
        """Let what is sent from now on not be sent again."""
        self._sent.close()

    def end(self) -> int:
        """Forget everything; return how many were never sent."""
        self._again.clear()
        left = self.queue.clear() + len(self._fresh)
        self._fresh = []
        if self._log is not None:
            self._log.ended()
        return left


def _write(connection: Connection, dropped: int, items: list[bytes]) -> int:
    """Write deliveries, and before them how many were dropped; return how many bytes."""
    if dropped:
        connection.write(encode_gap(dropped))
    frame = encode_items(FrameKind.DELIVER, items)
    connection.write(frame)
    return len(frame)
