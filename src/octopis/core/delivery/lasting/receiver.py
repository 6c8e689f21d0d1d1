"""The receiving end of channels of a host that keeps things on disk.

What its durable subscriptions want is acknowledged when it is on disk; what nobody keeps, when it
has been handed on. A stream goes on in the next life after the last that was kept: of that and what
the sender says to be acknowledged, the higher.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from octopis.core.delivery.options import DeliveryOptions
from octopis.core.delivery.posts import Open
from octopis.core.delivery.receiver import LIFE_BITS, Receiver, Stream, origin_of
from octopis.core.routing.messages import NotificationMessage


class LastingReceiver(Receiver):
    """Takes in what is for this host, in all lives of its store."""

    def __init__(self, place: int, life: int, options: DeliveryOptions) -> None:
        super().__init__(place, life, options.window, options.give_up_ns)
        self._known: dict[int, int] = {}
        self._bases: dict[int, int] = {}
        """Up to where senders have said that nothing more comes, if that is not known on disk."""

        self._unsynced: deque[tuple[int, dict[int, int]]] = deque()
        self.handed: dict[int, int] = {}
        """Up to where streams were handed on here, in any life, whether that is on disk or not."""

        self.is_blocked = False
        """Whether there is no room on disk: whatever comes has to come again."""

    def restore(self, lasts: Mapping[int, int]) -> None:
        """Know up to where streams were kept in earlier lives."""
        self._known.update(lasts)
        self.handed.update(lasts)
        for origin in lasts:
            self._newest[origin >> LIFE_BITS] = origin

    def lasts(self) -> dict[int, int]:
        """Return up to where streams are acknowledged: those of living hosts, the newest each."""
        found = {}
        for origin in self._newest.values():
            stream = self._streams.get(origin)
            found[origin] = self._known.get(origin, 0) if stream is None else stream.acked
        return found

    def in_order(
        self, arrived: Sequence[NotificationMessage], now_ns: int
    ) -> list[NotificationMessage]:
        """Return what may be handed on now, in order, if there is room for it."""
        if self.is_blocked:
            self.refused += len(arrived)
            self._due.update(dict.fromkeys(each.origin for each in arrived))  # it lives
            return []
        return super().in_order(arrived, now_ns)

    def is_fresh(self, message: NotificationMessage) -> bool:
        """Tell whether no earlier life of this host can have handed a notification on."""
        stream = self._streams.get(message.origin)
        return stream is None or message.number > stream.fresh

    def kept(self, lasts: dict[int, int], ticket: int) -> None:
        """Acknowledge what was handed on, up to these numbers, once `ticket` is synced."""
        for origin, base in self._bases.items():
            lasts[origin] = max(base, lasts.get(origin, 0))
        self._bases.clear()
        for origin, last in lasts.items():
            self.handed[origin] = max(last, self.handed.get(origin, 0))
        self._unsynced.append((ticket, lasts))

    def synced(self, ticket: int) -> bool:
        """Know that all up to a ticket is on disk; tell if there is more to acknowledge."""
        is_more = False
        while self._unsynced and self._unsynced[0][0] <= ticket:
            for origin, last in self._unsynced.popleft()[1].items():
                stream = self._streams.get(origin)
                if stream is not None and last > stream.acked:
                    stream.acked = last
                    self._due[origin] = None
                    is_more = True
        return is_more

    def opened(self, post: Open, now_ns: int) -> list[NotificationMessage]:
        """Take in that a stream begins, or goes on after a hole."""
        found = super().opened(post, now_ns)
        self._bases[origin_of(post.by, post.stream)] = post.base
        return found

    def _stream(self, origin: int, post: Open, now_ns: int) -> Stream:
        return Stream(max(post.base, self._known.get(origin, 0)), now_ns, post.fresh)

    def _has(self, stream: Stream) -> int:
        return stream.acked

    def _is_given_up(self, stream: Stream, now_ns: int) -> bool:  # noqa: ARG002
        """Skip no hole: whoever can fill it has it on disk, and comes back with it."""
        return False
