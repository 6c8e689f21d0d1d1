"""Where tasks stage rows, and a driver commits them: one broker, with a disk.

Some requests are under way at a time. Where the connection breaks, or the broker starts again, all
that has no answer is sent once more, in order: it knows what it has. Where its disk is full, that
goes on until there is room: so a slow overlay slows the query down.
"""

import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

import msgspec

from octopis.client.address import Address, Backoff
from octopis.client.credentials import Secured, secured
from octopis.client.login import Login
from octopis.core.wire.control import Goodbye, encode_control
from octopis.core.wire.durable import CommitStaged, DropStaged, StageRows, encode_durable_request
from octopis.core.wire.greeting import ClientHello, Welcome
from octopis.core.wire.published import count_notifications
from octopis.errors import ConnectionFailed, InvalidConfiguration, LoginFailed, StoreFull
from octopis.pipeline.streaming.connection import PATIENCE_S, Connection

AHEAD = 4
"""So many requests are under way."""

STAGES_MAX = 8
"""So many stages a worker process keeps: that of the query that has been idle longest goes."""

_Result = TypeVar("_Result")
_FULL_S = 0.5
_WARN_S = 10.0
_log = logging.getLogger(__name__)


class Attempt(msgspec.Struct, frozen=True):
    """An attempt at a part of a batch of a query.

    Its number is chance: those that Spark gives begin anew with each driver, and what an earlier
    driver has staged under the same number would be taken for this one's.
    """

    query: str
    batch: int
    part: int
    number: int = msgspec.field(default_factory=lambda: secrets.randbits(62))


class StagingConnection(Connection):
    """A connection under a name of the caller's choice, on which answers need not be waited for."""

    def __init__(self, address: Address, secret: str, name: str, secured: Secured | None) -> None:
        self._name = name
        self._answered: set[int] = set()
        super().__init__(address, secret, secured)

    def _greet(self, address: Address, secret: str, login: Login) -> None:
        hello = ClientHello(self._name, 1, secret=secret, login=login.said)
        self.welcome = self._welcomed(address, hello, login)

    def leave(self) -> None:
        """Say goodbye and go: the broker keeps nothing for one who may come back."""
        with suppress(ConnectionFailed):  # who does not hear it notices that nobody is there
            self._send(encode_control(Goodbye("nothing more is staged")))
        self.close()

    def begin(self, request: type[Any], facts: tuple[object, ...]) -> int:
        """Ask for something; return its number."""
        number = next(self._numbers)
        self._send(encode_durable_request(request(number, *facts)))
        return number

    def finish(self, number: int) -> None:
        """Wait until a request is answered. Raises what is refused, of all that is under way."""
        while number not in self._answered:
            said = self._take(self._next_frame())
            if isinstance(said, list):
                self._answered.update(each.request for each in said)
        self._answered.discard(number)


class _Request(msgspec.Struct):
    kind: type[Any]
    facts: tuple[object, ...]
    number: int = 0
    """By which it was sent on the connection that there is."""


class Stage:
    """A broker that batches are staged at, dialled again where a connection breaks.

    All that one query stages here has one publisher, whose numbers go on from attempt to attempt:
    publisher and number together name a notification. What is committed is published in the order
    of batches and parts. So an attempt that does not come behind the one before, as one that is
    tried again, begins under a new name: the numbers of each publisher come in order.
    """

    def __init__(
        self,
        address: Address,
        secret: str,
        patience_s: float = PATIENCE_S,
        credentials: str | None = None,
        user: str | None = None,
    ) -> None:
        self.numbered = 0
        """The number of the last row."""

        self._last = -1, -1
        """Batch and part of the last attempt."""

        self._take_name()
        self._address, self._secret, self._patience_s = address, secret, patience_s
        self._secured = secured(credentials, user)
        self._connection: StagingConnection | None = None
        self._under_way: deque[_Request] = deque()
        self._warned_at = -_WARN_S

    def _take_name(self) -> None:
        self.name = f"spark-{secrets.token_hex(8)}"
        self.publisher = self.name
        """Who publishes what is staged here, as the broker calls it."""

    def close(self) -> None:
        """Let the connection go, and what is under way."""
        self._under_way.clear()
        if self._connection is not None:
            self._connection.leave()
            self._connection = None

    def begin(self, attempt: Attempt) -> None:
        """Know whose rows come next."""
        place = attempt.batch, attempt.part
        if place <= self._last:
            self.close()
            self._take_name()
            self.numbered = 0
        self._last = place

    def limits(self) -> Welcome:
        """Return what the broker takes; raises InvalidConfiguration where it has no disk."""
        welcome = self._patiently(lambda connection: connection.welcome)
        if not welcome.store:
            raise InvalidConfiguration(
                f"{welcome.broker.short} at octopis://{self._address} has no disk, so it cannot "
                "publish a batch exactly once: start the overlay with one "
                "(octopis overlay up --durable DIR), or say "
                '.option("atLeastOnce", "true"): then rows of a batch that is run again are '
                "published again"
            )
        return welcome

    def stage(self, attempt: Attempt, first: int, rows: bytes) -> None:
        """Stage rows of an attempt, from row `first` on; wait only where many are under way."""
        about = attempt.query, attempt.batch, attempt.part, attempt.number
        self.numbered += count_notifications(rows)
        self._ask(StageRows, *about, first, rows)
        self._wait(AHEAD - 1)

    def wait(self) -> None:
        """Wait until all that was staged is on the broker's disk."""
        self._wait(0)

    def commit(
        self,
        query: str,
        batch: int,
        attempts: list[tuple[int, int, int]],
        *,
        one_off: bool = False,
    ) -> None:
        """Publish a batch once: of each part this attempt, which has so many rows.

        `one_off`: nobody but the caller knows its name, and could ask for it again.
        """
        self._ask(CommitStaged, query, batch, attempts, one_off)
        self._wait(0)

    def drop(self, query: str, batch: int, attempts: list[tuple[int, int]]) -> None:
        """Forget attempts, by part and number."""
        self._ask(DropStaged, query, batch, attempts)
        self._wait(0)

    def _ask(self, kind: type[Any], *facts: object) -> None:
        request = _Request(kind, facts)
        self._under_way.append(request)
        if self._connection is not None:
            with suppress(ConnectionFailed):  # whoever waits for the answer dials again
                request.number = self._connection.begin(kind, facts)

    def _wait(self, most: int) -> None:
        """Wait until at most so many requests are without an answer."""
        while len(self._under_way) > most:
            self._patiently(self._finish_first)
            self._under_way.popleft()

    def _finish_first(self, connection: StagingConnection) -> None:
        connection.finish(self._under_way[0].number)

    def _patiently(self, work: Callable[[StagingConnection], _Result]) -> _Result:
        """Return what `work` comes to, done again after breaks and while there is no room."""
        until = time.monotonic() + self._patience_s
        backoff = Backoff()
        while True:
            try:
                return work(self._dialled())
            except StoreFull as full:
                self._cut()
                self._say(full)
                until = time.monotonic() + self._patience_s
                time.sleep(_FULL_S)
            except LoginFailed:  # the same would fail again
                self.close()
                raise
            except ConnectionFailed:
                self._cut()
                if time.monotonic() >= until:
                    raise
                time.sleep(backoff.next())
            except BaseException:
                self.close()
                raise

    def _dialled(self) -> StagingConnection:
        """Return a connection on which all is under way that has no answer."""
        if self._connection is None:
            self._connection = StagingConnection(
                self._address, self._secret, self.name, self._secured
            )
            self.publisher = self._connection.welcome.client or self.name
            for each in self._under_way:
                each.number = self._connection.begin(each.kind, each.facts)
        return self._connection

    def _cut(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _say(self, full: StoreFull) -> None:
        now = time.monotonic()
        if now >= self._warned_at + _WARN_S:
            self._warned_at = now
            _log.warning("the query waits: %s", full)


class Place(NamedTuple):
    """Where a query stages its rows, whose they are there, and by what it logs in."""

    address: Address
    secret: str
    credentials: str | None = None
    user: str | None = None

    def stage(self) -> Stage:
        """Return a new stage there; it is dialled when something is asked for."""
        return Stage(self.address, self.secret, credentials=self.credentials, user=self.user)


_stages: dict[tuple[Place, str], Stage] = {}
"""Of each query the stage that waits for its next task; the one used last stands last."""


@contextmanager
def staging_at(place: Place, query: str, *, keeps: bool = True) -> Iterator[Stage]:
    """Give the stage that this worker process had for a query before, or a new one.

    After an error it is not kept: nobody knows what is under way there. Nor is it where nothing
    more comes of the query.
    """
    stage = _stages.pop((place, query), None) or place.stage()
    try:
        yield stage
    except BaseException:
        stage.close()
        raise
    if not keeps:
        stage.close()
        return
    _stages[place, query] = stage
    if len(_stages) > STAGES_MAX:
        _stages.pop(next(iter(_stages))).close()
