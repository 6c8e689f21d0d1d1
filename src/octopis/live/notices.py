"""Congestion notices: which brokers are congested, as far as this one has heard.

A notice names its broker and carries a number that rises, so that it goes round the overlay once
and old news never replaces newer. While a broker is congested it renews its notice; one that was
not renewed for three times that long is forgotten, as its broker is gone or cannot be reached.
Time comes in as an argument.
"""

from dataclasses import dataclass

from octopis.model import BrokerId
from octopis.wire.control import Notice

_RENEWALS_MISSED_MAX = 3


@dataclass(slots=True)
class _Heard:
    number: int
    congested: bool
    at: float


class Notices:
    """All brokers' notices, the own one among them.

    `first_number` must be above every number that this broker has used before a restart.
    """

    def __init__(self, broker: BrokerId, first_number: int, renewal_s: float) -> None:
        self._broker = broker
        self._number = first_number
        self._renewal_s = renewal_s
        self._heard: dict[BrokerId, _Heard] = {}

    @property
    def congested(self) -> list[BrokerId]:
        """The brokers whose notices hold."""
        return [broker for broker, heard in self._heard.items() if heard.congested]

    @property
    def is_congested(self) -> bool:
        """Whether any notice holds, so that publishers have to wait."""
        return any(heard.congested for heard in self._heard.values())

    def own(self, *, congested: bool, now: float) -> Notice | None:
        """Say whether the own queues are congested; return the notice to send, if there is news."""
        known = self._heard.get(self._broker)
        was_congested = known is not None and known.congested
        renewed = known is not None and now - known.at < self._renewal_s
        if congested == was_congested and (renewed or not congested):
            return None
        self._number += 1
        self._heard[self._broker] = _Heard(self._number, congested, now)
        return Notice(self._broker, self._number, congested)

    def heard(self, notice: Notice, now: float) -> bool:
        """Take a notice in, and say whether it is news that must be passed on."""
        known = self._heard.get(notice.broker)
        if notice.broker == self._broker or (known is not None and known.number >= notice.number):
            return False
        self._heard[notice.broker] = _Heard(notice.number, notice.congested, now)
        return True

    def expire(self, now: float) -> list[BrokerId]:
        """Forget notices that were not renewed, and return whose they were."""
        limit = _RENEWALS_MISSED_MAX * self._renewal_s
        gone = [
            broker
            for broker, heard in self._heard.items()
            if heard.congested and broker != self._broker and now - heard.at > limit
        ]
        for broker in gone:
            self._heard[broker].congested = False
        return gone

    def holding(self) -> list[Notice]:
        """Return the notices that hold, for a neighbour whose link has come up."""
        return [
            Notice(broker, heard.number, congested=True)
            for broker, heard in self._heard.items()
            if heard.congested
        ]
