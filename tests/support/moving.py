"""Two hosts between which a durable subscription moves, on disks that lose what is not synced."""

from collections.abc import Container, Sequence
from random import Random

import msgspec

from octopis.core.delivery.lasting.channels import LastingChannels
from octopis.core.delivery.lasting.durables import Durable, id_of
from octopis.core.delivery.lasting.records import DurableState, Policy
from octopis.core.delivery.options import DeliveryOptions
from octopis.core.model import BrokerId, Notification
from octopis.core.routing.messages import NO_CLUSTERS, NotificationMessage
from support.live import line

SCOT = line(4)
NAME = "risk"
_ITEM = msgspec.msgpack.Decoder(tuple[str, int])


class TrialStore:
    """A store in memory: of what is not synced, a crash leaves the first records, and no state."""

    has_room, reclaimable = True, False
    used_bytes = live_bytes = 0

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.ticket = self._synced = 0
        self._log: list[bytes] = []
        self._state: dict[tuple[str, str], bytes] = {}
        self._synced_state: dict[tuple[str, str], bytes] = {}
        self._freed: set[int] = set()

    def append(self, body: bytes) -> int:
        self.ticket += 1
        self._log.append(body)
        return len(self._log)

    def read(self, positions: Sequence[int]) -> list[bytes]:
        assert not self._freed & set(positions), "somebody still needs what was given back"
        return [self._log[each - 1] for each in positions]

    def free(self, position: int) -> None:
        assert position not in self._freed, f"{position} is freed twice"
        self._freed.add(position)

    @property
    def position(self) -> int:
        return len(self._log)

    def reclaim(self, upto: int) -> int:
        raise AssertionError(f"nothing is reclaimable up to {upto}")

    def sparse(self, share: float, besides: Container[int]) -> list[int]:
        raise AssertionError(f"nothing is sparse below {share}, {besides}")

    def put(self, kind: str, key: str, value: bytes) -> None:
        self.ticket += 1
        self._state[kind, key] = value

    def delete(self, kind: str, key: str) -> None:
        self.ticket += 1
        self._state.pop((kind, key), None)

    def items(self, kind: str) -> dict[str, bytes]:
        return {key: value for (which, key), value in self._state.items() if which == kind}

    def sync(self) -> None:
        self._synced, self._synced_state = len(self._log), dict(self._state)

    def crash(self, chance: Random) -> list[tuple[int, bytes]]:
        """Lose what is not synced, but for some of the log; return what is left of that."""
        del self._log[chance.randint(self._synced, len(self._log)) :]
        self._state = dict(self._synced_state)
        self._freed.clear()
        return list(enumerate(self._log, 1))


class _Codec:
    def encode(self, notification: Notification) -> bytes:
        return notification.payload

    def decode(self, body: bytes) -> Notification:
        return Notification({}, body)

    def publisher(self, notification: Notification) -> tuple[bytes, int]:
        who, number = _ITEM.decode(notification.payload)
        return who.encode(), number


def notification_of(who: str, number: int) -> Notification:
    return Notification({}, msgspec.msgpack.encode((who, number)))


class TrialHost:
    """A host of durable subscriptions, in all lives of its store."""

    def __init__(self, broker: BrokerId, epoch: int) -> None:
        self.broker = broker
        self.store = TrialStore(epoch)
        self._live([])

    def _live(self, records: list[tuple[int, bytes]]) -> None:
        about = self.broker, SCOT, 1, DeliveryOptions(), self.store, _Codec(), 2**30
        self.channels = LastingChannels(*about)
        self.channels.recover(records, 0)

    @property
    def durable(self) -> Durable | None:
        return self.channels.durables.get(NAME)

    def sync(self) -> None:
        self.store.sync()
        self.channels.synced(self.store.ticket, 0)

    def crash(self, chance: Random) -> None:
        self._live(self.store.crash(chance))

    def make(self) -> None:
        self.channels.durables.make(_state(moves=0))

    def join(self) -> None:
        self.channels.moves.join(_state(moves=1, joins=True))

    @property
    def _matches(self) -> list[str]:
        """Return what the routing core finds for all that comes."""
        durable = self.durable
        return [] if durable is None else [id_of(NAME, durable.state.moves)]

    def arrive(self, origin: int, number: int, notification: Notification) -> None:
        targets = 1 << self.channels.place
        message = NotificationMessage(notification, NO_CLUSTERS, targets, 0, origin, number, (1,))
        self.channels.keep([message], [self._matches])

    def publish(self, notification: Notification, targets: int) -> int:
        """Accept a publication of this host; return its number, 0 where it goes nowhere else."""
        message = NotificationMessage(notification, NO_CLUSTERS, targets)
        before = self.channels.sender.number_last
        self.channels.accept([message], [self._matches], 0)
        self.sync()
        last = self.channels.sender.number_last
        return last if last > before else 0

    def all(self) -> dict[int, tuple[str, int]]:
        """Return what can be read, by position."""
        assert self.durable is not None
        after, count, size = self.durable.state.acked, 2**20, 2**30
        found = self.channels.durables.read(self.durable, after, count, size)
        return dict(zip(found.positions, map(_ITEM.decode, found.bodies), strict=True))


def _state(moves: int, *, joins: bool = False) -> DurableState:
    about = {"owner": "", "filter": "TRUE", "policy": Policy.REFUSE, "created_ns": 1, "used_ns": 1}
    return DurableState(name=NAME, key=0, epoch=7, moves=moves, joins=joins, **about)
