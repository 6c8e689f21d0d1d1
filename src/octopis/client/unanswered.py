"""Publications that have no answer yet, and what becomes of them when the connection breaks.

Where the session goes on they are sent again with their numbers: the broker publishes only what it
has not taken yet, and answers all. Else nobody knows what became of them: they fail, or are sent
again all the same, if the user wants that.
"""

import asyncio
from collections.abc import Iterator

from msgspec import Struct

from octopis.client.connection import ClientConnection
from octopis.core.wire.client import AnswerItem, encode_publish
from octopis.errors import ConnectionLost


class _Publication(Struct):
    frame: bytes
    count: int
    answer: "asyncio.Future[AnswerItem]"


class Unanswered:
    """The publications of a client that have no answer, in order.

    With `resend` they survive also the end of a session: then one may be delivered twice.
    """

    def __init__(self, requests: Iterator[int], *, resend: bool) -> None:
        self._requests = requests
        self._resend = resend
        self._waiting: dict[int, _Publication] = {}
        self._given_up = 0
        self._timer: asyncio.TimerHandle | None = None

    def send(
        self, chunk: list[bytes], connection: ClientConnection
    ) -> "asyncio.Future[AnswerItem]":
        """Send notifications, and return what their answer will be."""
        answer: asyncio.Future[AnswerItem] = asyncio.get_running_loop().create_future()
        request = next(self._requests)
        frame = encode_publish(request, chunk)
        self._waiting[request] = _Publication(frame, len(chunk), answer)
        connection.tell(frame)
        return answer

    def answered(self, item: AnswerItem) -> bool:
        """Take an answer; False where it is to something else."""
        publication = self._waiting.pop(item.request, None)
        if publication is None:
            return item.request <= self._given_up
        answer = publication.answer
        if answer.done():  # the caller has given up waiting
            return True
        if item.refusal is None:
            answer.set_result(item)
        else:
            answer.set_exception(item.refusal.as_error())
        return True

    def cut_off(self, reason: str, wait_s: float) -> None:
        """Wait so long for the session to go on: there is no connection."""
        if not self._resend:
            self._timer = asyncio.get_running_loop().call_later(wait_s, self.fail, reason)

    def connected(self, connection: ClientConnection, reason: str, *, resumed: bool) -> None:
        """Send all again over another connection, or fail it: the last one broke by `reason`."""
        self._stop_timer()
        if not resumed and not self._resend:
            self.fail(reason)
        for request, publication in list(self._waiting.items()):
            if publication.answer.done():
                self._give_up(request)  # the caller has done so before
            else:
                connection.tell(publication.frame)

    def fail(self, reason: str) -> None:
        """Give all up: nobody knows what became of it."""
        self._stop_timer()
        for request, publication in list(self._waiting.items()):
            self._give_up(request)
            if not publication.answer.done():
                publication.answer.set_exception(ConnectionLost(reason, publication.count))

    def _give_up(self, request: int) -> None:
        """Wait for no answer, though one may come where the session goes on after all."""
        del self._waiting[request]
        self._given_up = request

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
