"""A broker: it is told what happened, and says what to do. It owns no queue, socket or clock.

What the driver owes a broker:
- it says the time of each call in nanoseconds, which never goes back. A driver that keeps no time
  leaves it out: then no window of the link status ever ends;
- it carries out the effects of one call before the next call, in their order;
- a link delivers what was enqueued on it once and in order, as long as it is up;
- `messages_left` for every message that leaves an output queue to go over its link, and
  `messages_dropped` for every one that a full queue has lost;
- `link_down` when a link breaks, with what was still on its queue: that is routed anew where the
  algorithm can, and is lost otherwise, as is what was under way. `link_up` when it is back, at both
  ends, before anything arrives over it;
- `compare` now and then, so that nothing stays missed that was under way on a link that broke.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from octopis.core.filters import Filter
from octopis.core.matching import BitsetIndex
from octopis.core.model import BrokerId, Notification
from octopis.core.routing.algorithms.hosts import Host
from octopis.core.routing.algorithms.strategy import Algorithm, strategy
from octopis.core.routing.algorithms.target_routing import Accepted, HostChannels
from octopis.core.routing.link_status import (
    CONGESTION_THRESHOLD,
    WINDOW_MS,
    LinkStatus,
    LinkStatusTable,
)
from octopis.core.routing.messages import (
    Effect,
    Mark,
    Marked,
    Message,
    NotificationMessage,
    Reason,
    Subscription,
)
from octopis.core.routing.outbox import Counters, LocalClients, Outbox
from octopis.core.routing.table import Entry, IndexFactory, RoutingTable
from octopis.core.topology import SCOT, LinkKind
from octopis.errors import InvalidSubscription

DURABLE = ""
"""The client that holds durable subscriptions: the broker itself. Others have a name."""

EPOCH_JUMP_MAX = 1_000_000
"""A move's number is at most so much above the last: else an id could be locked for ever."""


class Broker:
    """One broker of a SCOT, under one routing algorithm."""

    def __init__(  # noqa: PLR0913 - named options of one overlay
        self,
        broker: BrokerId,
        scot: SCOT,
        algorithm: Algorithm,
        *,
        congestion_threshold: float = CONGESTION_THRESHOLD,
        window_ms: float = WINDOW_MS,
        links_up: bool = True,
        index: IndexFactory = BitsetIndex,
        life: int = 0,
        channels: HostChannels | None = None,
    ) -> None:
        """Make a broker with an empty table.

        `links_up`: the overlay starts as a whole, with all tables empty, so no link has to be
        brought up to date. Otherwise every link is down until `link_up`. `life` differs from start
        to start of the same broker (32 bits). With `channels` (target routing), notifications are
        numbered and come once and in order.
        """
        self.id = broker
        self.algorithm = algorithm
        self.link_status = LinkStatusTable(
            (
                neighbour,
                LinkStatus(
                    neighbour,
                    is_icol=scot.link_kind(broker, neighbour) is LinkKind.ICOL,
                    congestion_threshold=congestion_threshold,
                    window_ns=round(window_ms * 1_000_000),
                    is_up=links_up,
                ),
            )
            for neighbour in scot.neighbours(broker)
        )
        self._outbox = Outbox(self.link_status)
        self._clients = LocalClients(self._outbox)
        parts = self.link_status, self._outbox, self._clients
        made = strategy(algorithm, broker, scot, *parts, index, life, channels)
        self._table, self._subscriptions, self._notifications, self.batch_max, self._repair = made[
            :5
        ]
        self._in_parts, self._lasting = made.in_parts, made.lasting
        self.changes = 0
        """How often own clients have changed their subscriptions."""

        self._marks: dict[BrokerId, int] = {}
        self._unknown_marks: dict[BrokerId, tuple[Mark, BrokerId]] = {}

    @property
    def table(self) -> RoutingTable:
        """The routing table."""
        return self._table

    @property
    def counters(self) -> Counters:
        """What the broker has done so far."""
        return self._outbox.counters

    @property
    def unheard(self) -> list[BrokerId]:
        """Neighbours and hosts of which a broker that has just started must still hear.

        As long as there are any, its table may lack subscriptions.
        """
        return sorted(self._subscriptions.unheard)

    @property
    def reaches_all(self) -> bool:
        """Whether what is published here has a link that is up towards every broker."""
        return self._repair.reaches_all

    def heard_of(self, host: BrokerId) -> tuple[int, int]:
        """Return how far the changes of a host have been heard (target routing)."""
        return self._repair.heard_of(host)

    def speaks(self, message: Message) -> bool:
        """Tell whether brokers say such a message to each other under this algorithm."""
        return isinstance(message, (NotificationMessage, Mark, *self._subscriptions.speaks))

    def batch_size(self, messages: Sequence[Message]) -> int:
        """Return how many of these messages of a neighbour to tell the broker at once.

        `batch_max` is the same for publications: what is planned by the length of queues must
        have a chance to leave them.
        """
        for message in messages:
            if isinstance(message, NotificationMessage) and (message.cbv_p or message.targets):
                return self.batch_max
        return len(messages)

    def client_subscribes(  # noqa: PLR0913 - who asks for what, and when
        self,
        client: str,
        subscription: str,
        filter_: Filter,
        epoch: int | None = None,
        now_ns: int = 0,
        *,
        owner: str = "",
        durable: bool = False,
        anew: bool = False,
    ) -> list[Effect]:
        """Subscribe a client; asking again for the same under one id changes nothing.

        With `anew`, a durable one that is held here asks for something else from now on.

        The same subscription at another broker of the overlay is the client's move: the
        subscription follows it here. Only the client knows the order of its moves: where it may
        move again before all brokers have heard of the last move, or to a broker that was
        restarted, it must number them by a rising `epoch`. Without one, the broker takes the
        number after the last that it has heard of. Only its `owner` moves a subscription. Raises
        InvalidSubscription.
        """
        known = self._table.get(subscription)
        if known is not None and known.subscription.owner != owner:
            reason = f"the subscription {subscription!r} is another's"
            raise InvalidSubscription(reason, subscription)
        if known is not None and known.subscription.filter != filter_ and not anew:
            reason = f"the subscription {subscription!r} asks for something else already"
            raise InvalidSubscription(reason, subscription)
        holder = self._clients.owner(subscription)
        if holder is not None and holder != client:
            reason = f"the subscription {subscription!r} is another's"
            raise InvalidSubscription(reason, subscription)
        newest = -1 if known is None else known.subscription.epoch
        if epoch is None:
            epoch = newest + (holder is None)
        if holder is None and known is not None and epoch <= newest:
            reason = f"the subscription {subscription!r} has moved on to {known.host}"
            raise InvalidSubscription(reason, subscription, newest)
        if epoch > newest + EPOCH_JUMP_MAX:
            reason = f"the move {epoch} of {subscription!r} cannot follow the move {newest}"
            raise InvalidSubscription(reason, subscription)
        if epoch > newest or anew:
            if holder is None:
                self._clients.hold(client, subscription)
            self.changes += 1
            asked = Subscription(subscription, filter_, epoch, owner, durable)
            self._subscriptions.subscribe(asked, now_ns)
        return self._outbox.take()

    def client_unsubscribes(self, client: str, subscription: str, now_ns: int = 0) -> list[Effect]:
        """End a client's subscription. Raises InvalidSubscription where it has none such."""
        if self._clients.owner(subscription) != client:
            reason = f"there is no subscription {subscription!r} to end"
            raise InvalidSubscription(reason, subscription)
        self._end(subscription, now_ns)
        return self._outbox.take()

    def client_publishes(
        self, notifications: Sequence[Notification], now_ns: int = 0
    ) -> list[Effect]:
        """Route notifications of local clients, which have been checked."""
        batch = [NotificationMessage(notification) for notification in notifications]
        self._notifications.route(batch, None, now_ns)
        return self._outbox.take()

    def publishes_in_parts(
        self, notifications: Sequence[Notification], now_ns: int = 0
    ) -> Iterator[list[Effect]]:
        """Do the same, in parts: the effects of each are to be carried out before the next.

        So what is planned by the length of queues may leave them in between, and all is matched at
        once all the same. `at_once_max` are routed so.
        """
        batch = [NotificationMessage(notification) for notification in notifications]
        return self._route_in_parts(batch, None, now_ns)

    # In two steps, where what is accepted is on disk before it goes anywhere (target routing)

    def accept(self, notifications: Sequence[Notification], now_ns: int = 0) -> Accepted:
        """Match and number what local clients publish; `release` then lets it go."""
        assert self._lasting is not None, "only target routing takes publications in two steps"
        batch = [NotificationMessage(notification) for notification in notifications]
        return self._lasting.routing.accept(batch, now_ns)

    def release(self, accepted: Accepted, now_ns: int = 0) -> Iterator[list[Effect]]:
        """Deliver and route what was accepted, in parts, as `publishes_in_parts` does."""
        assert self._lasting is not None, "only target routing takes publications in two steps"
        still = accepted._replace(matches=self._clients.held(accepted.matches))
        for _ in self._lasting.routing.release(still, now_ns):
            yield self._outbox.take()

    def restore(
        self,
        own: Sequence[Subscription],
        others: Mapping[BrokerId, tuple[int, Sequence[Subscription]]],
        now_ns: int = 0,
    ) -> None:
        """Begin with durable subscriptions that are remembered, before any link is up.

        Of each other host: the generation of what is known, and what that is.
        """
        assert self._lasting is not None, "only under target routing subscriptions are durable"
        for each in own:
            self._clients.hold(DURABLE, each.id)
        self._lasting.spreading.restore(own, others, now_ns)
        self._outbox.take()  # nobody traces what is remembered

    def watch_durables(self, told: Callable[[Host], None]) -> None:
        """Have `told` hear of hosts whose durable subscriptions have changed."""
        assert self._lasting is not None, "only under target routing subscriptions are durable"
        self._lasting.spreading.watch_durables(told)

    @property
    def at_once_max(self) -> int:
        """How many notifications `publishes_in_parts` takes."""
        return self.batch_max if self._in_parts is None else sys.maxsize

    def _route_in_parts(
        self, batch: Sequence[NotificationMessage], link: BrokerId | None, now_ns: int
    ) -> Iterator[list[Effect]]:
        if self._in_parts is None:
            self._notifications.route(batch, link, now_ns)
            yield self._outbox.take()
            return
        for _ in self._in_parts(batch, link, now_ns):
            yield self._outbox.take()

    def hosts_of(self, notifications: Sequence[Notification]) -> list[set[BrokerId]]:
        """Return for each notification the hosts that it goes to, as far as is known here."""
        return self._table.hosts([each.attributes for each in notifications])

    def matching(self, notifications: Sequence[Notification]) -> list[list[Entry]]:
        """Return for each notification all matching entries that are known here."""
        return self._table.matching([each.attributes for each in notifications])

    def subscriptions_of(self, client: str) -> list[str]:
        """Return what a client holds here, oldest first."""
        return self._clients.subscriptions(client)

    def holder_of(self, subscription: str) -> str | None:
        """Return the client that holds a subscription here, if one does."""
        return self._clients.owner(subscription)

    def client_leaves(self, client: str, now_ns: int = 0) -> list[Effect]:
        """End all subscriptions of a client."""
        for subscription in self._clients.subscriptions(client):
            self._end(subscription, now_ns)
        return self._outbox.take()

    def messages_arrived(
        self, link: BrokerId, messages: Sequence[Message], now_ns: int = 0
    ) -> list[Effect]:
        """Take in messages of a neighbour; notifications that stand together are matched so."""
        for is_notification, run in groupby(messages, _is_notification):
            if is_notification:
                self._notifications.route(list(run), link, now_ns)  # type: ignore[arg-type]
            else:
                for message in run:
                    if isinstance(message, Mark):
                        self._pass_on(link, message, now_ns)
                    else:
                        self._subscriptions.receive(link, message, now_ns)
                        if self._unknown_marks:
                            self._look_at_marks()
        return self._outbox.take()

    def arrive_in_parts(
        self, link: BrokerId, messages: Sequence[Message], now_ns: int = 0
    ) -> Iterator[list[Effect]]:
        """Do the same, in parts: the effects of each are to be carried out before the next."""
        if self._in_parts is not None and set(map(type, messages)) == {NotificationMessage}:
            yield from self._route_in_parts(messages, link, now_ns)  # type: ignore[arg-type]
            return
        step = self.batch_size(messages)
        for start in range(0, len(messages), step):
            yield self.messages_arrived(link, messages[start : start + step], now_ns)

    def mark(self, number: int, now_ns: int = 0) -> list[Effect]:
        """Send a mark after all that own clients have changed; numbers rise, also by restarts."""
        self._send_mark(Mark(self.id, number, self._subscriptions.version), None, now_ns)
        return self._outbox.take()

    def messages_left(self, link: BrokerId, count: int = 1, now_ns: int = 0) -> None:
        """Count messages that left the output queue of a link."""
        self.link_status[link].left(now_ns, count)

    def messages_dropped(self, link: BrokerId, count: int = 1, now_ns: int = 0) -> None:
        """Count messages that were on the output queue of a link and were dropped there."""
        self.link_status[link].dropped(now_ns, count)

    def link_up(self, link: BrokerId, now_ns: int = 0) -> list[Effect]:
        """Bring a neighbour up to date after their link has come up."""
        status = self.link_status[link]
        if not status.is_up:
            status.is_up = True
            self._subscriptions.link_up(link, now_ns)
        return self._outbox.take()

    def link_down(
        self, link: BrokerId, unsent: Sequence[Message] = (), now_ns: int = 0
    ) -> list[Effect]:
        """Stop using a link; `unsent` was on its queue, and goes another way where it can."""
        self.link_status[link].go_down()
        self.counters.rerouted += self._repair.reroute(unsent, now_ns)
        return self._outbox.take()

    def send_again(self, messages: Sequence[NotificationMessage], now_ns: int = 0) -> list[Effect]:
        """Route what channels send again (target routing)."""
        self._repair.reroute(messages, now_ns)
        return self._outbox.take()

    def deliver(self, messages: Sequence[NotificationMessage]) -> list[Effect]:
        """Deliver what has waited on a channel, and has not to wait any more (target routing)."""
        self._repair.deliver(messages)
        return self._outbox.take()

    def compare(self, now_ns: int = 0) -> list[Effect]:
        """Compare with neighbours what was heard of hosts, where that changed since."""
        self._repair.compare(now_ns)
        return self._outbox.take()

    def _pass_on(self, link: BrokerId, mark: Mark, now_ns: int) -> None:
        """Let a mark go where changes of its host go, when it comes for the first time."""
        if mark.host != self.id and mark.number > self._marks.get(mark.host, -1):
            self._marks[mark.host] = mark.number
            self._send_mark(mark, link, now_ns)
            is_known = self._subscriptions.knows(mark.host, mark.version)
            self._outbox.add(Marked(mark.host, mark.number, link, is_known))
            if not is_known:  # it has overtaken what stands before it
                self._unknown_marks[mark.host] = mark, link

    def _look_at_marks(self) -> None:
        """Say of marks that came too early when all that stands before them has come."""
        for host, (mark, link) in list(self._unknown_marks.items()):
            if self._subscriptions.knows(host, mark.version):
                del self._unknown_marks[host]
                self._outbox.add(Marked(host, mark.number, link, is_known=True))

    def _send_mark(self, mark: Mark, sender: BrokerId | None, now_ns: int) -> None:
        for way in self._subscriptions.ways(mark.host, sender):
            self._outbox.send(way, mark, Reason.SYNC, now_ns)

    def _end(self, subscription: str, now_ns: int) -> None:
        self.changes += 1
        self._clients.release(subscription)
        self._subscriptions.unsubscribe(subscription, now_ns)


def _is_notification(message: Message) -> bool:
    return isinstance(message, NotificationMessage)
