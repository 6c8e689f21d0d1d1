"""How much of a run is written down. Counters in the summary are exact at every level."""

from enum import Enum


class Level(Enum):
    """`summary`: counters; `deliveries`: who got what and when; `full`: every message, too."""

    SUMMARY = "summary"
    DELIVERIES = "deliveries"
    FULL = "full"

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are written at this level."""
        return _TABLES[self]


_DELIVERIES = ("subscriptions", "publications", "deliveries", "links")
_TABLES = {
    Level.SUMMARY: ("links",),
    Level.DELIVERIES: _DELIVERIES,
    Level.FULL: (*_DELIVERIES, "stored", "ims", "queues"),
}
