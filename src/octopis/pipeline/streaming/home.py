"""The home of a durable subscription: of several addresses the one where it lives.

A broker may be away for a while, and a subscription may live at any of them: so it is gone only
where every address has said so.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from octopis.client.address import Backoff, parse_addresses, user_of
from octopis.client.credentials import secured
from octopis.errors import ConnectionFailed, InvalidSubscription, LoginFailed, OctopisError
from octopis.pipeline.streaming.connection import PATIENCE_S, Connection, Gone

_Result = TypeVar("_Result")


class Home:
    """The broker where a durable subscription lives, dialled again where a connection breaks."""

    def __init__(
        self,
        address: str,
        secret: str,
        patience_s: float = PATIENCE_S,
        credentials: str | None = None,
    ) -> None:
        self._addresses = parse_addresses(address)
        self._secured = secured(credentials, user_of(address))
        self._secret = secret
        self._patience_s = patience_s
        self._connection: Connection | None = None

    def close(self) -> None:
        """Let the connection go; the next request dials anew."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(self, work: Callable[[Connection], _Result]) -> _Result:
        """Return what `work` comes to, done again after a break.

        All addresses are tried in turn, for as long as brokers may be away. Raises what was
        refused where all have answered, and else ConnectionFailed: the subscription may live at the
        one that is away.
        """
        until = time.monotonic() + self._patience_s
        backoff = Backoff()
        while True:
            refusals: list[InvalidSubscription] = []
            failure: ConnectionFailed | None = None
            for _ in self._addresses:
                try:
                    return work(self._open())
                except LoginFailed:  # the same would fail again
                    self.close()
                    raise
                except ConnectionFailed as broken:
                    failure = broken
                except InvalidSubscription as refused:  # it may live at the next address
                    refusals.append(refused)
                except BaseException:
                    self.close()
                    raise
                self._turn()
            if failure is None or time.monotonic() >= until:
                raise _verdict(refusals, failure)
            time.sleep(backoff.next())

    def _open(self) -> Connection:
        if self._connection is None:
            self._connection = Connection(self._addresses[0], self._secret, self._secured)
        return self._connection

    def _turn(self) -> None:
        self.close()
        self._addresses.append(self._addresses.pop(0))


def _verdict(refusals: list[InvalidSubscription], failure: ConnectionFailed | None) -> OctopisError:
    """Return what to raise when no address has done what was asked."""
    if not refusals:
        return failure or ConnectionFailed("there is no address")
    refusal = min(refusals, key=lambda each: isinstance(each, Gone))  # who has it knows more
    if failure is None:
        return refusal
    return ConnectionFailed(f"{failure}; another address answers: {refusal}")


_homes: dict[tuple[str, str, str | None], Home] = {}


def take_home(address: str, secret: str, credentials: str | None = None) -> Home:
    """Return the broker that this worker process read from before, or a new one.

    Whoever takes it gives it back when all has been answered. After a task that was killed it is
    not given back, and nobody reads what that task has asked for.
    """
    found = _homes.pop((address, secret, credentials), None)
    return found or Home(address, secret, credentials=credentials)


def give_back(address: str, secret: str, home: Home, credentials: str | None = None) -> None:
    """Keep a connection for the next task of this worker process."""
    _homes[address, secret, credentials] = home
