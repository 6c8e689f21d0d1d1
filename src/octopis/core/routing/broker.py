"""A broker: it is told what happened, and says what to do. It owns no queue, socket or clock.

What the driver owes a broker:
- it carries out the effects of one call before the next call, in their order;
- a link delivers what was enqueued on it once and in order, as long as it is up;
- `messages_left` for every message that leaves an output queue to go over its link, and
  `messages_dropped` for every one that a full queue has lost;
- `link_down` when a link breaks: what is on its queue or under way is then thrown away by the
  driver; `link_up` when it is back, at both ends, before anything arrives over it;
- `window_elapsed` every `window_ms` milliseconds.
"""

from collections.abc import Sequence
from itertools import groupby

from octopis.core.filters import Filter, parse_filter
from octopis.core.matching import BitsetIndex
from octopis.core.model import BrokerId, Notification
from octopis.core.routing.algorithms import Algorithm, build
from octopis.core.routing.link_status import LinkStatusTable
from octopis.core.routing.messages import Answer, Effect, Message, NotificationMessage, Subscription
from octopis.core.routing.outbox import Counters, LocalClients, Outbox
from octopis.core.routing.table import IndexFactory, RoutingTable
from octopis.core.topology import SCOT
from octopis.errors import InvalidFilter, InvalidSubscription

CONGESTION_THRESHOLD = 10.0
WINDOW_MS = 50


class Broker:
    """One broker of a SCOT, under one routing algorithm."""

    def __init__(  # noqa: PLR0913 - named options of one overlay
        self,
        broker: BrokerId,
        scot: SCOT,
        algorithm: Algorithm,
        *,
        congestion_threshold: float = CONGESTION_THRESHOLD,
        links_up: bool = True,
        index: IndexFactory = BitsetIndex,
    ) -> None:
        """Make a broker with an empty table.

        `links_up`: the overlay starts as a whole, with all tables empty, so no link has to be
        brought up to date. Otherwise every link is down until `link_up`.
        """
        self.id = broker
        self.algorithm = algorithm
        neighbours = scot.neighbours(broker)
        self.link_status = LinkStatusTable(neighbours, congestion_threshold)
        self._outbox = Outbox(neighbours if links_up else (), self.link_status)
        self._clients = LocalClients(self._outbox)
        self._table, self._spreading, self._routing = build(
            algorithm, broker, scot, self.link_status, self._outbox, self._clients, index
        )

    @property
    def table(self) -> RoutingTable:
        """The routing table."""
        return self._table

    @property
    def counters(self) -> Counters:
        """What the broker has done so far."""
        return self._outbox.counters

    def client_subscribes(
        self,
        client: str,
        request: int,
        subscription: str,
        filter_: Filter | str,
        epoch: int | None = None,
    ) -> list[Effect]:
        """Subscribe a client; asking again for the same under one id changes nothing.

        The same subscription at another broker of the overlay is the client's move: the
        subscription follows it here. Only the client knows the order of its moves: where it may
        move again before all brokers have heard of the last move, or to a broker that was
        restarted, it must number them by a rising `epoch`. Without one, the broker takes the
        number after the last that it has heard of.
        """
        try:
            self._subscribe(client, subscription, filter_, epoch)
        except (InvalidFilter, InvalidSubscription) as error:
            return self._answered(client, request, error)
        return self._answered(client, request)

    def client_unsubscribes(self, client: str, request: int, subscription: str) -> list[Effect]:
        """End a client's subscription."""
        if self._clients.owner(subscription) != client:
            reason = f"there is no subscription {subscription!r} to end"
            return self._answered(client, request, InvalidSubscription(reason, subscription))
        self._end(subscription)
        return self._answered(client, request)

    def client_publishes(
        self, client: str, request: int, notifications: Sequence[Notification]
    ) -> list[Effect]:
        """Route notifications of a client, which have been checked."""
        self._routing.route(
            [NotificationMessage(notification) for notification in notifications], None
        )
        return self._answered(client, request)

    def client_leaves(self, client: str) -> list[Effect]:
        """End all subscriptions of a client."""
        for subscription in self._clients.subscriptions(client):
            self._end(subscription)
        return self._outbox.take()

    def messages_arrived(self, link: BrokerId, messages: Sequence[Message]) -> list[Effect]:
        """Take in messages of a neighbour; notifications that stand together are matched so."""
        for is_routed, run in groupby(
            messages, lambda message: isinstance(message, NotificationMessage)
        ):
            if is_routed:
                self._routing.route(list(run), link)  # type: ignore[arg-type]  # as grouped
            else:
                for message in run:
                    self._spreading.receive(link, message)
        return self._outbox.take()

    def messages_left(self, link: BrokerId, count: int = 1) -> list[Effect]:
        """Count messages that left the output queue of a link."""
        self.link_status.left(link, count)
        return []

    def messages_dropped(self, link: BrokerId, count: int = 1) -> list[Effect]:
        """Count messages that were on the output queue of a link and were dropped there."""
        self.link_status.dropped(link, count)
        return []

    def window_elapsed(self) -> list[Effect]:
        """Close the window over which queues are watched."""
        self.link_status.window_elapsed()
        return []

    def link_up(self, link: BrokerId) -> list[Effect]:
        """Bring a neighbour up to date after their link has come up."""
        if link not in self._outbox.up:
            self._outbox.up.add(link)
            self._spreading.link_up(link)
        return self._outbox.take()

    def link_down(self, link: BrokerId) -> list[Effect]:
        """Stop using a link; its queue is gone."""
        self._outbox.up.discard(link)
        self.link_status.reset(link)
        return []

    def _subscribe(
        self, client: str, identity: str, filter_: Filter | str, epoch: int | None
    ) -> None:
        if isinstance(filter_, str):
            filter_ = parse_filter(filter_)
        known = self._table.get(identity)
        if known is not None and known.subscription.filter != filter_:
            reason = f"the subscription {identity!r} asks for something else already"
            raise InvalidSubscription(reason, identity)
        owner = self._clients.owner(identity)
        if owner is not None and owner != client:
            raise InvalidSubscription(f"the subscription {identity!r} is another's", identity)
        newest = -1 if known is None else known.subscription.epoch
        if epoch is None:
            epoch = newest + (owner is None)
        if owner is None and known is not None and epoch <= newest:
            reason = f"the subscription {identity!r} has moved on to {known.host}"
            raise InvalidSubscription(reason, identity)
        if epoch > newest:
            if owner is None:
                self._clients.hold(client, identity)
            self._spreading.subscribe(Subscription(identity, filter_, epoch))

    def _end(self, subscription: str) -> None:
        self._clients.release(subscription)
        self._spreading.unsubscribe(subscription)

    def _answered(
        self, client: str, request: int, error: InvalidFilter | InvalidSubscription | None = None
    ) -> list[Effect]:
        self._outbox.answer(Answer(client, request, error))
        return self._outbox.take()
