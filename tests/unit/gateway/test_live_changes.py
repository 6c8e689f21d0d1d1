"""What the dashboard's list of events has of overloads that come and go."""

from typing import Any

import pytest

from octopis.gateway.live.asking import Watched
from octopis.gateway.live.changes import Changes, Events
from octopis.gateway.live.pulse import LiveEvent, pulse_of

PULSE_MS = 500


class Looked:
    """A broker with one link, looked at twice a second."""

    def __init__(self) -> None:
        self.events = Events()
        self._changes = Changes(self.events)
        self._watched = Watched("a,0", "127.0.0.1:1")
        self._at_ms, self._uptime_s = 0, 100.0

    def see(self, pattern: str, pulse_ms: int = PULSE_MS) -> list[tuple[str, int]]:
        """Look once for each sign; return what was told, and when.

        x: overloaded, -: not, !: no answer, 0: not overloaded, and started anew.
        """
        seen = self.events.last
        for sign in pattern:
            self._at_ms += pulse_ms
            self._uptime_s = 0.0 if sign == "0" else self._uptime_s + pulse_ms / 1000
            link = {"up": True, "overloaded": sign == "x"}
            status = {
                "uptime_s": self._uptime_s,
                "links": {"b,0": link},
                "clients": {},
                "drops": {},
            }
            self._watched.status = None if sign == "!" else status
            self._changes.look(self._watched, self._at_ms)
        return [(each.kind, each.at_ms) for each in self.events.since(seen)]

    def last(self) -> LiveEvent:
        """Return the last event."""
        return self.events.since(self.events.last - 1)[0]


@pytest.fixture
def looked() -> Looked:
    return Looked()


def test_link_that_flickers_is_one_overload_and_one_relief_with_a_count(looked: Looked):
    assert looked.see("-" + "x-" * 200) == [("overload", 1_000)]
    assert looked.see("------") == [("relief", 1_000 + 399 * PULSE_MS + 2_500)]
    assert (
        looked.last().text == "the link from a,0 to b,0 is no longer overloaded; it was 200 times"
    )


def test_relief_is_told_after_three_seconds_without_overload(looked: Looked):
    assert looked.see("-xx-----") == [("overload", 1_000)]
    assert looked.see("-") == [("relief", 1_500 + 3_000)]
    assert looked.last().text == "the link from a,0 to b,0 is no longer overloaded"
    assert looked.see("-----") == []


def test_overload_after_a_relief_is_told_again(looked: Looked):
    kinds = [kind for kind, _ in looked.see("x------x------")]
    assert kinds == ["overload", "relief", "overload", "relief"]


def test_relief_is_told_at_the_next_look_where_looks_are_seldom(looked: Looked):
    assert looked.see("x-", pulse_ms=5_000) == [("overload", 5_000), ("relief", 10_000)]


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("x!------", ["overload", "broker_down", "broker_up"]),
        ("x0------", ["overload", "restart"]),
        ("x0x------", ["overload", "restart", "overload", "relief"]),
    ],
)
def test_overload_of_a_broker_that_died_has_no_relief(
    looked: Looked, pattern: str, told: list[str]
):
    assert [kind for kind, _ in looked.see(pattern)] == told


def client(dropped: int, *, backpressure: bool = False) -> dict[str, Any]:
    numbers = dict.fromkeys(("subscriptions", "queue_length"), 0)
    return {**numbers, "dropped": dropped, "backpressure": backpressure}


class Subscribed(Watched):
    """A broker with one client, looked at twice a second."""

    def __init__(self) -> None:
        super().__init__("a,0", "127.0.0.1:1")
        self.events = Events()
        self.changes = Changes(self.events)

    def see(self, about: dict[str, Any]) -> bool:
        """Look once; return whether the page shows the client as slow."""
        at_ms = round(1_000 * self.at) + PULSE_MS
        status = {"uptime_s": at_ms / 1_000, "links": {}, "clients": {"carl": about}, "drops": {}}
        status |= {"published": 0, "counters": {}}
        self.before, self.before_at = self.status, self.at
        self.status, self.at = status, at_ms / 1_000
        self.changes.look(self, at_ms)
        pulse = pulse_of(at_ms, [self], {})
        assert pulse.brokers["a,0"].slow_clients == len(pulse.slow)
        return [each.client for each in pulse.slow] == ["carl"]

    def told(self) -> int:
        return sum(each.kind == "slow_client" for each in self.events.since(0))


def test_client_that_has_once_lost_something_is_not_slow_for_ever():
    broker = Subscribed()
    assert not broker.see(client(dropped=7))  # that was before anybody looked
    assert broker.see(client(dropped=8))
    assert not any(broker.see(client(dropped=8)) for _ in range(7))
    assert broker.told() == 1
    assert broker.see(client(dropped=9))
    assert broker.told() == 2


def test_client_is_slow_while_there_is_backpressure_and_that_is_told_once():
    broker = Subscribed()
    assert not broker.see(client(0))
    pattern = [True, False, True, True, False, True]
    assert [broker.see(client(0, backpressure=each)) for each in pattern] == pattern
    assert broker.told() == 1
