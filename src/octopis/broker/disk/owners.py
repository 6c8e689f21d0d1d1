"""What durable subscriptions take of a broker, by their owners, and how much that may be in all."""

from collections.abc import Iterable

from octopis.broker.clients.shares import SharesOf, weigh
from octopis.broker.settings import Limits
from octopis.core.delivery.lasting.durables import Durable
from octopis.core.filters import Filter, parse_filter

_WHO = "an owner of durable subscriptions"


class Owners:
    """The owners of durable subscriptions; those that are shared have one, without a name.

    They are matched whether somebody reads them or not: so an owner's have the bounds that a
    client's live ones have, beside these, over however many connections it makes them.
    """

    def __init__(self, limits: Limits, durables: Iterable[Durable]) -> None:
        self._shares = SharesOf(limits, _WHO)
        for each in durables:
            self.note(each, parse_filter(each.state.filter))

    def check(self, owner: str, name: str, filter_: Filter) -> None:
        """Raise InvalidSubscription where one more would be more than an owner may have."""
        self._shares.check(owner, name, filter_)

    def note(self, durable: Durable, filter_: Filter) -> None:
        """Note what one takes from now on."""
        self._shares.note(durable.state.owner, durable.state.name, weigh(filter_))

    def forget(self, durable: Durable) -> None:
        """Forget one that is not here any more."""
        self._shares.forget(durable.state.owner, durable.state.name)
