"""Overloads of links as events: what flickers is one overload, and not a hundred events.

A link with too much to do is overloaded, is left alone for a moment, and is overloaded again, as
long as the load lasts. So relief is told only after a while without overload, with how often the
link was overloaded until then.
"""

from collections.abc import Iterator
from typing import Any, Literal

RELIEF_MS = 3_000
"""A link that was not overloaded for so long is relieved."""

Found = tuple[Literal["overload", "relief"], str]


class _Overload:
    """An overload that was told, and whose relief was not."""

    def __init__(self, at_ms: int) -> None:
        self.seen_ms = at_ms
        """When the link was last seen overloaded."""

        self.count = 1
        self.goes_on = True


class Overloads:
    """The overloads of all links, by broker and neighbour."""

    def __init__(self) -> None:
        self._open: dict[str, dict[str, _Overload]] = {}

    def look(
        self, name: str, before: dict[str, Any] | None, now: dict[str, Any] | None, at_ms: int
    ) -> Iterator[Found]:
        """Yield what is to be told of a broker's links."""
        if now is None or (before is not None and now["uptime_s"] < before["uptime_s"]):
            self._open.pop(name, None)  # its queues went with it, and that is told already
        if now is None:
            return
        known = self._open.setdefault(name, {})
        for other in known.keys() - now["links"].keys():
            del known[other]
        for other, link in now["links"].items():
            yield from _on_link(f"the link from {name} to {other}", known, other, link, at_ms)


def _on_link(
    link_name: str, known: dict[str, _Overload], other: str, link: dict[str, Any], at_ms: int
) -> Iterator[Found]:
    overload = known.get(other)
    if link["overloaded"]:
        if overload is None:
            known[other] = _Overload(at_ms)
            yield "overload", f"{link_name} is overloaded"
            return
        overload.count += not overload.goes_on
        overload.goes_on, overload.seen_ms = True, at_ms
    elif overload is not None:
        overload.goes_on = False
        if at_ms - overload.seen_ms >= RELIEF_MS:
            del known[other]
            often = f"; it was {overload.count:,} times" if overload.count > 1 else ""
            yield "relief", f"{link_name} is no longer overloaded{often}"
