"""How the scene is going: what is shown of it while it is played."""

from dataclasses import dataclass
from enum import Enum


class VictimState(Enum):
    """What has become of the broker that is killed."""

    RUNS = "runs"
    DEAD = "dead"
    BACK = "back"
    """It was started anew, and answers."""

    WHOLE = "whole"
    """It also knows every subscription again."""


@dataclass(frozen=True)
class FaultMoment:
    """How the scene was at one moment."""

    elapsed_s: float
    """Since publishing began."""

    published: int
    delivered: int
    rates: list[int]
    """Deliveries in each tenth of a second so far."""

    ims_per_s: dict[str, float]
    """What each broker that was asked sends, by its name."""

    victim: VictimState
    since_kill_s: float | None
    known: int
    """How many subscriptions the victim knows, since it is back."""

    longest_gap_ms: float | None
    """The longest gap between two deliveries behind the victim since the kill, so far."""
