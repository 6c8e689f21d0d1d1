"""Requests about durable subscriptions have turns; whose took long rests before the next one."""

from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from octopis.broker.clients.turns import TURN_S
from octopis.broker.disk.asking import Asking
from octopis.core.wire.durable import ListDurables, encode_durable_request
from octopis.errors import OctopisError


class Session:
    """What a turn asks of a client."""

    def __init__(self, name: str, count: int) -> None:
        self.name = name
        self.asked = deque(encode_durable_request(ListDurables(n))[5:] for n in range(count))
        self.connection = SimpleNamespace(is_closing=False)
        self.failures: list[str] = []

    def next_asked(self) -> bytes:
        return self.asked.popleft()

    def forget_asked(self) -> None:
        self.asked.clear()

    def fail(self, failure: OctopisError) -> None:
        self.failures.append(str(failure))
        self.connection.is_closing = True


class Turns:
    """Asking with a clock of the test's, on which a request of each client takes so long."""

    def __init__(self, **took_s: float) -> None:
        self.now, self.took_s = 10.0, took_s
        self.timers: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []
        self.done: list[str] = []
        self.flushed = 0
        made: Any = Asking
        self.asking = made(self._take, self._flush, self._call_later, lambda: self.now)

    def _take(self, session: Session, request: ListDurables) -> None:
        self.done.append(f"{session.name}{request.request}")
        self.now += self.took_s[session.name]

    def _flush(self) -> None:
        self.flushed += 1

    def _call_later(self, delay_s: float, then: Callable[..., None], *about: Any) -> None:
        self.timers.append((self.now + delay_s, then, about))

    def turn(self) -> list[str]:
        """Do what is due, and return what was done of it."""
        self.done.clear()
        due = [each for each in self.timers if each[0] <= self.now]
        self.timers = [each for each in self.timers if each[0] > self.now]
        for _, then, about in due:
            then(*about)
        return list(self.done)


def test_one_request_of_each_client_after_the_other_until_the_turn_is_over():
    turns, sessions = Turns(a=TURN_S * 0.4, b=TURN_S * 0.4), [Session("a", 4), Session("b", 2)]
    for each in sessions:
        turns.asking.add(each)  # type: ignore[arg-type]
    assert turns.turn() == ["a0", "b0", "a1"]
    assert turns.turn() == ["b1", "a2", "a3"]
    assert turns.turn() == []
    assert turns.flushed == 2


def test_whose_request_takes_longer_than_a_turn_rests_as_long_as_it_took():
    turns, dear, cheap = Turns(d=0.5, c=TURN_S / 4), Session("d", 3), Session("c", 30)
    turns.asking.add(dear)  # type: ignore[arg-type]
    assert turns.turn() == ["d0"]
    dear_again = turns.now + 0.5
    turns.asking.add(cheap)  # type: ignore[arg-type]
    turns.asking.add(dear)  # type: ignore[arg-type] - it sends more, and rests on
    assert turns.turn() == ["c0", "c1", "c2", "c3"]
    turns.now = dear_again
    assert "d1" in turns.turn() + turns.turn()


def test_a_client_that_asked_its_last_and_dearest_rests_as_well():
    turns, dear = Turns(d=0.5), Session("d", 1)
    turns.asking.add(dear)  # type: ignore[arg-type]
    assert turns.turn() == ["d0"]
    dear.asked.extend(Session("d", 1).asked)
    turns.asking.add(dear)  # type: ignore[arg-type]
    assert turns.turn() == []
    turns.now += 0.5
    turns.turn()
    assert turns.turn() == ["d0"]


def test_nothing_is_done_for_who_is_sent_away_or_says_what_is_no_request():
    turns, gone, bad = Turns(g=0.0, b=0.0), Session("g", 3), Session("b", 2)
    bad.asked.appendleft(b"\x00")
    for each in (gone, bad):
        turns.asking.add(each)  # type: ignore[arg-type]
    gone.connection.is_closing = True
    assert turns.turn() == []
    assert not gone.asked
    assert not bad.asked
    assert ["cannot be read" in each for each in bad.failures] == [True]
