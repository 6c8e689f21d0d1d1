from collections.abc import Callable
from typing import Any

from octopis.broker.long_texts import AT_ONCE_MAX, LongTexts
from octopis.core.wire.published import Published, encode_published


class Turns:
    """Turns of which each takes as long as it is told."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Callable[..., None], str]] = []
        self.went_on: list[str] = []
        made: Any = LongTexts
        self.texts = made(self.went_on.append, self._call_later, lambda: self.now)

    def _call_later(self, delay_s: float, then: Callable[..., None], client: str) -> None:
        self.timers.append((delay_s, then, client))

    def take(self, took_s: float, **parts: list[Published]) -> tuple[list[int], list[str]]:
        """Return how many of each client a turn takes in, and who rests then."""
        self.texts.begin()
        taken = [len(self.texts.fitting(each, part)) for each, part in parts.items()]
        self.now += took_s
        return taken, self.texts.end()


def texts(*sizes: int) -> list[Published]:
    found = []
    for size in sizes:
        encoded = encode_published({"text": "x" * size, "n": 1}, b"", "one", 1, 0)
        found.append(Published({"text": "x" * size, "n": 1}, b"", "one", 1, 0, encoded))
    return found


def test_a_turn_takes_in_no_more_text_than_one_value_may_have():
    turns = Turns()
    assert turns.take(0.0, one=texts(30_000, 30_000, 30_000)) == ([2], [])
    assert not turns.texts.has_room
    assert turns.take(0.0, one=texts(30_000), other=texts(50_000)) == ([1, 0], [])
    assert turns.take(0.0, one=texts(*[100] * 256)) == ([256], [])
    assert turns.texts.has_room


def test_a_single_notification_is_always_taken_in():
    turns = Turns()
    many = {f"t{number}": "x" * AT_ONCE_MAX for number in range(3)}
    large = Published(dict(many), b"", "one", 1, 0, encode_published({**many}, b"", "one", 1, 0))
    assert turns.take(0.0, one=[large, *texts(5_000)]) == ([1], [])


def test_payloads_are_no_texts():
    turns = Turns()
    encoded = encode_published({"x": 1}, bytes(100_000), "one", 1, 0)
    large = Published({"x": 1}, bytes(100_000), "one", 1, 0, encoded)
    assert turns.take(1.0, one=[large] * 10) == ([10], [])


def test_whoever_publishes_long_texts_rests_as_long_as_they_took():
    turns = Turns()
    assert turns.take(0.03, one=texts(50_000), other=texts(10)) == ([1, 1], ["one"])
    assert list(turns.texts.resting) == ["one"]
    [(delay_s, has_rested, client)] = turns.timers
    assert 0.029 < delay_s < 0.031
    has_rested(client)
    assert turns.went_on == ["one"]
    assert not turns.texts.resting


def test_nobody_rests_after_a_short_turn_or_is_called_back_after_leaving():
    turns = Turns()
    assert turns.take(0.001, one=texts(50_000)) == ([1], [])
    assert turns.take(0.03, one=texts(50_000)) == ([1], ["one"])
    turns.texts.leave("one")  # type: ignore[arg-type]  # as far as it matters here
    [(_, has_rested, client)] = turns.timers
    has_rested(client)
    assert turns.went_on == []
