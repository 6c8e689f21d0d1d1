"""What a broker has decided to do and its driver has still to carry out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from octopis.model import BrokerId, Notification
from octopis.routing.effects import Deliver, Effect, Enqueue
from octopis.routing.link_status import LinkStatusTable
from octopis.routing.messages import Message
from octopis.routing.reasons import Reason


@dataclass(slots=True)
class Counters:
    """What a broker has done since it was made. IMs are inter-broker messages."""

    subscription_ims: int = 0
    notification_ims: int = 0
    sync_ims: int = 0
    duplicates: int = 0
    deliveries: int = 0
    lost_on_down_links: int = 0
    lost_without_route: int = 0
    cases: dict[str, int] = field(default_factory=dict)


class Outbox:
    """Collects effects; every message that goes out passes here and is counted once."""

    def __init__(self, links: Iterable[BrokerId], link_status: LinkStatusTable) -> None:
        self.counters = Counters()
        self.up = set(links)
        self._link_status = link_status
        self._queued: dict[BrokerId, Enqueue] = {}
        self._others: list[Effect] = []

    def send(self, link: BrokerId, message: Message, reason: Reason) -> None:
        """Put a message on a link's queue. On a link that is down it is lost, and counted."""
        if link not in self.up:
            self.counters.lost_on_down_links += 1
            return
        status = self._link_status.statuses[link]
        status.queue_length += 1
        status.entering += 1
        if reason is Reason.SUBSCRIPTION:
            self.counters.subscription_ims += 1
        elif reason is Reason.SYNC:
            self.counters.sync_ims += 1
        else:
            self.counters.notification_ims += 1
        queued = self._queued.get(link)
        if queued is None:
            self._queued[link] = Enqueue(link, [message], [reason])
        else:
            queued.messages.append(message)
            queued.reasons.append(reason)

    def send_all(
        self, link: BrokerId, copies: Sequence[Message], reasons: Sequence[Reason]
    ) -> None:
        """Put copies of notifications on a link's queue, each for its reason."""
        count = len(copies)
        if not count:
            return
        if link not in self.up:
            self.counters.lost_on_down_links += count
            return
        self._link_status.entered(link, count)
        self.counters.notification_ims += count
        queued = self._queued.get(link)
        if queued is None:
            queued = self._queued[link] = Enqueue(link, [], [])
        queued.messages.extend(copies)
        queued.reasons.extend(reasons)

    def deliver(self, client: str, notification: Notification, subscriptions: list[str]) -> None:
        """Give a notification to a local client."""
        self.counters.deliveries += len(subscriptions)
        self._others.append(Deliver(client, notification, subscriptions))

    def answer(self, effect: Effect) -> None:
        """Answer a local client."""
        self._others.append(effect)

    def take(self) -> list[Effect]:
        """Return everything collected so far, and start anew."""
        effects = self._others
        effects += self._queued.values()
        self._others, self._queued = [], {}
        return effects
