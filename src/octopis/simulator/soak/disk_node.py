"""One life of a simulated broker with a disk: nothing goes and nobody is answered before a sync."""

from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import msgspec

from octopis.core.delivery.lasting.channels import LastingChannels
from octopis.core.delivery.lasting.durables import Durable, id_of
from octopis.core.delivery.lasting.records import DurableState
from octopis.core.filters import parse_filter
from octopis.core.model import Notification
from octopis.core.routing.algorithms.target_routing import Accepted
from octopis.core.routing.broker import DURABLE
from octopis.simulator.soak.disk import Disk, VirtualStore
from octopis.simulator.soak.node import Node
from octopis.simulator.soak.plan import MS, Plan

_decode_attributes = msgspec.msgpack.Decoder(tuple[dict[str, str | int], bytes]).decode


class SoakCodec:
    """How notifications of a run are written."""

    def encode(self, notification: Notification) -> bytes:
        """Return a notification as bytes."""
        return msgspec.msgpack.encode((notification.attributes, notification.payload))

    def decode(self, body: bytes) -> Notification:
        """Return the notification that was encoded."""
        attributes, payload = _decode_attributes(body)
        return Notification(dict(attributes), payload)

    def publisher(self, notification: Notification) -> tuple[bytes, int]:
        """Return who has published it, and the publisher's number for it."""
        attributes = notification.attributes
        return str(attributes["p"]).encode(), int(attributes["n"])


CODEC = SoakCodec()


class DiskNode(Node):
    """One life of a broker with a disk."""

    channels: LastingChannels

    def __init__(
        self,
        *about: Any,
        plan: Plan,
        make: Callable[..., LastingChannels],
        disk: Disk,
        random: Random,
        is_first: bool,
    ) -> None:
        broker, life, agenda, links, log, watcher = about
        assert plan.disk is not None, "only who has a disk needs it"
        self.store = store = VirtualStore(disk, plan.disk, agenda, random, self._tell_synced)
        quota = plan.disk.quota_bytes

        def make_lasting(*first: Any) -> LastingChannels:
            return make(*first, store, CODEC, quota)

        shared = agenda, links, log, watcher, make_lasting
        super().__init__(broker, life, plan, *shared, is_first=is_first)
        self.stream = store.epoch
        now = agenda.now
        self.channels.recover(store.recovered(), now)
        self.core.watch_durables(self.channels.durables_changed)
        self.core.restore(self.channels.own_subscriptions(), self.channels.hosts.known(), now)
        self._told = store.ticket
        self._waits: deque[tuple[int, Callable[[], None]]] = deque()
        self._tidy_ns = plan.disk.tidy_ms * MS
        agenda.after(self._tidy_ns, self._do, self._tidy)
        self._do(lambda: None)  # what it remembers may have to go

    @property
    def durables(self) -> list[Durable]:
        """Its durable subscriptions."""
        return list(self.channels.durables)

    # What clients ask

    def accept(self, batch: list[Notification], answer: Callable[[], None]) -> None:
        """Take what a client publishes, but for what was taken before; answer when it is synced."""
        fresh = [each for each in batch if not self.channels.has(each)]
        accepted = self.core.accept(fresh, self._agenda.now)
        self.when_synced(partial(self._release, accepted))
        self.when_synced(answer)

    def make_durable(self, state: DurableState, known: Callable[[], None]) -> None:
        """Make a durable subscription; others hear of it, and it is `known`, when it is on disk."""
        durable = self.channels.durables.make(state)
        self.when_synced(partial(self._spread, durable.state, known))

    def _spread(self, state: DurableState, known: Callable[[], None]) -> None:
        asked = id_of(state.name), parse_filter(state.filter), state.moves, self._agenda.now
        effects = self.core.client_subscribes(DURABLE, *asked, owner=state.owner, durable=True)
        self._carry_out(effects)
        known()

    def when_synced(self, action: Callable[[], None]) -> None:
        """Do something when all that is written so far is on disk."""
        if self.store.ticket <= self._told:
            action()
        else:
            self._waits.append((self.store.ticket, action))

    def acknowledge(self, durable: Durable, position: int, known: Callable[[], None]) -> None:
        """Acknowledge; it is `known` when it is on disk."""
        self.channels.durables.acknowledge(durable, position, self._agenda.now)
        self.when_synced(known)

    # What the disk says

    def _tell_synced(self, ticket: int) -> None:
        self._do(self._synced, ticket)

    def _synced(self, ticket: int) -> None:
        self._told = ticket
        self.channels.synced(ticket, self._agenda.now)
        while self._waits and self._waits[0][0] <= ticket:
            self._waits.popleft()[1]()
        if self._is_prompt:
            self._see_to_channels()

    def _release(self, accepted: Accepted) -> None:
        for effects in self.core.release(accepted, self._agenda.now):
            self._carry_out(effects)
        if self._is_prompt:
            self._send_posts()

    def _tidy(self) -> None:
        self.channels.tidy()
        self._agenda.after(self._tidy_ns, self._do, self._tidy)
