"""What a client asks for: taken in where it comes, and done in its turn."""

import logging
from abc import abstractmethod
from collections import deque
from typing import TYPE_CHECKING

from octopis.broker.clients.answers import REQUESTS_MAX, Answers
from octopis.broker.clients.permitted import Permit
from octopis.broker.connection import Connection
from octopis.core.wire.client import (
    Change,
    ClientControl,
    FromClient,
    PublishRequest,
    decode_from_client,
)
from octopis.core.wire.control import Goodbye, Ping, Pong, Status, StatusRequest, encode_control
from octopis.core.wire.frames import Frame
from octopis.core.wire.published import check_size
from octopis.errors import (
    InvalidNotification,
    NotPermitted,
    OctopisError,
    ProtocolError,
)
from octopis.logs import one_line

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker

NO_STATUS = "your role may not see how brokers are: it needs status = true"
_OBSERVING = (StatusRequest, Ping, Pong, Goodbye)
_log = logging.getLogger(__name__)


class Requests:
    """What waits of a client's requests. The rest of a session is in ClientSession."""

    name: str
    connection: Connection
    permit: Permit | None
    is_observer: bool
    _answers: Answers

    def __init__(self, broker: "LiveBroker") -> None:
        self.changes: deque[Change] = deque()
        self.publications: deque[PublishRequest] = deque()
        self.publications_bytes = 0
        self.asked: deque[bytes] = deque()
        """What is asked about durable subscriptions and batches, as it came."""

        self.asked_bytes = 0
        self.syncing: set[int] = set()
        """Publications, by their requests, that are taken and not on disk yet."""

        self._broker = broker
        self._intake = broker.intake
        self._limits = broker.overlay.limits

    @abstractmethod
    def answer(self, request: int, error: OctopisError | None = None) -> None:
        """Answer a request; `pump` then lets it go."""

    @abstractmethod
    def pump(self) -> None:
        """Let answers and deliveries go to the socket."""

    @abstractmethod
    def _hold(self) -> None:
        """Say how much is held for the client."""

    def _take_control(self, request: ClientControl) -> None:
        if isinstance(request, Ping):
            self._reply(Pong())
        elif isinstance(request, StatusRequest):
            self._take_status(request)
        elif isinstance(request, Goodbye):
            _log.debug("%s says goodbye: %s", self.name, one_line(request.reason))
            self.connection.is_ended = True

    def _take_status(self, request: StatusRequest) -> None:
        if self.permit is None or self.permit.permissions.sees_status:
            self._reply(Status(request.request, self._broker.status()))
        else:
            self.answer(request.request, NotPermitted(NO_STATUS))
            self.pump()

    def _decode(self, frame: Frame) -> FromClient:
        request = decode_from_client(frame)
        if self.is_observer and not isinstance(request, _OBSERVING):
            raise ProtocolError("an observer only asks for the status")
        return request

    def _reply(self, reply: Pong | Status) -> None:
        """Answer at once, or as soon as the client reads again."""
        self._answers.reply(encode_control(reply), self.connection)

    def _take_publication(self, request: PublishRequest) -> None:
        size, window = len(request.notifications), self._limits.publish_window
        if not self._answers.takes(request):
            self.pump()
            return
        if self.publications and self.publications_bytes + size > window:
            raise ProtocolError(
                f"more than {window:,} bytes of publications are under way without answer"
            )
        try:
            check_size(request.notifications, window)
        except InvalidNotification as refusal:
            self.answer(request.request, refusal)
            self.pump()
            return
        # A copy: the view would keep all that came with it in memory, for as long as it waits.
        self.publications.append(PublishRequest(request.request, bytes(request.notifications)))
        self.publications_bytes += size
        self._hold()

    def _take_asked(self, body: bytes | memoryview) -> None:
        """Let a request about durable subscriptions or batches wait for its turn."""
        self.asked.append(bytes(body))
        self.asked_bytes += len(body)
        most = self._limits.frame_max
        if len(self.asked) > REQUESTS_MAX or self.asked_bytes > most:
            raise ProtocolError(
                f"more than {REQUESTS_MAX:,} requests about durable subscriptions and batches, or "
                f"{most:,} bytes of them, wait for an answer"
            )
        self._hold()

    def next_asked(self) -> bytes:
        """Take the oldest of these requests: it is done now."""
        body = self.asked.popleft()
        self.asked_bytes -= len(body)
        self._hold()
        return body

    def forget_asked(self) -> None:
        """Forget them: nobody waits for their answers any more."""
        self.asked.clear()
        self.asked_bytes = 0

    def finish_publication(self) -> None:
        """Forget the oldest publication: it is on its way, or refused."""
        self.publications_bytes -= len(self.publications.popleft().notifications)
        self._hold()
