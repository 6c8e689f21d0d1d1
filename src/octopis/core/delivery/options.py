"""How far delivery can be relied on, as users set it."""

from enum import Enum
from typing import Annotated

from msgspec import Meta, Struct

_Count = Annotated[int, Meta(ge=1)]


class Level(Enum):
    """What notifications outlive, beyond the queue that they are in (under TNR)."""

    NONE = "none"
    MEMORY = "memory"


class DeliveryOptions(Struct, frozen=True):
    """Channels between hosts: how much may be under way, and for how long."""

    level: Annotated[
        Level, Meta(description="what is accepted outlives: nothing, or all but its two hosts")
    ] = Level.MEMORY
    window: Annotated[
        _Count, Meta(description="notifications that a host may lack before publishers wait")
    ] = 10_000
    window_bytes: Annotated[_Count, Meta(description="the same in bytes")] = 8 * 2**20
    bytes: Annotated[
        _Count, Meta(description="bytes kept for all hosts together before publishers wait")
    ] = 64 * 2**20
    give_up_s: Annotated[
        float, Meta(gt=0, lt=1e6, description="a host that is silent for so long is given up")
    ] = 10.0

    @property
    def give_up_ns(self) -> int:
        """How long a host may be silent."""
        return round(self.give_up_s * 1e9)
