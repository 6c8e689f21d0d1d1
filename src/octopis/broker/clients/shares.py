"""What the subscriptions of a client take of a broker, and how much that may be in all."""

from typing import NamedTuple

from octopis.broker.settings import Limits
from octopis.core.filters import Filter
from octopis.core.filters.tree import cost_us, terms_of
from octopis.errors import InvalidSubscription


class Share(NamedTuple):
    """What a subscription takes of what its client may have."""

    terms: int
    cost_us: int


def weigh(filter_: Filter) -> Share:
    """Return what a filter takes."""
    return Share(terms_of(filter_.tree), cost_us(filter_.tree))


class Shares:
    """What the subscriptions of one client take, by their ids."""

    def __init__(self, limits: Limits, who: str = "a client") -> None:
        self._limits = limits
        self._who = who
        self._shares: dict[str, Share] = {}
        self._terms = self._cost_us = 0

    def __len__(self) -> int:
        return len(self._shares)

    def share_of(self, subscription: str, filter_: Filter) -> Share:
        """Return what a filter takes. Raises InvalidSubscription past a client's share."""
        limits = self._limits
        share = weigh(filter_)
        if subscription in self._shares:
            return share
        if len(self._shares) >= limits.subscriptions_per_client:
            most = f"{limits.subscriptions_per_client:,} subscriptions"
        elif self._terms + share.terms > limits.terms_per_client:
            most = f"{limits.terms_per_client:,} terms in all its filters"
        elif self._cost_us + share.cost_us > 1000 * limits.matching_ms_per_client:
            most = f"{limits.matching_ms_per_client:g} ms of LIKE patterns on longest texts"
        else:
            return share
        raise InvalidSubscription(f"{self._who} has at most {most} here", subscription)

    def note(self, subscription: str, share: Share) -> None:
        """Note what a subscription takes."""
        self.forget(subscription)
        self._shares[subscription] = share
        self._terms += share.terms
        self._cost_us += share.cost_us

    def forget(self, subscription: str) -> None:
        """Forget a subscription, if there is one."""
        share = self._shares.pop(subscription, Share(0, 0))
        self._terms -= share.terms
        self._cost_us -= share.cost_us
