"""All channels of a broker that keeps things on disk, and its durable subscriptions.

What the driver owes it, beyond what it owes channels:
- `recover` with all records of the store, before anything else; then the routing core is told to
  `watch_durables` by `durables_changed`, and begins with `own_subscriptions` and `hosts.known`;
- what `routing.Broker.accept` returns is released, and publishers are answered, no earlier than
  the store's `ticket` of that moment is synced;
- `synced` as often as the store has synced something, with rising tickets, and `tidy` every second
  or so;
- a new durable subscription is announced to the overlay when what is known of it is synced.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from octopis.core.delivery.channels import Channels
from octopis.core.delivery.lasting.committed import QUERIES_MAX
from octopis.core.delivery.lasting.durables import Durable, Durables
from octopis.core.delivery.lasting.memory import KnownHosts, Publishers, checkpoint, remembered
from octopis.core.delivery.lasting.moving import Moves
from octopis.core.delivery.lasting.receiver import LastingReceiver
from octopis.core.delivery.lasting.records import (
    Arrival,
    ChannelState,
    Copy,
    Decision,
    Publication,
    Staged,
    decode_record,
)
from octopis.core.delivery.lasting.sender import LastingSender, Remembered
from octopis.core.delivery.lasting.staging import Staging
from octopis.core.delivery.lasting.store import Codec, Shelf, Store
from octopis.core.delivery.options import DeliveryOptions
from octopis.core.delivery.posts import Post
from octopis.core.delivery.receiver import LIFE_BITS, origin_of
from octopis.core.model import BrokerId, Notification
from octopis.core.routing.algorithms.hosts import Host
from octopis.core.routing.algorithms.target_routing import Accepted
from octopis.core.routing.messages import NotificationMessage, Subscription
from octopis.core.topology import SCOT
from octopis.errors import StoreDamaged

_SPARSE = 0.5
"""A part of the log of which less is needed is written again, where room is short."""

_FOR_PUBLISHERS = 0.4
"""Publishers wait when so much of the quota is needed, the rest is for what others send: two hosts
that are full of what the other one has to take would wait for each other for ever. It is less than
a half, as a log takes up to twice as much as is needed of it. What is staged has its own room."""

_FOR_BATCHES = 0.5
"""A batch that was committed goes on up to here: a query that reads here what publishers have
filled their share with, and writes here too, would else wait for itself."""


class LastingChannels(Channels):
    """The channels from and to one broker, in all lives of its store."""

    sender: LastingSender
    receiver: LastingReceiver

    def __init__(  # noqa: PLR0913, PLR0917 - what channels and disks need
        self,
        broker: BrokerId,
        scot: SCOT,
        life: int,
        options: DeliveryOptions,
        store: Store,
        codec: Codec,
        quota_bytes: int,
        queries_max: int = QUERIES_MAX,
    ) -> None:
        self._shelf = Shelf(store)
        self._codec = codec
        super().__init__(broker, scot, life, options)
        self.store = store
        self._quota_bytes = quota_bytes
        self.durables = Durables(self._shelf)
        self.moves = Moves(self.durables, self._shelf, origin_of(self.place, store.epoch))
        self.staging = Staging(self._shelf, quota_bytes, queries_max)
        self.publishers = Publishers()
        self.hosts = KnownHosts(broker, store)
        self._numbered: deque[tuple[int, int]] = deque()
        self._synced = store.ticket
        self._checkpoint: tuple[int, int] | None = None

    def _make_sender(self, brokers: int, life: int, options: DeliveryOptions) -> LastingSender:  # noqa: ARG002
        stream = self._shelf.store.epoch
        origin = origin_of(self.place, stream)
        shelf, codec = self._shelf, self._codec
        return LastingSender(self.place, brokers, stream, options, origin, shelf, codec)

    def _make_receiver(self, life: int, options: DeliveryOptions) -> LastingReceiver:
        return LastingReceiver(self.place, life, options)

    # What is remembered

    def recover(self, records: Iterable[tuple[int, bytes]], now_ns: int) -> None:
        """Go on where the last life of the store has ended."""
        known = remembered(self.store)
        states = {each.place: each for each in known.channels}
        self.publishers.restore(known.publishers)
        lasts, number = dict(known.streams), known.number
        publications: dict[int, Remembered] = {}
        wanted: dict[int, tuple[int, ...]] = {}
        for position, body in records:
            record, size = decode_record(body), len(body)
            if isinstance(record, Staged | Decision):
                self.staging.found(position, record)
                continue
            if isinstance(record, ChannelState):
                before = states.get(record.place)
                if before is None or before.serial < record.serial:
                    states[record.place] = record
                self._shelf.found(position, holders=0)
                continue
            wanted[position] = record.kept
            annexed = record.annexed if isinstance(record, Copy) else 0
            self.durables.found(record.kept, position, len(record.body), annexed)
            if isinstance(record, Copy):
                continue
            if isinstance(record, Arrival):
                lasts[record.origin] = max(record.number, lasts.get(record.origin, 0))
                continue
            self.publishers.note(record.publisher, record.sequence)
            if record.number:
                number = max(number, record.number)
                targets = int.from_bytes(record.targets, "little")
                about = position, targets, record.distances, size
                publications[record.number] = Remembered(*about)
        self.sender.restore(number, states.values(), publications, now_ns)
        sent = {each.position for key, each in publications.items() if self.sender.keeps(key)}
        self.durables.recovered()
        for position, kept in wanted.items():
            holders = self.durables.holders(kept, position)
            self._shelf.found(position, holders + (position in sent))
        self.staging.recovered(self.publishers, now_ns)
        self._remember_lives()
        self.receiver.restore(lasts)
        self._synced = self.store.ticket

    def _remember_lives(self) -> None:
        """Know which lives of other hosts were known: channels have heard of the newest."""
        for host, (generation, _) in self.hosts.known().items():
            self._lives[self._places[host]] = generation & (1 << LIFE_BITS) - 1
            self.sender.durable |= 1 << self._places[host]
        for channel in self.sender.channels:
            self._lives[channel.place] = channel.life

    def own_subscriptions(self) -> list[Subscription]:
        """Return the durable subscriptions of this broker, as the overlay knows them."""
        return self.hosts.own_of([each.state for each in self.durables if not each.state.moved_to])

    def cut(self) -> dict[int, int]:
        """Return up to where this broker has taken in each stream, its own among them."""
        own = origin_of(self.place, self.store.epoch)
        return {**self.receiver.handed, own: self.sender.number_last}

    def has_place(self, broker: BrokerId) -> bool:
        """Tell whether a broker is one of the overlay."""
        return broker in self._places

    def passage(self, target: BrokerId) -> tuple[bool, int, int]:
        """Return whether a target is not given up, the last number for it, and what it has."""
        place = self._places[target]
        is_reached = not self.sender.gone >> place & 1
        for channel in self.sender.channels:
            if channel.place == place:
                return is_reached, channel.last, channel.acked
        return is_reached, 0, 0

    def durables_changed(self, host: Host) -> None:
        """Know that the durable subscriptions of a host have changed (`Broker.watch_durables`)."""
        self.hosts.changed(host)
        self.sender.set_durable(self._places[host.name], is_durable=bool(host.durables))

    @property
    def damaged(self) -> int:
        """How many records were found damaged when they were read."""
        return len(self._shelf.damaged)

    def read_staged(self, position: int) -> bytes:
        """Return rows that were staged. Raises StoreFailed where they cannot be read."""
        try:
            (record,) = self._shelf.read([position])
        except StoreDamaged:
            self._shelf.damaged.add(position)
            raise
        assert isinstance(record, Staged), "a batch is made of rows"
        return record.rows

    def has(self, notification: Notification) -> bool:
        """Tell whether a publication was accepted before: it is sent again."""
        return self.publishers.has(*self._codec.publisher(notification))

    # What the routing core asks

    def accept(
        self, batch: Sequence[NotificationMessage], matches: list[list[str]], now_ns: int
    ) -> Accepted:
        """Number what a local publisher sends, and write it down with all that it is for."""
        self.hosts.write()  # before anybody is answered: for whom it is must be known as long
        sender, onward, touched = self.sender, [], 0
        kept_for: dict[Durable, None] = {}
        left = []
        for message, found in zip(batch, matches, strict=True):
            notification = message.notification
            durables = self.durables.wanted(found) if found else []
            targets = sender.reached(message.targets)
            numbered = sender.keep(notification, targets, now_ns) if targets else None
            record = self._publication(notification, numbered, durables)
            holders = len(durables) + (numbered is not None)
            position = self._shelf.add(record, holders)
            if numbered is not None:
                touched |= targets
                sender.shelve(numbered.number, position)
                going = sender.going(numbered)
                if going is not None:
                    onward.append(going)
            if durables:
                self.durables.add(durables, position, len(record.body))
                kept_for.update(dict.fromkeys(durables))
            left.append(self._ordinary(found))
        if touched:
            sender.look_at_windows(touched)
            self._numbered.append((self.store.ticket, sender.number_last))
        if kept_for:
            self.durables.await_sync(kept_for, self.store.ticket)
        self._look_at_room()
        return Accepted(batch, left, onward)

    def _publication(
        self,
        notification: Notification,
        numbered: NotificationMessage | None,
        durables: list[Durable],
    ) -> Publication:
        publisher, sequence = self._codec.publisher(notification)
        self.publishers.note(publisher, sequence)
        kept = _pairs(durables)
        if numbered is None:
            body = self._codec.encode(notification) if durables else b""
            return Publication(publisher, sequence, 0, b"", (), kept, body)
        targets = numbered.targets.to_bytes((numbered.targets.bit_length() + 7) // 8, "little")
        about = numbered.number, targets, numbered.distances
        return Publication(publisher, sequence, *about, kept, self._codec.encode(notification))

    def keep(
        self, arrived: Sequence[NotificationMessage], matches: list[list[str]]
    ) -> list[list[str]]:
        """Write down what durable subscriptions want; return who else gets it now.

        Where the disk has failed nothing is acknowledged: it comes again, to the next life.
        """
        if self._shelf.has_failed:
            return [
                self._ordinary(found) if self.receiver.is_fresh(message) else []
                for message, found in zip(arrived, matches, strict=True)
            ]
        lasts: dict[int, int] = {}
        kept_for: dict[Durable, None] = {}
        left = []
        for message, found in zip(arrived, matches, strict=True):
            origin, number = message.origin, message.number
            lasts[origin] = number
            durables = self.durables.wanted(found, origin, number) if found else []
            if durables:
                body = self._codec.encode(message.notification)
                record = Arrival(origin, number, _pairs(durables), body)
                position = self._shelf.add(record, len(durables))
                self.durables.add(durables, position, len(body))
                kept_for.update(dict.fromkeys(durables))
            left.append(self._ordinary(found) if self.receiver.is_fresh(message) else [])
        if kept_for:
            self.durables.await_sync(kept_for, self.store.ticket)
        self._await(lasts)
        return left

    def _ordinary(self, found: list[str]) -> list[str]:
        """Return those of some subscriptions that are not durable."""
        by_id = self.durables.by_id
        return [each for each in found if each not in by_id] if by_id and found else found

    def arrived(self, post: Post, now_ns: int) -> None:
        """Take in a post for this broker."""
        super().arrived(post, now_ns)
        if not self._released and not self._shelf.has_failed:
            self._await({})

    def _await(self, lasts: dict[int, int]) -> None:
        """Acknowledge what was handed on when all before it is on disk: perhaps it is."""
        self.receiver.kept(lasts, self.store.ticket)
        self.receiver.synced(self._synced)

    # What the driver does

    def synced(self, ticket: int, now_ns: int) -> None:
        """Know that all that the store had written up to a ticket is on disk."""
        self._synced = ticket
        number = 0
        while self._numbered and self._numbered[0][0] <= ticket:
            number = self._numbered.popleft()[1]
        if number:
            self.sender.synced(number, now_ns)
        self.receiver.synced(ticket)
        self.durables.synced(ticket)
        if self._checkpoint is not None and self._checkpoint[0] <= ticket:
            self.store.reclaim(self._checkpoint[1])
            self._checkpoint = None
            self._shelf.go_on()
        self._look_at_room()

    def fail(self) -> None:
        """Know that nothing can be written any more: what is not on disk now never will be."""
        self._shelf.has_failed = True

    @property
    def is_blocked(self) -> bool:
        """Whether publishers wait as there is no room on disk."""
        return self.sender.is_blocked

    @property
    def lacking(self) -> int:
        """Targets, as bits, for which batches have to wait that were committed."""
        return self.sender.lacking

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be written."""
        return not self.store.has_room or self.store.used_bytes >= self._quota_bytes

    @property
    def holds_batches(self) -> bool:
        """Whether batches that were committed wait as there is no room on disk."""
        return self.is_full or self._needed >= _FOR_BATCHES * self._quota_bytes

    @property
    def _needed(self) -> int:
        """How many bytes are needed, of what is not staged."""
        return self.store.live_bytes - self.staging.bytes

    def tidy(self) -> None:
        """Write down what others have changed, and have room back that nobody needs."""
        self.hosts.write()
        store = self.store
        if self._checkpoint is None:
            if (
                store.used_bytes > self._quota_bytes // 2
                and store.live_bytes < _SPARSE * store.used_bytes
            ):
                self._write_again(store.sparse(_SPARSE, self._shelf.damaged))
            if store.reclaimable:
                checkpoint(self)
                self._checkpoint = store.ticket, store.position
                self._shelf.wait()
        self._look_at_room()
        if self.is_blocked and store.has_room:
            self.durables.make_room()
            self._look_at_room()

    def _look_at_room(self) -> None:
        is_full = self.is_full
        self.receiver.is_blocked = is_full
        self.sender.is_blocked = is_full or self._needed >= _FOR_PUBLISHERS * self._quota_bytes

    def _write_again(self, positions: list[int]) -> None:
        """Write at the end of the log what is needed of a part that is mostly not.

        What is damaged stays where it is, until whoever needs it has been told.
        """
        for position, record in zip(positions, self._shelf.read_whole(positions), strict=True):
            if record is None or isinstance(record, ChannelState):
                continue
            new = self._shelf.write_again(position, record)
            if isinstance(record, Staged | Decision):
                self.staging.moved(new, record)
                continue
            self.durables.moved(record.kept, new)
            if isinstance(record, Publication) and record.number:
                self.sender.moved(record.number, new)


def _pairs(durables: list[Durable]) -> tuple[int, ...]:
    """Return keys and positions, where a notification is the next of these."""
    if not durables:
        return ()
    return tuple([fact for each in durables for fact in (each.state.key, each.next)])
