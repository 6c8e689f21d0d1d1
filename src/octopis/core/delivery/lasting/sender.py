"""The sending end of channels whose notifications are on disk until all targets have them.

A target that has durable subscriptions is never given up: what is for it stays on disk, and when it
is back it catches up. While a target is `behind`, nothing new is sent to it past what it lacks; it
gets that from disk, in order, a part at a time.

When a target begins another life, its earlier one may have delivered to its clients what it has not
acknowledged: that goes again to its durable subscriptions alone (`fresh`).
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from octopis.core.delivery.channel import Channel
from octopis.core.delivery.lasting.records import ChannelState, Publication
from octopis.core.delivery.lasting.store import Codec, Shelf
from octopis.core.delivery.options import DeliveryOptions
from octopis.core.delivery.posts import Ack, Open
from octopis.core.delivery.sender import Kept, Sender
from octopis.core.model import Notification
from octopis.core.routing.messages import NO_CLUSTERS, NotificationMessage, copy_for

_FLYING_MAX = 2_048
"""So much is on its way to a target that catches up."""


class Remembered(NamedTuple):
    """A publication on disk: where it is, its targets as bits, their distances, and its size."""

    position: int
    targets: int
    distances: tuple[int, ...]
    size: int


class LastingSender(Sender):
    """Numbers what a host sends, in all lives of its store."""

    def __init__(  # noqa: PLR0913, PLR0917 - one call, in channels.py
        self,
        place: int,
        brokers: int,
        stream: int,
        options: DeliveryOptions,
        origin: int,
        shelf: Shelf,
        codec: Codec,
    ) -> None:
        super().__init__(place, brokers, stream, options, origin)
        self._shelf = shelf
        self._codec = codec
        self._flying_max = min(options.window, _FLYING_MAX)
        self._serial = 0
        self._all = 1 << place | self._others
        self._behind = 0
        self._mended: dict[int, tuple[int, ...]] = {}
        """Distances of what follows something that is damaged on disk."""

        self.durable = 0
        """Targets, as bits, that have durable subscriptions."""

        self.sendable = 0
        """What is numbered higher is not on disk yet."""

        self.is_blocked = False
        """Whether there is no room on disk."""

    # What is remembered

    @property
    def number_last(self) -> int:
        """The last number."""
        return self._number

    def states(self) -> list[ChannelState]:
        """Return what channels would begin with now."""
        return [self._state(each) for each in self._channels.values()]

    def _state(self, channel: Channel) -> ChannelState:
        is_durable = bool(self.durable & channel.bit)
        about = channel.life, channel.acked, channel.fresh, is_durable
        return ChannelState(self._serial, channel.place, *about)

    def set_durable(self, place: int, *, is_durable: bool) -> None:
        """Know whether a target has durable subscriptions: before what is published for them."""
        if bool(self.durable >> place & 1) != is_durable:
            self.durable ^= 1 << place
            if place in self._channels:
                self._write(self._channels[place])

    def restore(
        self,
        number: int,
        states: Iterable[ChannelState],
        publications: Mapping[int, Remembered],
        now_ns: int,
    ) -> None:
        """Go on after `number`, with channels, and with publications by their numbers.

        `keeps` then tells which of them are needed still.
        """
        self._number = self.sendable = number
        for state in states:
            channel = Channel(state.place, state.life, state.base)
            channel.fresh = state.fresh
            self._serial = max(self._serial, state.serial)
            self._channels[state.place] = channel
            self.durable |= channel.bit if state.durable else 0
        for each in sorted(publications):
            left = self._remember(each, publications[each])
            if left:
                about = publications[each]
                self._kept[each] = Kept(None, about.size, now_ns, left, about.position)
        for channel in self._channels.values():
            channel.heard_ns = channel.progress_ns = now_ns
            if channel.pending:
                channel.behind = True
                self._behind |= channel.bit

    def _remember(self, number: int, about: Remembered) -> int:
        """Let channels have a publication that they had; return how many need it still."""
        left, places = 0, about.targets
        distances = list(about.distances)
        for which in range(places.bit_count()):
            bit = places & -places
            places ^= bit
            place = bit.bit_length() - 1
            if place not in self._channels:  # what it began with is damaged
                self._channels[place] = Channel(place, 0, 0)
            channel = self._channels[place]
            if number > channel.base:
                if number - distances[which] > channel.last:  # the one before is damaged
                    distances[which] = number - channel.last
                    self._mended[number] = tuple(distances)
                channel.pending.append(number)
                channel.bytes += about.size
                left += 1
            channel.last = max(channel.last, number)
        return left

    # Publications

    def reached(self, targets: int) -> int:
        """Return the targets, as bits, that a notification is kept for: not those given up."""
        targets &= self._others
        return self._without_gone(targets) if targets & self.gone else targets

    def shelve(self, number: int, position: int) -> None:
        """Know where on disk a notification is that was numbered."""
        kept = self._kept[number]
        kept.message, kept.position = None, position
        self.bytes -= kept.size

    def going(self, message: NotificationMessage) -> NotificationMessage | None:
        """Return a numbered notification for those targets that are not behind."""
        if not message.targets & self._behind:
            return message
        targets = message.targets & ~self._behind
        return copy_for(message, targets, 0) if targets else None

    def look_at_windows(self, touched: int) -> None:
        """Hold publishers back from targets that lack a window of notifications."""
        self._look_at_windows(self._set(touched))

    @property
    def held(self) -> int:
        """Targets, as bits, for which publishers have to wait."""
        return self._all if self.is_blocked else self.lacking

    @property
    def lacking(self) -> int:
        """Targets, as bits, that lack a window of notifications."""
        return super().held

    def synced(self, number: int, now_ns: int) -> None:
        """Know that what is numbered up to there is on disk."""
        self.sendable = max(self.sendable, number)
        if self._behind:
            for channel in self._channels.values():
                if channel.behind:
                    self._pump(channel, now_ns)

    def _channel(self, place: int) -> Channel:
        is_new = place not in self._channels
        channel = super()._channel(place)
        if is_new:
            self._write(channel)
        return channel

    def _write(self, channel: Channel) -> None:
        """Write down what a channel begins with; the next checkpoint says it, too.

        What changes when the disk has failed is found again in the next life.
        """
        self._serial += 1
        if not self._shelf.has_failed:
            self._shelf.add(self._state(channel), holders=0)

    # Answers

    def acknowledged(self, ack: Ack, now_ns: int) -> None:
        """Take in what a target has, and what it lacks; send it more if it is behind."""
        super().acknowledged(ack, now_ns)
        channel = self._channels.get(ack.by)
        if channel is not None and channel.behind and ack.last is not None:
            self._pump(channel, now_ns)

    def _progress(self, channel: Channel, last: int, now_ns: int) -> None:
        before, trip = len(channel.pending), (channel.round_trip_ns, channel.variation_ns)
        super()._progress(channel, last, now_ns)
        if channel.behind:  # what it had before was sent before, too: maybe it was dead since
            channel.round_trip_ns, channel.variation_ns = trip
            channel.flying = max(0, channel.flying - (before - len(channel.pending)))

    def _sent_to(self, channel: Channel) -> Iterable[int]:
        pending: Iterable[int] = channel.pending
        if channel.behind:
            pending = islice(pending, channel.flying)
        return (number for number in pending if number <= self.sendable)

    def _pump(self, channel: Channel, now_ns: int) -> None:
        """Send a target that is behind the next of what it lacks."""
        if not channel.is_open or channel.flying > self._flying_max // 2:
            return
        for number in islice(channel.pending, channel.flying, self._flying_max):
            if number > self.sendable:
                return
            channel.resent[number] = now_ns
            self._again[number] = self._again.get(number, 0) | channel.bit
            channel.flying += 1
        if channel.flying == len(channel.pending):
            channel.behind, channel.flying = False, 0
            self._behind &= ~channel.bit
            self._look_at_windows((channel,))

    def _look_at_windows(self, channels: Sequence[Channel]) -> None:
        """Hold nobody back for a target that is behind: what is for it is on disk."""
        super()._look_at_windows(channels)
        self._full &= ~self._behind

    # Time

    def look(self, now_ns: int) -> None:
        """See to what is overdue; keep nothing for the dead who want nothing any more."""
        super().look(now_ns)
        for channel in self._channels.values():
            if channel.is_gone and channel.pending and not self.durable & channel.bit:
                self._give_up_for_good(channel)

    def _give_up(self, channel: Channel) -> None:
        if not self.durable & channel.bit:
            self._give_up_for_good(channel)
        elif not channel.is_gone:
            channel.is_open, channel.is_gone = False, True
            self._fall_behind(channel)

    def _give_up_for_good(self, channel: Channel) -> None:
        super()._give_up(channel)
        self._behind &= ~channel.bit
        self._write(channel)

    def _fall_behind(self, channel: Channel) -> None:
        channel.behind, channel.flying = True, 0
        self._behind |= channel.bit
        channel.resent.clear()
        for number in self._again:
            self._again[number] &= ~channel.bit
        self._look_at_windows((channel,))

    def renewed(self, place: int, now_ns: int) -> None:
        """Begin with a new life of a target; its durable subscriptions lack what they lacked."""
        channel, life = self._channels.get(place), self.life_of(place)
        if channel is None or channel.life == life:
            return
        if self.durable & channel.bit:
            pending, size, last = channel.pending, channel.bytes, channel.last
            channel.given_up -= channel.given_up_told
            channel.given_up_told = 0
            channel.begin(life, channel.acked)
            channel.pending, channel.bytes, channel.last = pending, size, last
            channel.fresh = last
            channel.heard_ns = channel.progress_ns = now_ns
            self.gone &= ~channel.bit
            self._fall_behind(channel)
            self._open(channel, now_ns)
        else:
            super().renewed(place, now_ns)
            self._behind &= ~channel.bit
        self._write(channel)

    # What goes

    def take_posts(self) -> list[Open]:
        """Return what to tell targets; nothing of numbers that are not on disk yet.

        After a loss of power these would be another's, and taken for old ones.
        """
        posts = super().take_posts()
        found = [each for each in posts if max(each.base, each.fresh) <= self.sendable]
        if len(found) < len(posts):
            self._opening = [each for each in posts if each not in found]
        return found

    # What is on disk

    def _forget(self, kept: Kept) -> None:
        if kept.message is not None:
            super()._forget(kept)
        else:
            self._shelf.release(kept.position)

    def _message(self, number: int, kept: Kept) -> NotificationMessage:
        if kept.message is not None:
            return kept.message
        (record,) = self._shelf.read_whole([kept.position])
        if record is None:
            return self._in_place_of(number)
        assert isinstance(record, Publication), "only publications are sent"
        return self._from_disk(record, self._codec.decode(record.body))

    def _in_place_of(self, number: int) -> NotificationMessage:
        """Return what is sent where the disk has damaged a notification: its number counts."""
        targets, distances = 0, []
        for place in sorted(self._channels):
            channel = self._channels[place]
            if number in channel.pending:
                before = channel.acked
                for each in channel.pending:
                    if each == number:
                        break
                    before = each
                targets |= channel.bit
                distances.append(number - before)
        about = targets, 0, self._origin, number, tuple(distances)
        return NotificationMessage(self._codec.nothing(), NO_CLUSTERS, *about)

    def _from_disk(self, record: Publication, notification: Notification) -> NotificationMessage:
        targets = int.from_bytes(record.targets, "little")
        about = record.number, self._mended.get(record.number, record.distances)
        return NotificationMessage(notification, NO_CLUSTERS, targets, 0, self._origin, *about)

    def moved(self, number: int, position: int) -> None:
        """Know that a notification is at another place of the log now."""
        if number in self._kept:
            self._kept[number].position = position
