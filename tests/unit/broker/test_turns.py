from collections.abc import Callable
from typing import Any

import pytest

from octopis.broker.clients.turns import FIRST, TEXT_MAX, TURN_S, Turns
from octopis.core.wire.published import Published, encode_published


class Clients:
    """Clients that publish in turns, of which each takes as long as it is told."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Callable[..., None], str]] = []
        self.went_on: list[str] = []
        made: Any = Turns
        self.turns = made(self.went_on.append, self._call_later, lambda: self.now)

    def _call_later(self, delay_s: float, then: Callable[..., None], client: str) -> None:
        self.timers.append((delay_s, then, client))

    def turn(self, took_s: float, **parts: list[Published]) -> dict[str, int]:
        """Return how many of each client a turn takes in that lasts so long."""
        self.turns.begin()
        taken = {}
        for client, part in parts.items():
            if not self.turns.may_join(client):
                break
            taken[client] = len(self.turns.fitting(client, part))
        self.now += took_s
        self.turns.end()
        return taken

    def trust(self, *clients: str) -> None:
        """Let clients have had many turns that cost nothing."""
        for client in clients:
            for _ in range(10):
                self.turn(0.0, **{client: plain(1_000)})


def plain(count: int) -> list[Published]:
    return texts(*[1] * count)


def texts(*sizes: int) -> list[Published]:
    return [with_texts({"text": "x" * size, "n": 1}) for size in sizes]


def with_texts(attributes: dict[str, Any], payload: bytes = b"") -> Published:
    encoded = encode_published(attributes, payload, "one", 1, 0)
    return Published(attributes, payload, "one", 1, 0, encoded)


def test_a_new_client_has_few_and_then_twice_as_many_each_time():
    clients = Clients()
    found = [clients.turn(0.0005, one=plain(1_000))["one"] for _ in range(5)]
    assert found == [FIRST, 2 * FIRST, 4 * FIRST, 8 * FIRST, 16 * FIRST]
    clients.turn(0.0, one=plain(1))
    assert clients.turn(0.0, one=plain(1_000)) == {"one": 32 * FIRST}  # only use lets it grow


def test_nobody_has_more_of_a_turn_than_its_allowance():
    clients = Clients()
    clients.turns.begin()
    one: Any = "one"
    assert len(clients.turns.fitting(one, plain(3))) == 3
    assert clients.turns.may_join(one)
    assert len(clients.turns.fitting(one, plain(3))) == FIRST - 3
    assert not clients.turns.may_join(one)
    assert clients.turns.may_join("other")  # type: ignore[arg-type]  # as far as it matters here


def test_a_dear_client_gets_so_few_that_its_turns_are_short():
    clients = Clients()
    clients.trust("one")
    assert clients.turn(0.099, one=plain(100)) == {"one": 100}
    assert clients.turn(0.005, one=plain(100)) == {"one": round(TURN_S / 0.001)}
    assert not clients.turns.resting


def test_a_dear_client_is_alone_in_its_turns_until_it_is_dear_no_more():
    clients = Clients()
    clients.turn(0.0039, one=plain(4))
    assert clients.turn(0.005, one=plain(9), other=plain(1)) == {"one": 5}
    assert clients.turn(0.0, other=plain(1), one=plain(9)) == {"other": 1}
    assert clients.turn(0.0, one=plain(5)) == {"one": 5}
    assert clients.turn(0.0, other=plain(1), one=plain(9)) == {"other": 1, "one": 9}


def test_all_of_a_long_turn_are_suspect_and_each_is_cleared_alone():
    clients = Clients()
    clients.trust("one", "other", "third")
    together = {"one": plain(10), "other": plain(10), "third": plain(10)}
    assert len(clients.turn(0.03, **together)) == 3
    assert clients.turn(0.0, **together) == {"one": 10}
    assert clients.turn(0.0, other=plain(10), third=plain(10)) == {"other": 10}
    assert clients.turn(0.01, third=plain(10)) == {"third": 10}  # it was this one
    assert clients.turn(0.0, **together) == {"one": 10, "other": 10}
    assert clients.turn(0.03, one=plain(10), other=plain(10)) == {"one": 10, "other": 10}
    assert clients.turn(0.0, one=plain(10), other=plain(10)) == {"one": 4, "other": 4}  # trusted
    clients.now += 2.0
    assert len(clients.turn(0.03, one=plain(10), other=plain(10))) == 2
    assert len(clients.turn(0.0, one=plain(10), other=plain(10))) == 1


def test_long_turns_of_many_cheap_ones_raise_no_suspicion():
    clients = Clients()
    clients.trust("one", "other")
    together = {"one": plain(100), "other": plain(100)}
    assert clients.turn(0.02, **together) == {"one": 100, "other": 100}
    assert clients.turn(0.02, **together) == {"one": 100, "other": 100}


def test_where_a_single_one_takes_long_its_client_rests_as_long():
    clients = Clients()
    clients.turn(0.03, one=plain(1))
    assert list(clients.turns.resting) == ["one"]
    [(delay_s, has_rested, client)] = clients.timers
    assert delay_s == pytest.approx(0.03)
    has_rested(client)
    assert clients.went_on == ["one"]
    assert not clients.turns.resting


def test_nobody_is_called_back_after_leaving():
    clients = Clients()
    clients.turn(0.03, one=plain(1))
    clients.turns.leave("one")  # type: ignore[arg-type]  # as far as it matters here
    [(_, has_rested, client)] = clients.timers
    has_rested(client)
    assert clients.went_on == []
    assert clients.turn(0.0, other=plain(1), one=plain(9)) == {"other": 1, "one": FIRST}


def test_a_turn_takes_in_no_more_text_than_one_value_may_have():
    clients = Clients()
    clients.trust("one", "other")
    assert clients.turn(0.0, one=texts(30_000, 30_000, 30_000), other=plain(1)) == {"one": 2}
    taken = clients.turn(0.0, one=texts(30_000), other=texts(50_000), third=plain(1))
    assert taken == {"one": 1, "other": 0}
    assert clients.turn(0.0, one=texts(*[100] * 256)) == {"one": 256}


def test_a_single_notification_is_always_taken_in():
    large = with_texts({f"t{number}": "x" * TEXT_MAX for number in range(3)})
    assert Clients().turn(0.0, one=[large, *texts(5_000)]) == {"one": 1}


def test_payloads_are_no_texts():
    large = with_texts({"x": 1}, bytes(100_000))
    assert Clients().turn(0.0, one=[large] * FIRST) == {"one": FIRST}
