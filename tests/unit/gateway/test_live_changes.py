"""What the dashboard's list of events has of overloads that come and go."""

import pytest

from octopis.gateway.live.asking import Watched
from octopis.gateway.live.changes import Changes, Events
from octopis.gateway.live.pulse import LiveEvent

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
