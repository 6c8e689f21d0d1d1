"""What has happened between two answers of a broker: events for people, the last 100 kept."""

from collections import deque
from collections.abc import Iterator
from typing import Any

from octopis.gateway.live.asking import Watched
from octopis.gateway.live.overloads import RELIEF_MS, Overloads
from octopis.gateway.live.pulse import EventKind, LiveEvent, slow_clients

EVENTS_KEPT = 100


class Events:
    """The last events, numbered."""

    def __init__(self) -> None:
        self.last = 0
        """How many there were so far."""

        self._kept: deque[tuple[int, LiveEvent]] = deque(maxlen=EVENTS_KEPT)

    def add(self, at_ms: int, kind: EventKind, text: str) -> None:
        """Note that something has happened."""
        self.last += 1
        self._kept.append((self.last, LiveEvent(at_ms, kind, text)))

    def since(self, number: int) -> list[LiveEvent]:
        """Return those after a number that are kept."""
        return [event for at, event in self._kept if at > number]


class Changes:
    """Sees what has changed at brokers since they were looked at before."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._last: dict[str, dict[str, Any] | None] = {}
        self._overloads = Overloads()
        self._slow: dict[str, dict[str, int]] = {}
        """When clients were last seen slow, by broker."""

    def look(self, each: Watched, at_ms: int) -> None:
        """Note what has happened at a broker that was just asked."""
        before, now = self._last.get(each.name), each.status
        if each.name in self._last:
            for kind, text in _happened(each.name, before, now):
                self._events.add(at_ms, kind, text)
        elif now is None:
            self._events.add(at_ms, "broker_down", f"{each.name} does not answer")
        for kind, text in self._overloads.look(each.name, before, now, at_ms):
            self._events.add(at_ms, kind, text)
        for text in self._became_slow(each.name, before, now, at_ms):
            self._events.add(at_ms, "slow_client", text)
        self._last[each.name] = now

    def _became_slow(
        self, name: str, before: dict[str, Any] | None, now: dict[str, Any] | None, at_ms: int
    ) -> Iterator[str]:
        """Yield who is slow and was not: what flickers is told once, as overloads are."""
        seen = self._slow.setdefault(name, {})
        for client in [each for each, last_ms in seen.items() if at_ms - last_ms >= RELIEF_MS]:
            del seen[client]
        for client, about in ({} if now is None else slow_clients(before, now)).items():
            if client not in seen:
                yield f"{client} at {name} is slow: {about['queue_length']:,} wait"
            seen[client] = at_ms


def _happened(
    name: str, before: dict[str, Any] | None, now: dict[str, Any] | None
) -> Iterator[tuple[EventKind, str]]:
    if now is None:
        if before is not None:
            yield "broker_down", f"{name} does not answer"
        return
    if before is None:
        yield "broker_up", f"{name} answers again"
        return
    if now["uptime_s"] < before["uptime_s"]:
        yield "restart", f"{name} has started anew"
        return
    for other, link in now["links"].items():
        yield from _on_link(name, other, before["links"].get(other, link), link)
    for what, count in now["drops"].items():
        more = count - before["drops"].get(what, 0)
        if more > 0:
            yield "drop", f"{name} dropped {more:,} ({what.replace('_', ' ')})"


def _on_link(
    name: str, other: str, before: dict[str, Any], now: dict[str, Any]
) -> Iterator[tuple[EventKind, str]]:
    if now["up"] is not before["up"]:
        kind: EventKind = "link_up" if now["up"] else "link_down"
        yield kind, f"the link from {name} to {other} is {'up' if now['up'] else 'down'}"
