"""Drives a live broker's channels (octopis.core.delivery): posts in and out, and what is overdue.

Posts go past the queues. Those that a neighbour has sent together go on together, at once; own ones
wait for the next look, so that one acknowledgement stands for all that has come meanwhile.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from octopis.broker.effects import Effects
from octopis.core.delivery.channels import LOOK_NS, Channels
from octopis.core.delivery.posts import Post, way_of
from octopis.core.delivery.receiver import Missed
from octopis.core.model import BrokerId
from octopis.core.routing import Broker
from octopis.core.routing.algorithms.tnr import Crossroads
from octopis.core.topology import SCOT
from octopis.errors import ProtocolError


class PostOutput(Protocol):
    """A link, as far as posts go."""

    def posts(self, posts: list[Post]) -> None:
        """Send posts past the queue."""


class Posting:
    """The channels of one broker, on the running event loop.

    `held` is called with the hosts, as bits, that publishers have to wait for, and with those that
    committed batches have to wait for, when these change; `missed` with what clients here will
    never get.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what channels have to do with
        self,
        channels: Channels,
        core: Broker,
        scot: SCOT,
        links: Mapping[BrokerId, PostOutput],
        effects: Effects,
        held: Callable[[int, int], None],
        missed: Callable[[Missed], None],
    ) -> None:
        self.channels = channels
        self._core = core
        self._here = Crossroads(core.id, scot, core.link_status)
        self._brokers = len(scot.brokers)
        self._tried_bits = 2 * len(scot.clusters)
        self._links = links
        self._effects = effects
        self._tell_held = held
        self._tell_missed = missed
        self._held = 0, 0
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._is_resting = False
        self.undeliverable = 0
        """Posts that had no way on; what they said is said again."""

    def stir(self) -> None:
        """Look at the channels soon: something was sent, or has come."""
        if self._timer is None or self._is_resting:
            self._look_in(LOOK_NS)
        self._tell()

    def _tell(self) -> None:
        """Say at once what cannot wait: that channels begin, and for whom publishers wait."""
        opening = self.channels.sender.take_posts()
        if opening:
            self._send([*opening], time.monotonic_ns())
        held = self.channels.held, self.channels.lacking
        if held != self._held:
            self._held = held
            self._tell_held(*held)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def heard(self, posts: list[Post]) -> None:
        """Take in what neighbours bring: own posts, and those for others. Raises ProtocolError."""
        now_ns = time.monotonic_ns()
        onward: list[Post] = []
        for post in posts:
            if max(post.to, post.by) >= self._brokers or post.tried >> self._tried_bits:
                raise ProtocolError("a post is for a broker that is not there")
            if post.to == self.channels.place:
                self.channels.arrived(post, now_ns)
            else:
                onward.append(post)
        if onward:
            self._send(onward, now_ns)
        if len(onward) < len(posts):
            self._act(now_ns)
            self.stir()

    def _look_in(self, delay_ns: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._is_resting = delay_ns > LOOK_NS
        self._timer = self._loop.call_later(delay_ns / 1e9, self._look)

    def _look(self) -> None:
        self._timer = None
        now_ns = time.monotonic_ns()
        self.channels.look(now_ns)
        self._send(self.channels.take_posts(now_ns), now_ns)
        self._act(now_ns)
        self._tell()
        if not self.channels.is_quiet:
            self._look_in(self.channels.look_again_ns)

    def _act(self, now_ns: int) -> None:
        """Send again, deliver and tell what the channels say."""
        channels = self.channels
        again, released = channels.take_again(), channels.take_in_order()
        if again:
            self._effects.carry_out(self._core.send_again(again, now_ns))
        if released:
            self._effects.carry_out(self._core.deliver(released))
        if again or released:
            self._effects.flush()
        for each in channels.take_missed():
            self._tell_missed(each)

    def _send(self, posts: list[Post], now_ns: int) -> None:
        """Send posts, all that go over a link together."""
        by_link: dict[BrokerId, list[Post]] = {}
        for post in posts:
            way = way_of(self._here, post, now_ns)
            if way is None:
                self.undeliverable += 1
                continue
            by_link.setdefault(way[0].link, []).append(way[1])
        for link, together in by_link.items():
            self._links[link].posts(together)
