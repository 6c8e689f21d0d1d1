"""What travels through the simulated overlay: copies of a notification or of a subscription."""

from typing import Any

import msgspec

from octopis.routing import Reason
from octopis.simulator.network import Station


class Spread(msgspec.Struct, gc=False):
    """A subscription that spreads over the overlay, until its last copy has arrived."""

    number: int
    host: Station
    subscribed_ns: int
    settled_ns: int = 0
    outstanding: int = 1
    """Copies that are queued, under way or waiting to be taken in."""
    copies: int = 0
    duplicates: int = 0
    stored: int = 0
    """Brokers that have stored it, by their bits."""
    hops_sum: int = 0
    hops_max: int = 0


class Copy(msgspec.Struct, frozen=True, gc=False):
    """A copy for one link, or for several where they are the same.

    `mask` is what it carries: pending clusters (DNR) or brokers by their bits (BID).
    """

    subject: Any
    """The Flight or the Spread that it is a copy of; None where brokers compare tables."""
    hops: int
    send_ns: int
    reason: Reason
    mask: int = 0
    message: Any = None
    """The routing core's own message, where real brokers run."""
