"""What the subscriptions of a client, or of an owner, take of a broker, and how much that may be.

Where clients log in a user may have many of them: so all its live subscriptions together have
bounds, too, some times those of a client.
"""

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
    """What the subscriptions of one client take, by their ids; `times` a client's may be there."""

    def __init__(self, limits: Limits, who: str = "a client", times: int = 1) -> None:
        self._subscriptions_max = times * limits.subscriptions_per_client
        self._terms_max = times * limits.terms_per_client
        self._matching_ms_max = times * limits.matching_ms_per_client
        self._who = who
        self._shares: dict[str, Share] = {}
        self._terms = self._cost_us = 0

    def __len__(self) -> int:
        return len(self._shares)

    def share_of(self, subscription: str, filter_: Filter) -> Share:
        """Return what a filter takes. Raises InvalidSubscription past a client's share."""
        share = weigh(filter_)
        if subscription in self._shares:
            return share
        if len(self._shares) >= self._subscriptions_max:
            most = f"{self._subscriptions_max:,} subscriptions"
        elif self._terms + share.terms > self._terms_max:
            most = f"{self._terms_max:,} terms in all its filters"
        elif self._cost_us + share.cost_us > 1000 * self._matching_ms_max:
            most = f"{self._matching_ms_max:g} ms of LIKE patterns on longest texts"
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


class SharesOf:
    """What the subscriptions of each of many take, as long as they have any."""

    def __init__(self, limits: Limits, who: str, times: int = 1) -> None:
        self._about = limits, who, times
        self._shares: dict[str, Shares] = {}

    def __len__(self) -> int:
        return len(self._shares)

    def check(self, owner: str, subscription: str, filter_: Filter) -> None:
        """Raise InvalidSubscription where one more would be more than an owner may have."""
        self._of(owner).share_of(subscription, filter_)

    def note(self, owner: str, subscription: str, share: Share) -> None:
        """Note what a subscription takes from now on."""
        self._shares[owner] = self._of(owner)
        self._shares[owner].note(subscription, share)

    def forget(self, owner: str, subscription: str) -> None:
        """Forget a subscription, if there is one."""
        shares = self._of(owner)
        shares.forget(subscription)
        if not shares:
            self._shares.pop(owner, None)

    def _of(self, owner: str) -> Shares:
        return self._shares.get(owner) or Shares(*self._about)


class ClientShares(Shares):
    """What the subscriptions of one client take; of a user's, they are among those of all `users`.

    A subscription may be at two clients of a user for a moment, as the first is told later.
    """

    def __init__(self, limits: Limits, client: str, owner: str, users: SharesOf | None) -> None:
        super().__init__(limits)
        self._client, self._owner, self._users = client, owner, users

    def share_of(self, subscription: str, filter_: Filter) -> Share:
        """Return what a filter takes. Raises InvalidSubscription past a share."""
        if self._users is not None:
            self._users.check(self._owner, f"{self._client} {subscription}", filter_)
        return super().share_of(subscription, filter_)

    def note(self, subscription: str, share: Share) -> None:
        """Note what a subscription takes."""
        super().note(subscription, share)
        if self._users is not None:
            self._users.note(self._owner, f"{self._client} {subscription}", share)

    def forget(self, subscription: str) -> None:
        """Forget a subscription, if there is one."""
        super().forget(subscription)
        if self._users is not None:
            self._users.forget(self._owner, f"{self._client} {subscription}")

    def end(self) -> None:
        """Forget all: the client is gone."""
        for each in list(self._shares):
            self.forget(each)
