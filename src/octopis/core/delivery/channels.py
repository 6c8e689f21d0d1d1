"""Both ends of all channels of one broker, as its driver and the routing core see them.

What the driver owes it:
- it tells `arrived` of every post for this broker, and passes on those for others by `way_of`;
- it calls `look` after `look_again_ns` while `is_quiet` is not so, then sends what `take_posts` and
  `take_again` return; what was accepted after a hole (`take_in_order`) is delivered like any other;
- it takes no publications for targets that are `held`;
- it tells clients what they miss (`take_missed`).
"""

from collections.abc import Sequence

from octopis.core.delivery.options import DeliveryOptions
from octopis.core.delivery.posts import Ack, Post
from octopis.core.delivery.receiver import Missed, Receiver, origin_of
from octopis.core.delivery.sender import Sender
from octopis.core.model import BrokerId
from octopis.core.routing.algorithms.target_routing import Accepted
from octopis.core.routing.messages import NotificationMessage
from octopis.core.topology import SCOT

LOOK_NS = 10_000_000
"""How often what is under way is looked at: acknowledgements wait for so long, too."""

RESTING_NS = 200_000_000
"""The same where nothing is under way, and hosts that were given up are not back."""


class Channels:
    """The channels from and to one broker, in one of its lives."""

    def __init__(self, broker: BrokerId, scot: SCOT, life: int, options: DeliveryOptions) -> None:
        self._places = {each: place for place, each in enumerate(scot.brokers)}
        self.place = place = self._places[broker]
        self._lives: dict[int, int] = {}
        brokers = len(scot.brokers)
        self._others = (1 << brokers) - 1 & ~(1 << place)
        self.sender = self._make_sender(brokers, life, options)
        self.sender.life_of = lambda place: self._lives.get(place, 0)
        self.receiver = self._make_receiver(life, options)
        self._released: list[NotificationMessage] = []
        self._looked_ns = 0
        # After so long without a look, nobody else is to blame for what was not heard meanwhile.
        self._still_ns = max(options.give_up_ns // 4, 10 * LOOK_NS)

    def _make_sender(self, brokers: int, life: int, options: DeliveryOptions) -> Sender:
        return Sender(self.place, brokers, life, options, origin_of(self.place, life))

    def _make_receiver(self, life: int, options: DeliveryOptions) -> Receiver:
        return Receiver(self.place, life, options.window, options.give_up_ns)

    # What the routing core asks (routing.target_routing.HostChannels)

    def accept(
        self, batch: Sequence[NotificationMessage], matches: list[list[str]], now_ns: int
    ) -> Accepted:
        """Number what a local publisher sends to others."""
        others = self._others
        onward = [message for message in batch if message.targets & others]
        return Accepted(batch, matches, self.number(onward, now_ns))

    def keep(
        self,
        arrived: Sequence[NotificationMessage],  # noqa: ARG002 - only what has a disk keeps it
        matches: list[list[str]],
    ) -> list[list[str]]:
        """Keep nothing: it is all delivered now."""
        return matches

    def number(
        self, batch: Sequence[NotificationMessage], now_ns: int
    ) -> Sequence[NotificationMessage]:
        """Return what a local publisher sends with its numbers."""
        return self.sender.number(batch, now_ns)

    def in_order(
        self, arrived: Sequence[NotificationMessage], now_ns: int
    ) -> Sequence[NotificationMessage]:
        """Return what may be delivered now, in order, of what has come and what has waited."""
        found = self.receiver.in_order(arrived, now_ns)
        return [*self.take_in_order(), *found] if self._released else found

    def host_lives(self, host: BrokerId, life: int, now_ns: int) -> None:
        """Know which life of a host has made the subscriptions that are known of it."""
        place = self._places[host]
        self._lives[place] = life
        self.sender.renewed(place, now_ns)

    # What the driver does

    @property
    def held(self) -> int:
        """Targets, as bits, for which publishers have to wait."""
        return self.sender.held

    @property
    def lacking(self) -> int:
        """Targets, as bits, for which batches have to wait that were committed on disk."""
        return self.sender.held

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing to look at."""
        return self.receiver.is_quiet and self.sender.is_quiet

    @property
    def look_again_ns(self) -> int:
        """After how long to look again: hosts that were given up are asked now and then."""
        is_resting = self.receiver.is_quiet and self.sender.is_resting
        return RESTING_NS if is_resting else LOOK_NS

    def arrived(self, post: Post, now_ns: int) -> None:
        """Take in a post for this broker."""
        if isinstance(post, Ack):
            self.sender.acknowledged(post, now_ns)
        else:
            self._released += self.receiver.opened(post, now_ns)

    def look(self, now_ns: int) -> None:
        """See to what is overdue."""
        if now_ns - self._looked_ns >= self._still_ns:
            self.sender.stood_still(now_ns)
            self.receiver.stood_still(now_ns)
        self._looked_ns = now_ns
        self.sender.look(now_ns)
        self._released += self.receiver.look(now_ns)

    def take_posts(self, now_ns: int) -> list[Post]:
        """Return what to tell other hosts."""
        return [*self.sender.take_posts(), *self.receiver.take_posts(now_ns)]

    def take_again(self) -> list[NotificationMessage]:
        """Return what to send again."""
        return self.sender.take_again()

    def take_in_order(self) -> list[NotificationMessage]:
        """Return what has waited for a hole that will not be filled any more."""
        released, self._released = self._released, []
        return released

    def take_missed(self) -> list[Missed]:
        """Return of whom clients miss notifications."""
        return self.receiver.take_missed()
