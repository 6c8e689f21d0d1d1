"""The sending end of all channels of a host: numbers, what is not acknowledged, and resending.

A host numbers what it sends, one number for a notification whatever its targets. A copy carries for
each target the distance to the number before it that was for the same target; so a target knows
what it lacks, and what is not for it leaves no hole. A notification is kept once, until all its
targets have acknowledged it or are given up.

What a target lacks is sent again when it says so, and when nothing has been heard for as long as
the measured round trip makes likely; always to those alone that lack it. A number is not sent again
to the same target before that time is over: on a way around things take longer, and are not lost.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from octopis.core.delivery.channel import GONE_AGAIN_NS, TIMEOUT_MAX_NS, Channel
from octopis.core.delivery.options import DeliveryOptions
from octopis.core.delivery.posts import Ack, Open
from octopis.core.model import Notification
from octopis.core.routing.messages import NO_CLUSTERS, NotificationMessage, copy_for

_MS = 1_000_000
_BACKOFF_MAX = 4
_OVERTAKEN_NS = 1_000 * _MS
"""What a target names as missing has at least been overtaken; after so long it is taken for lost,
whatever the round trip was in worse times. Much sooner than the timeout would be too soon: what
waits on an overloaded way is late and not lost, and sent again it makes the way worse."""

BURST = 256
"""So much is sent again at a time; the next when that has arrived."""

_OPEN_AGAIN_NS = 200 * _MS
"""A host that has not said that it knows the channel, or is silent, is asked so often."""


class Kept(msgspec.Struct, gc=False):
    """A notification that some of its targets have not acknowledged: `left` of them.

    The message is None where it is kept on disk, at `position` there.
    """

    message: NotificationMessage | None
    size: int
    sent_ns: int
    left: int
    position: int = 0


class Sender:
    """Numbers what a host sends, and sees to it that it arrives.

    `life` is this host's. `life_of` says which life of a host, by its place, has made the
    subscriptions that are known of it; the driver says by `renewed` when that is another one.
    """

    def __init__(
        self, place: int, brokers: int, life: int, options: DeliveryOptions, origin: int
    ) -> None:
        self._place = place
        self._life = life
        self._origin = origin
        self._others = (1 << brokers) - 1 & ~(1 << place)
        self._options = options
        self._number = 0
        self._kept: dict[int, Kept] = {}
        self._channels: dict[int, Channel] = {}
        self._sets: dict[int, tuple[Channel, ...]] = {}
        self.gone = 0
        """Targets, as bits, that were given up and are not back."""

        self._again: dict[int, int] = {}
        self._opening: list[Open] = []
        self.life_of: Callable[[int], int] = lambda _: 0
        self.bytes = 0
        """How many bytes are kept."""

        self._full = 0
        self._is_full = False
        self.resent = 0
        self.given_up = 0

    @property
    def kept(self) -> int:
        """How many notifications are kept."""
        return len(self._kept)

    def keeps(self, number: int) -> bool:
        """Tell whether a notification is kept, by its number."""
        return number in self._kept

    @property
    def held(self) -> int:
        """Targets, as bits, for which publishers have to wait."""
        return self._others if self._is_full else self._full

    @property
    def channels(self) -> Sequence[Channel]:
        """All channels so far."""
        return list(self._channels.values())

    # Publications

    def number(
        self, batch: Sequence[NotificationMessage], now_ns: int
    ) -> list[NotificationMessage]:
        """Return what a local publisher sends with its numbers, for targets that are reached."""
        found = []
        touched = 0
        for message in batch:
            targets = message.targets & self._others
            if targets & self.gone:
                targets = self._without_gone(targets)
            if targets:
                touched |= targets
                found.append(self.keep(message.notification, targets, now_ns))
        if touched:
            self._look_at_windows(self._set(touched))
        return found

    def keep(self, notification: Notification, targets: int, now_ns: int) -> NotificationMessage:
        """Number a notification, and keep it until all targets have it."""
        # Before it is numbered: a channel that begins with it has its base below it.
        channels = self._sets.get(targets) or self._set(targets)
        self._number = number = self._number + 1
        size = len(getattr(notification, "encoded", notification.payload))
        distances = []
        for channel in channels:
            distances.append(number - channel.last)
            channel.last = number
            if not channel.pending:
                channel.heard_ns = channel.progress_ns = now_ns
            channel.pending.append(number)
            channel.bytes += size
        message = NotificationMessage(
            notification, NO_CLUSTERS, targets, 0, self._origin, number, tuple(distances)
        )
        self._kept[number] = Kept(message, size, now_ns, len(distances))
        self.bytes += size
        return message

    def _set(self, targets: int) -> tuple[Channel, ...]:
        """Return the channels to a set of targets, in the order of their bits."""
        found = self._sets.get(targets)
        if found is None:
            if len(self._sets) >= 4096:
                self._sets.clear()
            places = [place for place in range(targets.bit_length()) if targets >> place & 1]
            found = self._sets[targets] = tuple(map(self._channel, places))
        return found

    def _channel(self, place: int) -> Channel:
        channel = self._channels.get(place)
        if channel is None:
            channel = Channel(place, self.life_of(place), self._number)
            self._channels[place] = channel
            self._open(channel, 0)
        return channel

    def _without_gone(self, targets: int) -> int:
        """Count what is for targets that were given up, and leave them out."""
        for channel in self._set(targets & self.gone):
            channel.given_up += 1
            self.given_up += 1
        return targets & ~self.gone

    def _look_at_windows(self, channels: Sequence[Channel]) -> None:
        """Hold publishers back from targets that lack a window of notifications."""
        options = self._options
        self._is_full = self.bytes >= options.bytes
        for channel in channels:
            if len(channel.pending) >= options.window or channel.bytes >= options.window_bytes:
                self._full |= channel.bit
            else:
                self._full &= ~channel.bit

    # Answers

    def acknowledged(self, ack: Ack, now_ns: int) -> None:
        """Take in what a target has, and what it lacks."""
        channel = self._channels.get(ack.by)
        if channel is None or ack.stream != self._life:
            return
        if ack.life != channel.life:  # it may be late, or of a life of which nothing is known yet
            self.renewed(ack.by, now_ns)
            return
        channel.heard_ns = now_ns
        if ack.last is None or ack.last < channel.base:
            channel.refused_until = channel.last
            self._open(channel, now_ns, ack.token)
            return
        channel.given_up_told = max(channel.given_up_told, min(ack.given_up, channel.given_up))
        if not channel.is_open:
            channel.is_open, channel.is_gone = True, False
            self.gone &= ~channel.bit
        if ack.last > channel.acked:
            self._progress(channel, min(ack.last, channel.last), now_ns)
        if channel.refused_until:  # what came before the channel was known was not taken
            self._resend(channel, channel.acked, channel.refused_until, now_ns, first_ns=0)
            channel.refused_until = 0
        known = channel.acked
        for after, upto in ack.wanted:
            self._resend(channel, after, upto, now_ns, first_ns=_OVERTAKEN_NS)
            known = upto  # between the ranges that it names, it has everything
        if channel.lost_until > known:
            self._resend(channel, known, channel.lost_until, now_ns)

    def _progress(self, channel: Channel, last: int, now_ns: int) -> None:
        sent_ns = None
        is_again = False
        pending = channel.pending
        while pending and pending[0] <= last:
            number = pending.popleft()
            kept = self._kept[number]
            channel.bytes -= kept.size
            if channel.resent and channel.resent.pop(number, None) is not None:
                is_again = True
                if number in self._again:
                    self._again[number] &= ~channel.bit
            sent_ns = kept.sent_ns
            self._release(number, kept)
        # Of what was sent twice, who knows which has come; and all after it has waited for it.
        if sent_ns is not None and not is_again:
            channel.took(now_ns - sent_ns)
        channel.acked = last
        channel.progress_ns = now_ns
        channel.backoff = 0
        self._look_at_windows((channel,))

    def _release(self, number: int, kept: Kept) -> None:
        """Note that one more target does not wait for a notification."""
        kept.left -= 1
        if not kept.left:
            del self._kept[number]
            self._forget(kept)

    def _forget(self, kept: Kept) -> None:
        """Keep a notification no more: all have it."""
        self.bytes -= kept.size

    def _resend(
        self,
        channel: Channel,
        after: int,
        upto: int,
        now_ns: int,
        first_ns: int = TIMEOUT_MAX_NS,
    ) -> None:
        """Send again what is for a target after one number, up to another; a burst at most.

        For the first time after `first_ns`, or when the timeout is over. Where nothing that was
        sent again has helped, the next time is later and later: it may go where nothing comes from.
        """
        patience_ns = channel.patience_ns
        first_ns = min(first_ns, patience_ns)
        count = 0
        for number in self._sent_to(channel):
            if number > upto or count >= BURST:
                return
            if number <= after:
                continue
            again_ns = channel.resent.get(number)
            sent_ns = self._kept[number].sent_ns if again_ns is None else again_ns
            if now_ns - sent_ns >= (first_ns if again_ns is None else patience_ns):
                channel.resent[number] = now_ns
                self._again[number] = self._again.get(number, 0) | channel.bit
                count += 1

    def _sent_to(self, channel: Channel) -> Iterable[int]:
        """Return what was sent to a target and is not acknowledged, from the oldest on."""
        return channel.pending

    # Time

    def look(self, now_ns: int) -> None:
        """See to what is overdue."""
        for channel in self._channels.values():
            if channel.is_quiet:
                continue
            again_ns = GONE_AGAIN_NS if channel.is_gone else _OPEN_AGAIN_NS
            is_told = channel.is_open and channel.given_up == channel.given_up_told
            # Whoever is silent is asked: what is sent again alone is too rare to tell by.
            is_silent = channel.pending and now_ns - channel.heard_ns >= again_ns
            if (is_silent or not is_told) and now_ns - channel.opened_ns >= again_ns:
                self._open(channel, now_ns)
            if not channel.pending:
                continue
            if now_ns - channel.heard_ns >= self._options.give_up_ns:
                self._give_up(channel)
            elif now_ns - channel.progress_ns >= channel.patience_ns:
                self._time_out(channel, now_ns)

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing to look at."""
        return all(channel.is_quiet for channel in self._channels.values())

    @property
    def is_resting(self) -> bool:
        """Whether there is nothing to look at but hosts that were given up."""
        return all(channel.is_quiet or channel.is_gone for channel in self._channels.values())

    def stood_still(self, now_ns: int) -> None:
        """Know that this broker has not looked for long: targets were not silent, but unheard."""
        for channel in self._channels.values():
            channel.heard_ns = now_ns

    def _time_out(self, channel: Channel, now_ns: int) -> None:
        """Take all that is under way to be lost: send it again, from the oldest on."""
        channel.progress_ns = now_ns
        channel.lost_until = channel.last
        self._resend(channel, channel.acked, channel.lost_until, now_ns)
        channel.backoff = min(channel.backoff + 1, _BACKOFF_MAX)

    def _give_up(self, channel: Channel) -> None:
        """Keep nothing more for a target that is silent, until it is back."""
        self._drop(channel)
        channel.begin(channel.life, channel.last)
        channel.is_gone = True
        self.gone |= channel.bit

    def renewed(self, place: int, now_ns: int) -> None:
        """Begin with a new life of a target: the last one has taken along what it had.

        What it may have delivered is not sent to the new one: its clients could get it twice.
        """
        channel, life = self._channels.get(place), self.life_of(place)
        if channel is None or channel.life == life:
            return
        untold = channel.given_up - channel.given_up_told
        lost = self._drop(channel)
        channel.given_up, channel.given_up_told = untold + lost, 0
        self.gone &= ~channel.bit
        channel.begin(life, channel.last)
        self._open(channel, now_ns)

    def _drop(self, channel: Channel) -> int:
        lost = len(channel.pending)
        for number in channel.pending:
            self._release(number, self._kept[number])
            if number in self._again:
                self._again[number] &= ~channel.bit
        channel.given_up += lost
        self.given_up += lost
        channel.pending.clear()
        channel.bytes = 0
        self._look_at_windows((channel,))
        return lost

    def _open(self, channel: Channel, now_ns: int, token: int = 0) -> None:
        channel.opened_ns = now_ns
        self._opening.append(
            Open(
                channel.place,
                self._place,
                channel.life,
                self._life,
                channel.base,
                channel.given_up,
                token,
                fresh=channel.fresh,
            )
        )

    # What goes

    def take_posts(self) -> list[Open]:
        """Return what to tell targets."""
        posts, self._opening = self._opening, []
        return posts

    def take_again(self) -> list[NotificationMessage]:
        """Return what to send again, each to those targets alone that lack it."""
        again, self._again = self._again, {}
        found = []
        for number in sorted(again):
            kept = self._kept.get(number)
            targets = again[number]
            if kept is None or not targets:
                continue
            found.append(copy_for(self._message(number, kept), targets, 0))
        self.resent += len(found)
        return found

    def _message(self, number: int, kept: Kept) -> NotificationMessage:  # noqa: ARG002 - see lasting
        assert kept.message is not None, "what is not on disk is in memory"
        return kept.message
