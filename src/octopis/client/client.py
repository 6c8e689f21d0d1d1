"""The client library: publish and subscribe at a broker, and stay connected."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, overload

from octopis.client.address import Backoff
from octopis.client.connection import ClientConnection
from octopis.client.credentials import Given
from octopis.client.dialling import Dialling
from octopis.client.durable import DurableNotifications, Start, durable_stream
from octopis.client.login import Login
from octopis.client.publishing import Publication, Publishing
from octopis.client.staging import StagingClient
from octopis.client.streams import Gap, Notifications, Streams
from octopis.client.subscribing import Subscribing, numbered
from octopis.client.unanswered import Unanswered
from octopis.core.model import BrokerId, Notification, Value
from octopis.core.wire.client import AnswerItem, Consumed, Delivery, encode_request
from octopis.core.wire.greeting import ClientHello, Welcome
from octopis.errors import (
    ConnectionFailed,
    ConnectionLost,
    InvalidConfiguration,
    InvalidFilter,
    LoginFailed,
    NotOpen,
    OctopisError,
)

if TYPE_CHECKING:
    from octopis.core.filters import Filter

WINDOW = 10_000
"""How many notifications wait in a client at most, for its program to read them."""

SILENCE_S = 20.0
_log = logging.getLogger(__name__)


class Client(StagingClient):
    """A connection to the overlay that mends itself. Made by `octopis.connect`.

    When the connection breaks, the client dials again: first the same address, then the next ones.
    Where the broker still has its session, it goes on as if nothing had happened. Else it
    subscribes anew and tells every stream of the gap; and `publish` raises ConnectionLost for what
    was not accepted yet, or with `resend` sends it again, so that it may arrive twice.
    """

    def __init__(  # noqa: PLR0913 - named options of one client
        self,
        address: str,
        *,
        client_id: str | None = None,
        window: int = WINDOW,
        connect_s: float = 5.0,
        retry_s: float = 0.0,
        reconnect_s: float = 60.0,
        secret: str | None = None,
        observer: bool = False,
        resend: bool = False,
        credentials: Given = None,
    ) -> None:
        self._name = client_id or f"client-{secrets.token_hex(8)}"
        self.id = self._name  # once it has logged in, what it is called in the whole overlay
        self._secret = secret or secrets.token_hex(16)
        self.has_secret = bool(secret)
        self._instance = secrets.token_hex(8)
        self._store = ""
        self._observer = observer
        self.broker: BrokerId | None = None  # the one that it is connected to, once it is
        self._dialling = Dialling(address, connect_s, credentials)
        self._window = max(1, window)
        self._retry_s = retry_s
        self._reconnect_s = reconnect_s
        self._connection: ClientConnection | None = None
        self._connected = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._failure = None
        self._numbers = count(1)
        self._subscribing = Subscribing()
        self._streams = Streams(self._window)
        self._session = ""
        self._session_s = 0.0
        self._requests = count(1)
        self._unanswered = Unanswered(self._requests, resend=resend)
        ways = self._open_connection, self._open_now
        self._publishing = Publishing(self.id, *ways, self._unanswered)

    # Life

    async def __aenter__(self) -> "Client":
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect, or raise ConnectionFailed.

        All addresses are tried in turn, again and again for `retry_s`.
        """
        welcome = self._reached(await self._dialling.anywhere(self._dialled, self._retry_s))
        self._session, self._store = welcome.session, welcome.store
        self._connected.set()
        self._keeper = asyncio.get_running_loop().create_task(self._keep())
        self._keeper.add_done_callback(self._kept)

    async def close(self) -> None:
        """Say goodbye, for good. Streams end; what waits for an answer raises ConnectionLost."""
        self._streams.end(None)
        self._fail(ConnectionLost("the client is closed"))
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._connection is not None:
            self._connection.close("the client is done")
            await self._connection.lost

    # Publishing

    async def publish(
        self,
        attributes: Mapping[str, Value] | Notification,
        payload: bytes = b"",
        *,
        intended_ns: int | None = None,
    ) -> None:
        """Publish a notification; returns when the host broker has accepted it.

        A Notification, whose payload is its own, is taken as it is: checked by whoever made it.
        `intended_ns` is when it was meant to be published, if not now (nanoseconds since 1970).
        Raises InvalidNotification, or ConnectionLost where nobody can say what became of it.
        """
        await self._publishing.publish(attributes, payload, intended_ns)

    @property
    def bytes_max(self) -> int:
        """How many bytes a notification may have, all told, where this client is connected."""
        return self._publishing.limits.frame_max // 2

    @property
    def unsent(self) -> int:
        """How many copies of its publications went nowhere so far: links of the host were down."""
        return self._publishing.unsent

    async def publish_many(self, publications: Iterable[Publication]) -> int:
        """Publish many, and return how many.

        Each is attributes, (attributes, payload) or (attributes, payload, intended_ns).

        Much faster than one by one: many are on their way at a time. Raises as `publish` does,
        after those that were under way have been answered.
        """
        return await self._publishing.publish_many(publications)

    def _encoded(self, publication: Publication) -> bytes:
        return self._publishing.encoded(publication)

    # Subscribing

    @overload
    def subscribe(
        self,
        *filters: "str | Filter",
        dialect: str = "sql",
        on_gap: Callable[[Gap], None] | None = None,
        names: Sequence[str] | None = None,
        durable: None = None,
    ) -> Notifications: ...

    @overload
    def subscribe(
        self,
        *filters: "str | Filter",
        dialect: str = "sql",
        on_gap: Callable[[Gap], None] | None = None,
        durable: str,
        start: Start = None,
        policy: str | None = None,
        acks: Literal["auto", "manual"] = "auto",
    ) -> DurableNotifications: ...

    def subscribe(
        self,
        *filters: "str | Filter",
        dialect: str = "sql",
        on_gap: Callable[[Gap], None] | None = None,
        names: Sequence[str] | None = None,
        durable: str | None = None,
        **lasting: Any,
    ) -> Notifications | DurableNotifications:
        """Return a stream of what any of the filters matches; see Notifications for its use.

        `names` are the subscriptions' ids, one per filter and unique in the whole overlay; by
        default they are made of the client's. Raises InvalidFilter at once where a filter makes
        no sense.

        With `durable`, a name, the subscription is kept on disk by the broker of this client until
        it is dropped, and so is what matches until it is acknowledged: see DurableNotifications.
        It begins behind the last that was acknowledged; or at `start`, which is "earliest", "new"
        or a position. `policy` says what becomes of it when the broker's disk is full ("refuse",
        "drop_oldest" or "suspend"). `acks` is "auto" or "manual". Without a filter it must exist.
        """
        if not filters and durable is None:
            raise InvalidFilter("a stream needs at least one filter; 'TRUE' asks for everything")
        from octopis.core.filters import Filter, parse_filter  # noqa: PLC0415 - publishers need none

        asked = [
            each if isinstance(each, Filter) else parse_filter(each, dialect) for each in filters
        ]
        if durable is not None:
            return durable_stream(self, durable, asked, on_gap=on_gap, **lasting)
        if lasting:
            reason = f'{", ".join(lasting)}: only with durable="a name"'
            raise InvalidConfiguration(reason)
        return Notifications(self, numbered(asked, names, self._numbers, self._name), on_gap)

    async def open_stream(self, stream: Notifications) -> None:
        """Subscribe a stream's filters."""
        self._streams.add(stream)
        try:
            await self._subscribing.subscribe(stream, await self._open_connection())
        except BaseException:
            await self.close_stream(stream)
            raise

    async def close_stream(self, stream: Notifications) -> None:
        """Unsubscribe a stream's filters."""
        self._streams.remove(stream)
        self.consumed()
        await self._subscribing.unsubscribe(stream, self._connection)

    # What the connection and the streams tell

    def welcomed(self, welcome: Welcome) -> None:
        """Note that a session begins, or goes on."""
        self._streams.welcomed(resumed=welcome.resumed)
        self._session_s = welcome.session_ms / 1000
        if not welcome.resumed:
            self._session = ""  # the new one is whole once everything is subscribed

    def answered(self, item: AnswerItem) -> bool:
        """Take the answer to a publication; False where there was none with that number."""
        return self._unanswered.answered(item)

    def delivered(self, deliveries: list[Delivery]) -> None:
        """Hand deliveries to the streams that they are for."""
        self._streams.deliver(deliveries)
        self.consumed()

    def gap(self, dropped: int) -> None:
        """Tell every stream that deliveries were dropped."""
        reason = f"the broker dropped {dropped:,} for this slow client"
        self._streams.gap_before_next(Gap(reason, dropped))

    def missed(self, host: BrokerId, count: int | None) -> None:
        """Tell every stream that notifications published at a host will not come."""
        self._streams.tell_gap(Gap.missed(host, count))

    def lost(self, number: int, reason: str) -> None:
        """End the stream of a subscription that is another connection's now."""
        self._streams.lose(number, reason)

    def consumed(self) -> None:
        """Tell the broker now and then how much has been consumed, so that it sends more."""
        if self._connection is None or not self._connection.is_open:
            return
        count = self._streams.to_report(asyncio.get_running_loop().time())
        if count is not None:
            self._connection.tell(encode_request(Consumed(count)))

    # Staying connected

    async def _open_connection(self) -> ClientConnection:
        if self._keeper is None:
            raise NotOpen(
                "the client is not open: use `async with octopis.connect(...) as client`, "
                "or `await client.open()` first and `await client.close()` at the end"
            )
        while True:
            await self._connected.wait()
            if self._failure is not None:
                raise self._failure
            if (connection := self._open_now()) is not None:
                return connection
            self._connected.clear()  # `_keep` has not noticed yet

    def _open_now(self) -> ClientConnection | None:
        """Return the connection, if there is one over which the client has gone on."""
        connection = self._connection
        is_there = self._connected.is_set() and self._failure is None
        return connection if is_there and connection is not None and connection.is_open else None

    def _dialled(self, login: Login) -> ClientConnection:
        """Return a connection that says who this client is, and what it has."""
        backlog, received = self._streams.dial()
        about = (self._name, self._window, backlog, self._secret, self._observer)
        hello = ClientHello(*about, self._session, received, self._instance, login.said)
        return ClientConnection(hello, self, self._requests, login)

    def _reached(self, connection: ClientConnection) -> Welcome:
        """Go on over a connection that a broker has welcomed."""
        self._connection = connection
        welcome = connection.welcome.result()
        self._publishing.limits = welcome
        self.id = self._publishing.publisher = welcome.client or self._name
        self.broker = welcome.broker
        return welcome

    async def _keep(self) -> None:
        """Watch the connection, and mend it."""
        loop = asyncio.get_running_loop()
        while True:
            connection = self._connection
            assert connection is not None
            while not connection.lost.done():
                await asyncio.wait([connection.lost], timeout=SILENCE_S / 4)
                if loop.time() - connection.heard_at > SILENCE_S:
                    connection.abort("the broker gives no sign of life")
            self._connected.clear()
            reason = connection.lost.result()
            _log.warning("%s lost its connection: %s", self.id, reason)
            if connection.is_ended:  # on purpose: there is nothing to go on with
                self._session = ""
                self._dialling.turn()
                if self.on_goodbye is not None:
                    self.on_goodbye(reason)
            session_s = self._session_s if self._session else 0.0
            self._unanswered.cut_off(reason, self._reconnect_s if self._store else session_s)
            if not await self._reconnect(reason):
                return
            self._connected.set()
            self._publishing.wake()

    def _kept(self, keeper: "asyncio.Task[None]") -> None:
        """Let nobody wait for a connection that nobody mends any more."""
        if not keeper.cancelled() and keeper.exception() is not None:
            self._fail(ConnectionFailed(f"the client is broken: {keeper.exception()!r}"))

    async def _reconnect(self, reason: str) -> bool:
        """Dial until it works, and go on; False where the client has given up."""
        loop = asyncio.get_running_loop()
        backoff = Backoff(most_s=2.0)
        deadline = loop.time() + self._reconnect_s
        while True:
            await asyncio.sleep(backoff.next())
            try:
                welcome = self._reached(await self._dialling.first(self._dialled))
                await self._go_on(welcome, reason)
            except LoginFailed as failure:  # the same would fail again
                self._fail(failure)
                return False
            except (ConnectionFailed, InvalidConfiguration) as failure:  # files may be replaced now
                self._dialling.turn()
                if loop.time() > deadline:
                    tried = f"gave up after {self._reconnect_s:g} s: {failure}"
                    self._fail(ConnectionFailed(f"the connection was lost: {reason}; {tried}"))
                    return False
            else:
                _log.warning("%s is connected again, to %s", self.id, self.broker)
                return True

    async def _go_on(self, welcome: Welcome, reason: str) -> None:
        """Go on with the session, or begin anew where the broker does not have it."""
        connection = self._connection
        assert connection is not None
        is_same_store = welcome.store == self._store != ""
        self._store = welcome.store
        if welcome.resumed:
            self._unanswered.connected(connection, reason, resumed=True)
            self.consumed()
            await self._subscribing.resumed(connection)
            return
        self._streams.tell_gap(Gap(f"the connection was lost: {reason}"))
        self._subscribing.moved()
        for stream in self._streams:
            await self._subscribing.resubscribe(stream, connection)
        self._session = welcome.session
        self._unanswered.connected(connection, reason, resumed=is_same_store)

    def _fail(self, failure: OctopisError) -> None:
        """Let everybody know that there will be no connection any more."""
        self._failure = self._failure or failure
        self._unanswered.fail(str(self._failure))
        self._connected.set()
        self._publishing.wake()
        self._streams.end(self._failure)


def connect(address: str, **options: Any) -> Client:
    """Return a client of the broker at `address`, for `async with`.

    `octopis://host:port`; several addresses, separated by commas, are tried in turn. Options
    are those of Client: `client_id`, `window`, `connect_s` (for each try), `retry_s` (how long to
    wait for an overlay that is starting; not at all by default), `reconnect_s`, `secret` (a
    client with the `client_id` and the secret of an earlier one takes over its subscriptions) and
    `resend` (publications without an answer are sent again also where the broker has forgotten
    the session, or is another one: at least once, perhaps twice).

    `credentials`, a file or Credentials, are for overlays with security; without, they are those in
    the file that OCTOPIS_CREDENTIALS names. They mean TLS, and nothing else is spoken then.
    """
    return Client(address, **options)
