"""What a client is told past its deliveries: answers to its requests, signs of life, status.

Answers are lost with a connection. A client that goes on over another one sends the publications
again that it knows no answer to, and they are answered again without being published again.
"""

from octopis.broker.connection import Connection
from octopis.core.wire.client import AnswerItem, PublishRequest, encode_answers
from octopis.core.wire.control import Refusal
from octopis.core.wire.durable import READS_MAX
from octopis.core.wire.frames import FRAME_MAX
from octopis.core.wire.published import count_notifications
from octopis.errors import (
    ConnectionLost,
    InvalidNotification,
    NotPermitted,
    OctopisError,
    ProtocolError,
    StoreFailed,
)

REQUESTS_MAX = 10_000
"""Requests of a client that may wait, and answers that it may leave unread."""

REPLIES_MAX = 100
"""The same for status and signs of life."""

REPLIES_BYTES = READS_MAX * FRAME_MAX // 2
"""Bytes of such replies, and of what was read of durable subscriptions, that may wait so."""

_REFUSED = (InvalidNotification, NotPermitted, StoreFailed)
_REMEMBERED_MAX = 100
_LENGTH_MAX = 500


class Answers:
    """What waits to be told to a client, and what was told of its publications.

    Over the life of a session the numbers of publish requests rise. So the highest one tells,
    after a break, which are sent again; all that is left to know is what became of those. Most
    were accepted: only the others are remembered, the latest of them.
    """

    def __init__(self) -> None:
        self._answers: list[AnswerItem] = []
        self._replies: list[bytes] = []
        self.bytes = 0
        """How many bytes of replies wait."""

        self._last = self._before = self._forgotten = -1
        self._waiting: set[int] = set()
        self._remembered: dict[int, AnswerItem] = {}

    def tell(self, frame: bytes) -> None:
        """Say something as soon as the client reads."""
        self._replies.append(frame)
        self.bytes += len(frame)

    def reply(self, frame: bytes, connection: Connection) -> None:
        """Say something at once. Raises ProtocolError where too much waits to be read."""
        self.tell(frame)
        self.write(connection)
        if len(self._replies) > REPLIES_MAX:
            raise ProtocolError("the client does not read its answers")

    def answer(
        self, request: int, error: OctopisError | None = None, unsent: int = 0, unheard: int = 0
    ) -> None:
        """Answer a request as soon as the client reads."""
        item = AnswerItem(request, None if error is None else Refusal.of(error), unsent, unheard)
        self._answers.append(item)
        if unsent or isinstance(error, _REFUSED):  # it was a publication
            self._remember(item)

    def write(self, connection: Connection) -> None:
        """Let all go, as far as the socket has room."""
        if self._replies and connection.is_writable:
            connection.write(b"".join(self._replies))
            self._replies, self.bytes = [], 0
        if self._answers and connection.is_writable:
            connection.write(encode_answers(self._answers))
            self._answers = []

    @property
    def is_unread(self) -> bool:
        """Whether the client leaves too many answers unread."""
        return len(self._answers) > REQUESTS_MAX or self.bytes > REPLIES_BYTES

    def clear(self) -> None:
        """Forget what waits: the connection is gone over which it was asked."""
        self._answers, self._replies, self.bytes = [], [], 0

    # Publications that come again

    def takes(self, request: PublishRequest) -> bool:
        """Note a publish request; where it was taken before a break, answer it, and say False."""
        number = request.request
        if number > self._before:
            self._last = max(self._last, number)
            return True
        if number in self._waiting:  # it is answered in its turn, or has been since the break
            return False
        if number in self._remembered:
            self._answers.append(self._remembered[number])
        elif number <= self._forgotten:
            count = count_notifications(request.notifications)
            self.answer(number, ConnectionLost("the broker has forgotten its answer", count))
        else:
            self.answer(number)
        return False

    def resume(self, waiting: set[int]) -> None:
        """Let requests come again that were taken until now; these are `waiting` for their turn."""
        self._before = self._last
        self._waiting = waiting

    def _remember(self, item: AnswerItem) -> None:
        self._remembered[item.request] = item
        if item.refusal is not None and len(item.refusal.message) > _LENGTH_MAX:
            self._forget(item.request)
        elif len(self._remembered) > _REMEMBERED_MAX:
            self._forget(next(iter(self._remembered)))

    def _forget(self, request: int) -> None:
        del self._remembered[request]
        self._forgotten = max(self._forgotten, request)
