"""The summary of a run: what was run, how it ended, and exact counts, as one JSON file.

Counts are exact at every level; the level only says which tables are written beside them.
"""

from enum import Enum
from pathlib import Path
from typing import Literal

import msgspec

from octopis.errors import InvalidConfiguration
from octopis.files import write_json

State = Literal["complete", "partial", "violated"]

FILE = "run.json"
FORMAT = 3


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


class QueueBound(msgspec.Struct, frozen=True, kw_only=True):
    """An output queue that reached its bound, and what the policy did."""

    source: str
    target: str
    first_ns: int
    policy: str
    dropped: int


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How a run went. Nothing in it depends on the machine or the time of day."""

    format: int = FORMAT
    version: str
    source: Literal["simulator", "live"]
    broker: str | msgspec.UnsetType = msgspec.UNSET
    """Whose trace it is; only live brokers say so, each of which writes its own."""
    scenario: str
    scenario_digest: str
    seed: int
    algorithm: str
    level: str
    state: State
    reason: str = ""
    """Why a run is partial, or which law was violated."""
    begin_ns: int
    """When the first notification was due at the earliest: all subscriptions have settled."""
    end_ns: int
    brokers: int
    subscriptions: int
    notifications: int
    deliveries: int
    deliveries_lost: int
    subscription_ims: int
    subscription_duplicates: int
    notification_ims: int
    sync_ims: int = 0
    dead_brokers: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Brokers that were dead all the time, if any: their clients are not counted."""
    sent_again: int | msgspec.UnsetType = msgspec.UNSET
    """Where the simulated brokers have channels: notifications that hosts have sent again."""
    duplicates: int | msgspec.UnsetType = msgspec.UNSET
    """And copies that their targets had already, and have dropped."""
    given_up: int | msgspec.UnsetType = msgspec.UNSET
    """And what was never sent, or sent no more, to targets that were silent for too long."""
    dnr_cases: dict[str, int]
    """How often each case of dynamic routing occurred; under target routing, copies by reason."""
    queue_length_max: int
    input_wait_max_ns: int
    """The longest time that a message waited for a broker to take it in."""
    queue_bounds: list[QueueBound]


def write_summary(folder: Path, summary: RunSummary) -> None:
    """Write the summary into the trace's folder, as the last of its files."""
    write_json(folder / FILE, summary)


def read_summary(folder: Path) -> RunSummary:
    """Return the summary of the trace in `folder`, or raise InvalidConfiguration."""
    path = folder / FILE
    try:
        summary = msgspec.json.decode(path.read_bytes(), type=RunSummary)
    except FileNotFoundError as failure:
        raise InvalidConfiguration(f"{folder} holds no finished trace: no {FILE}") from failure
    except (OSError, msgspec.DecodeError) as failure:
        raise InvalidConfiguration(f"{path} is not a run's summary: {failure}") from failure
    if summary.format != FORMAT:
        raise InvalidConfiguration(
            f"{path} is of format {summary.format}; this version of OctopiS reads format {FORMAT}"
        )
    return summary
