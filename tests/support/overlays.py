"""Small overlays and notifications that many tests use."""

from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Effect, Enqueue, Message
from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor

CHAIN = SCOT(AcyclicFactor.from_edges([("a", "b"), ("b", "c")]), ConnectivityFactor.complete(3))
"""Regions a - b - c, clusters 0, 1 and 2."""

PAIR = SCOT(AcyclicFactor.from_edges([("a", "b")]), ConnectivityFactor.complete(1))
"""One link."""

A0, A1, A2, B0, B1, B2, C0, C1, C2 = CHAIN.brokers
ONE = Notification({"x": 1}, b"one")
TWO = Notification({"x": 2}, b"two")


def enqueued(effects: list[Effect]) -> dict[BrokerId, list[Message]]:
    """Return the messages that go onto each link."""
    return {effect.link: effect.messages for effect in effects if isinstance(effect, Enqueue)}
