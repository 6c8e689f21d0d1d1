"""What a broker has decided to do and its driver has still to carry out; and its own clients."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from octopis.core.model import BrokerId
from octopis.core.routing.link_status import LinkStatusTable
from octopis.core.routing.messages import (
    Deliver,
    Effect,
    Enqueue,
    Lost,
    Message,
    NotificationMessage,
    Reason,
)

# Members of an Enum are slow to look up.
_SUBSCRIPTION, _SYNC = Reason.SUBSCRIPTION, Reason.SYNC


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
    rerouted: int = 0
    cases: dict[str, int] = field(default_factory=dict)

    @property
    def unsent(self) -> int:
        """How many copies could not be sent, as the way to where they were for is not there."""
        return self.lost_on_down_links + self.lost_without_route

    def count_case(self, name: str, count: int = 1) -> None:
        """Count a case of dynamic routing, or copies of target routing by their reason."""
        self.cases[name] = self.cases.get(name, 0) + count


class Outbox:
    """Collects effects; every message that goes out passes here and is counted once."""

    def __init__(self, links: LinkStatusTable) -> None:
        self.counters = Counters()
        self._links = links
        self._queued: dict[BrokerId, Enqueue] = {}
        self._others: list[Effect] = []
        self.tell_lost: Callable[[BrokerId, Message, Reason], None] | None = None
        """Is told of what is lost on links that are down, for whoever explains where it went."""

    def is_up(self, link: BrokerId) -> bool:
        """Tell whether a link is up."""
        return self._links[link].is_up

    def send(self, link: BrokerId, message: Message, reason: Reason, now_ns: int) -> None:
        """Put a message on a link's queue. On a link that is down it is lost, and counted."""
        status = self._links[link]
        if not status.is_up:
            self._lose(link, [message], [reason])
            return
        status.entered(now_ns)
        if reason is _SUBSCRIPTION:
            self.counters.subscription_ims += 1
        elif reason is _SYNC:
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
        self, link: BrokerId, copies: Sequence[Message], reasons: Sequence[Reason], now_ns: int
    ) -> None:
        """Put copies of notifications on a link's queue, each for its reason."""
        status, count = self._links[link], len(copies)
        if not status.is_up:
            self._lose(link, copies, reasons)
            return
        status.entered(now_ns, count)
        self.enqueue(link, copies, reasons)

    def enqueue(self, link: BrokerId, copies: Sequence[Message], reasons: Sequence[Reason]) -> None:
        """Put copies on the queue of a link that is up; its status has counted them already."""
        self.counters.notification_ims += len(copies)
        queued = self._queued.get(link)
        if queued is None:
            queued = self._queued[link] = Enqueue(link, [], [])
        queued.messages.extend(copies)
        queued.reasons.extend(reasons)

    def add(self, effect: Effect) -> None:
        """Have the driver do something that is not about a link."""
        self._others.append(effect)

    def deliver(self, found: Sequence[Deliver], deliveries: int) -> None:
        """Give notifications to local clients, for so many subscriptions."""
        self.counters.deliveries += deliveries
        self._others += found

    def take(self) -> list[Effect]:
        """Return everything collected so far, and start anew."""
        effects = self._others
        effects += self._queued.values()
        self._others, self._queued = [], {}
        return effects

    def _lose(self, link: BrokerId, messages: Sequence[Message], reasons: Sequence[Reason]) -> None:
        self.counters.lost_on_down_links += len(messages)
        if self.tell_lost is not None:
            for message, reason in zip(messages, reasons, strict=True):
                self.tell_lost(link, message, reason)


class LocalClients:
    """Which client holds which subscription, and delivery to them."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._owners: dict[str, str] = {}
        self._subscriptions: dict[str, dict[str, None]] = {}

    def owner(self, subscription: str) -> str | None:
        """Return the client that holds a subscription here, if one does."""
        return self._owners.get(subscription)

    def subscriptions(self, client: str) -> list[str]:
        """Return a client's subscriptions, oldest first."""
        return list(self._subscriptions.get(client, {}))

    def hold(self, client: str, subscription: str) -> None:
        """Note that a client holds a subscription."""
        self._owners[subscription] = client
        self._subscriptions.setdefault(client, {})[subscription] = None

    def held(self, matches: list[list[str]]) -> list[list[str]]:
        """Return of these subscriptions those that are held still."""
        owners = self._owners
        return [[each for each in found if each in owners] if found else found for found in matches]

    def release(self, subscription: str) -> str:
        """Forget a subscription, and return whose it was."""
        client = self._owners.pop(subscription)
        held = self._subscriptions[client]
        del held[subscription]
        if not held:
            del self._subscriptions[client]
        return client

    def lose(self, subscription: str) -> None:
        """Forget a subscription that has moved to another broker, and have its client told."""
        client = self.release(subscription)
        self._outbox.add(Lost(client, subscription))

    def deliver(self, batch: Sequence[NotificationMessage], matches: list[list[str]]) -> None:
        """Deliver each notification once to every client with a matching subscription."""
        owners, owner_of = self._owners, self._owners.__getitem__
        found: list[Deliver] = []
        for message, subscriptions in zip(batch, matches, strict=True):
            if not subscriptions:
                continue
            first = owners[subscriptions[0]]
            # Quick where one client holds many; asked only where the first and the last are its.
            if owners[subscriptions[-1]] == first and set(map(owner_of, subscriptions)) == {first}:
                found.append(Deliver(first, message.notification, subscriptions))
                continue
            by_client: dict[str, list[str]] = {}
            for subscription in subscriptions:
                client = owners[subscription]
                if client in by_client:
                    by_client[client].append(subscription)
                else:
                    by_client[client] = [subscription]
            for client, held in by_client.items():
                found.append(Deliver(client, message.notification, held))
        self._outbox.deliver(found, sum(map(len, matches)))
