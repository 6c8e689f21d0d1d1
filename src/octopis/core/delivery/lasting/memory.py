"""What a broker remembers beside its log: publishers, hosts with durable subscriptions, positions.

A checkpoint says what else would be forgotten with the old parts of the log.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from octopis.core.delivery.lasting.durables import id_of, name_of
from octopis.core.delivery.lasting.records import ChannelState, DurableState, encode
from octopis.core.delivery.lasting.store import Store
from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId
from octopis.core.routing.algorithms.hosts import Host
from octopis.core.routing.messages import Subscription

if TYPE_CHECKING:
    from octopis.core.delivery.lasting.channels import LastingChannels

PUBLISHERS_MAX = 65_536
"""So many publishers are remembered, those that published last."""


class Publishers:
    """The last publication of each publisher: what comes again is known by it."""

    def __init__(self) -> None:
        self._lasts: OrderedDict[bytes, int] = OrderedDict()

    def note(self, publisher: bytes, sequence: int) -> None:
        """Note what was accepted."""
        lasts = self._lasts
        if publisher in lasts:
            lasts.move_to_end(publisher)
            if sequence <= lasts[publisher]:
                return
        lasts[publisher] = sequence
        if len(lasts) > PUBLISHERS_MAX:
            lasts.popitem(last=False)

    def has(self, publisher: bytes, sequence: int) -> bool:
        """Tell whether something was accepted before."""
        return sequence <= self._lasts.get(publisher, -1)

    def last(self, publisher: bytes) -> int:
        """Return the last that was accepted of a publisher; -1: none."""
        return self._lasts.get(publisher, -1)

    def restore(self, lasts: Iterable[tuple[bytes, int]]) -> None:
        """Remember what was known."""
        self._lasts.update(lasts)

    def all(self) -> list[tuple[bytes, int]]:
        """Return all, those that published last at the end."""
        return list(self._lasts.items())


class _Subscription(Struct, frozen=True, array_like=True):
    id: str
    filter: str
    epoch: int
    owner: str


class _Host(Struct, frozen=True, array_like=True):
    generation: int
    subscriptions: list[_Subscription]


class KnownHosts:
    """Which other hosts have durable subscriptions, as far as is known here.

    So a broker that comes back sends them what they want, also where nobody else is there.
    """

    def __init__(self, broker: BrokerId, store: Store) -> None:
        self._broker = broker
        self._store = store
        self._changed: dict[BrokerId, Host] = {}
        self._hosts: dict[BrokerId, Host] = {}

    def changed(self, host: Host) -> None:
        """Note that the durable subscriptions of a host have changed."""
        if host.name != self._broker:
            self._changed[host.name] = self._hosts[host.name] = host

    def where(self, name: str) -> dict[BrokerId, Subscription]:
        """Return the other hosts that have a durable subscription of a name.

        While it moves these are two; that which it comes from is first.
        """
        found = [
            (host.name, each)
            for host in self._hosts.values()
            for identity, each in host.durables.items()
            if name_of(identity) == name
        ]
        return dict(sorted(found, key=lambda pair: (pair[1].epoch, pair[0])))

    def write(self) -> None:
        """Write down what has changed."""
        changed, self._changed = self._changed, {}
        for name, host in changed.items():
            if not host.durables:
                self._store.delete("host", str(name))
                continue
            known = [
                _Subscription(each.id, str(each.filter), each.epoch, each.owner)
                for each in host.durables.values()
            ]
            self._store.put("host", str(name), encode((_place(name), (host.generation, known))))

    def known(self) -> dict[BrokerId, tuple[int, list[Subscription]]]:
        """Return what was known in the last life."""
        found = {}
        for value in self._store.items("host").values():
            (region, cluster), host = _decode_host(value)
            found[BrokerId(region, cluster)] = (
                host.generation,
                [
                    Subscription(each.id, parse_filter(each.filter), each.epoch, each.owner, True)
                    for each in host.subscriptions
                ],
            )
        return found

    @staticmethod
    def own_of(states: Iterable[DurableState]) -> list[Subscription]:
        """Return durable subscriptions as the overlay knows them."""
        return [
            Subscription(
                id_of(each.name, each.moves),
                parse_filter(each.filter),
                each.moves,
                each.owner,
                True,
            )
            for each in states
        ]


def _place(name: BrokerId) -> tuple[str, int]:
    return name.region, name.cluster


_decode_host = msgspec.msgpack.Decoder(tuple[tuple[str, int], _Host]).decode


class Checkpoint(Struct, frozen=True):
    """What is known of channels: the last number, the channels, and the streams that come here."""

    number: int = 0
    channels: list[ChannelState] = []
    streams: Mapping[int, int] = {}
    publishers: list[tuple[bytes, int]] = []


_decode_checkpoint = msgspec.msgpack.Decoder(Checkpoint).decode


def checkpoint(channels: "LastingChannels") -> None:
    """Write down what would be forgotten with the old parts of the log."""
    sender, receiver = channels.sender, channels.receiver
    publishers = channels.publishers.all()
    known = Checkpoint(sender.number_last, sender.states(), receiver.lasts(), publishers)
    channels.store.put("channels", "checkpoint", encode(known))
    channels.durables.write_all()


def remembered(store: Store) -> Checkpoint:
    """Return the last checkpoint."""
    value = store.items("channels").get("checkpoint")
    return Checkpoint() if value is None else _decode_checkpoint(value)
