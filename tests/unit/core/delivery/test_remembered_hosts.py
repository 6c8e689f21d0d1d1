"""What a broker that comes back knows of other hosts may be older than what its channels know."""

import asyncio
from pathlib import Path

from octopis.broker.disk.codec import WireCodec
from octopis.core.delivery.lasting.channels import LastingChannels
from octopis.core.delivery.options import DeliveryOptions
from octopis.core.filters import parse_filter
from octopis.core.routing import Algorithm, Broker
from octopis.core.routing.algorithms.hosts import Host
from octopis.core.routing.algorithms.spreading import next_generation
from octopis.core.routing.messages import Subscription
from octopis.core.wire.published import decode_one, encode_published
from octopis.store import Store
from support.live import line

SCOT = line(2)
A, B = SCOT.brokers
KNOWN = {
    B: (next_generation(0, 7), [Subscription("durable:x", parse_filter("TRUE"), durable=True)])
}


class Life:
    """One life of A: its store, its channels and its core, as a live broker puts them together."""

    def __init__(self, folder: Path, life: int) -> None:
        self.store = Store(folder, "a,0", segment_bytes=2**16)
        about = A, SCOT, life, DeliveryOptions()
        self.channels = LastingChannels(*about, self.store, WireCodec(), 2**20)
        self.channels.recover(self.store.recover(), 0)
        core = Broker(A, SCOT, Algorithm.TNR, links_up=False, life=life, channels=self.channels)
        core.watch_durables(self._changed)
        core.restore([], KNOWN, 0)
        self.core = core
        self.store.start(asyncio.get_running_loop(), lambda _: None, lambda _: None)

    def _changed(self, host: Host) -> None:
        sender, bit = self.channels.sender, SCOT.bit(host.name)
        sender.durable = sender.durable | bit if host.durables else sender.durable & ~bit

    def publish(self, number: int) -> None:
        encoded = encode_published({"n": number}, b"", "me", number, 0)
        self.core.accept([decode_one(encoded)], 0)


def test_nothing_is_given_up_where_a_channel_knows_a_later_life_than_was_written_down(
    tmp_path: Path,
):
    async def work() -> None:
        first = Life(tmp_path, 1)
        for number in range(1, 4):
            first.publish(number)
        first.channels.host_lives(B, 8, 0)  # B was started again; only its channel is told so
        assert first.channels.sender.kept == 3
        first.store.close()
        second = Life(tmp_path, 2)
        assert (second.channels.sender.kept, second.channels.sender.given_up) == (3, 0)
        second.store.close()

    asyncio.run(work())
